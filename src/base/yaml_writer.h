// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/yaml.h"

// Writes YAML as a careful person would: block maps indented by two, short lists and maps in one
// line, comments. Strings are quoted only where YAML would read them as something else; numbers
// read back to the same bits.
//
//   YamlWriter out;                          # Made from ...
//   out.Comment("Made from ...");            name: continuum
//   out.Field("name", "continuum");          layers: [cloud, edge]
//   out.FlowList("layers", {...});           services:
//   out.BeginList("services");                 - name: front
//   out.BeginItem();                             cpu: 700m
//   out.Field("name", "front"); ...
//   out.End(); out.End();                    # the item, the list

namespace rudderfish {

// A scalar as it will stand in the file.
class YamlScalar {
 public:
  // Not explicit, so that call sites pass plain values.
  YamlScalar(std::string_view text);                                           // NOLINT
  YamlScalar(const std::string& text) : YamlScalar(std::string_view(text)) {}  // NOLINT
  YamlScalar(const char* text) : YamlScalar(std::string_view(text)) {}         // NOLINT
  YamlScalar(bool value) : text_(value ? "true" : "false") {}                  // NOLINT
  YamlScalar(double value);                                                    // NOLINT
  YamlScalar(int64_t value) : text_(std::to_string(value)) {}                  // NOLINT
  YamlScalar(uint64_t value) : text_(std::to_string(value)) {}                 // NOLINT
  YamlScalar(int value) : text_(std::to_string(value)) {}                      // NOLINT

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class YamlWriter {
 public:
  using Fields = std::vector<std::pair<std::string, YamlScalar>>;

  void Comment(std::string_view text);  // One line for each line of `text`.
  void BlankLine();

  // Inside a map (the document is one).
  void Field(std::string_view key, const YamlScalar& value);
  void Text(std::string_view key, std::string_view lines);  // As they are, below the key.
  void FlowList(std::string_view key,
                std::span<const YamlScalar> values);  // [a, b], broken at 100 columns.
  void FlowList(std::string_view key, std::initializer_list<YamlScalar> values);
  void FlowMap(std::string_view key, const Fields& fields);  // {a: 1, b: 2}
  void BeginMap(std::string_view key);
  void BeginList(std::string_view key);
  void Node(std::string_view key,
            const YamlNode& node);  // A part of a document that was read, unchanged.

  // Inside a list.
  void Item(const YamlScalar& value);
  void FlowItem(const Fields& fields);
  void BeginItem();  // A map; its first field follows the dash.

  void End();  // Of the innermost Begin.

  // The document. REQUIRES: every Begin has its End.
  std::string Take();

 private:
  enum class Block { kMap, kList };

  struct Open {
    Block block;
    size_t start;  // Where its content begins in text_.
  };

  std::string Indent() const;
  void Key(std::string_view key);
  void Dash();
  void Flow(char begin, std::span<const std::string> texts, char end);
  void FlowFields(const Fields& fields);
  void Subtree(std::string_view key, const YamlTree& tree, int index);

  std::string text_;
  std::vector<Open> open_;
  bool after_dash_ = false;  // The next field goes on the line of its list item.
};

}  // namespace rudderfish
