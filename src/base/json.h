// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// JSON (RFC 8259) from outside: strict, nesting limited to 256, a key twice in one object refused;
// errors read "file:line:column: message". Who builds or dumps JSON includes <nlohmann/json.hpp>;
// who only reads it needs no more than this header: a JsonReader walks a value and its messages
// carry the way there:
//   nodes.json: cluster_setup.edge.tb-edge-vm-2.count: expected an integer from 0 to 100, found "x"

namespace rudderfish {

using Json = nlohmann::json;                 // Keys sorted.
using OrderedJson = nlohmann::ordered_json;  // Keys in the order of the file.

Result<Json> ParseJson(std::string_view text, std::string_view source_name);
// A line of a file of JSON Lines, with its number there from 1, which is what messages name.
Result<Json> ParseJsonLine(std::string_view line, std::string_view source_name, int64_t number);
Result<OrderedJson> ParseOrderedJson(std::string_view text, std::string_view source_name);

// A place in a value that outlives it. Cheap to move, costs a string to copy.
template <class AnyJson>
class BasicJsonReader {
 public:
  BasicJsonReader(const AnyJson& value, std::string_view source_name);

  // Members of an object. A missing key is an error for At, nothing for Find; for Find null counts
  // as missing. Both are an error if this is no object.
  Result<BasicJsonReader> At(std::string_view key) const;
  Result<std::optional<BasicJsonReader>> Find(std::string_view key) const;
  Result<std::vector<std::pair<std::string, BasicJsonReader>>> Members() const;

  // Refuses keys other than these, with the nearest of them.
  Result<void> CheckKeys(std::initializer_list<std::string_view> known) const;

  Result<std::vector<BasicJsonReader>> Elements() const;  // Of an array.

  Result<std::string> AsString() const;
  Result<bool> AsBool() const;
  Result<int64_t> AsInt(int64_t low = std::numeric_limits<int64_t>::min(),
                        int64_t high = std::numeric_limits<int64_t>::max()) const;
  Result<double> AsDouble(double low = std::numeric_limits<double>::lowest(),
                          double high = std::numeric_limits<double>::max()) const;

  bool IsObject() const;
  bool IsArray() const;
  bool IsString() const;
  bool IsNull() const;

  // "expected WHAT, found ..." and "WHAT", each after the source and the path.
  tl::unexpected<Error> Expected(std::string_view what) const;
  tl::unexpected<Error> Refuse(std::string_view what) const;

  const AnyJson& value() const { return *value_; }
  const std::string& path() const { return path_; }

 private:
  BasicJsonReader(const BasicJsonReader& parent, const AnyJson& value, std::string path);
  BasicJsonReader Child(std::string_view key, const AnyJson& value) const;

  const AnyJson* value_;
  std::string source_name_;
  std::string path_;
};

extern template class BasicJsonReader<Json>;
extern template class BasicJsonReader<OrderedJson>;

using JsonReader = BasicJsonReader<Json>;
using OrderedJsonReader = BasicJsonReader<OrderedJson>;

}  // namespace rudderfish
