// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// YAML that people write by hand, read strictly: one document, no aliases, anchors or tags, no key
// twice, nesting limited to 100. Every message reads
//   scenario.yaml:12:3: `services[2].cpu`: expected a number from 0 to 64, found "fast"
// A YamlMap notes which keys it was asked for, and Finish refuses all others with the nearest one
// it knows. A YamlNode keeps its document alive, so a part may be kept unread and parsed later by
// another module. Immutable once parsed: nodes may be read by any thread, a YamlMap by one.

namespace rudderfish {

class YamlMap;
struct YamlChange;
struct YamlEntry;
struct YamlTree;

class YamlNode {
 public:
  YamlNode() = default;  // Null, from nowhere.

  bool IsNull() const;  // Nothing, ~ or null.
  bool IsScalar() const;
  bool IsList() const;
  bool IsMap() const;

  Result<std::string> AsString() const;  // Any scalar as written: 2 is "2".
  Result<bool> AsBool() const;           // true or false.
  Result<int64_t> AsInt(int64_t low = std::numeric_limits<int64_t>::min(),
                        int64_t high = std::numeric_limits<int64_t>::max()) const;
  Result<double> AsDouble(double low = std::numeric_limits<double>::lowest(),
                          double high = std::numeric_limits<double>::max()) const;
  Result<std::vector<YamlNode>> AsList() const;
  Result<YamlMap> AsMap() const;

  std::string Location() const;  // file:line:column
  std::string Path() const;      // services[2].cpu; empty for the whole document.

  // "expected WHAT, found ..." and "WHAT", each after the location and the path.
  tl::unexpected<Error> Expected(std::string_view what) const;
  tl::unexpected<Error> Refuse(std::string_view what) const;

 private:
  friend class YamlMap;
  friend class YamlWriter;
  friend Result<YamlNode> ParseYaml(std::string_view text, std::string_view source_name);
  friend Result<YamlNode> ChangeYaml(const YamlNode& root, const YamlChange& change);
  YamlNode(std::shared_ptr<const YamlTree> tree, int index)
      : tree_(std::move(tree)), index_(index) {}

  std::shared_ptr<const YamlTree> tree_;
  int index_ = 0;
};

// The root of the one document in `text`.
Result<YamlNode> ParseYaml(std::string_view text, std::string_view source_name);

// The fields of a map, each asked for by name; Finish when all have been.
class YamlMap {
 public:
  Result<YamlNode> Required(std::string_view key);
  std::optional<YamlNode> Optional(std::string_view key);  // A null counts as absent.

  Result<std::string> RequiredString(std::string_view key);
  Result<bool> RequiredBool(std::string_view key);
  Result<int64_t> RequiredInt(std::string_view key, int64_t low, int64_t high);
  Result<double> RequiredDouble(std::string_view key, double low, double high);
  Result<std::vector<YamlNode>> RequiredList(std::string_view key);
  Result<std::vector<std::string>> RequiredStrings(std::string_view key);  // A list of them.
  Result<YamlMap> RequiredMap(std::string_view key);

  Result<std::string> OptionalString(std::string_view key, std::string_view fallback);
  Result<bool> OptionalBool(std::string_view key, bool fallback);
  Result<int64_t> OptionalInt(std::string_view key, int64_t low, int64_t high, int64_t fallback);
  Result<double> OptionalDouble(std::string_view key, double low, double high, double fallback);
  Result<std::vector<YamlNode>> OptionalList(std::string_view key);  // Empty if absent.

  // All fields in the order of the file, for maps whose keys are names; counts as having asked for
  // every one.
  std::vector<std::pair<std::string, YamlNode>> Entries();

  // Refuses keys that were never asked for.
  Result<void> Finish() const;

  const YamlNode& node() const { return node_; }

 private:
  friend class YamlNode;
  explicit YamlMap(YamlNode node) : node_(std::move(node)) {}
  std::optional<YamlNode> Find(std::string_view key);
  tl::unexpected<Error> RefuseKey(const YamlEntry& entry, std::string_view what) const;

  YamlNode node_;
  std::vector<std::string> asked_;
  bool asked_all_ = false;
};

}  // namespace rudderfish
