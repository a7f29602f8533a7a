// SPDX-License-Identifier: Apache-2.0
#include "base/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/one_line.h"
#include "base/suggest.h"
#include "base/yaml_tree.h"

namespace rudderfish {
namespace {

const YamlEntry& EntryOf(const std::shared_ptr<const YamlTree>& tree, int index) {
  static const YamlEntry nothing;
  return tree == nullptr ? nothing : tree->entries[index];
}

constexpr size_t kLongest = 60;  // Of what messages repeat of a file.

std::string Brief(std::string_view text) { return OneLine(text, kLongest); }

std::string Describe(const YamlEntry& entry) {
  switch (entry.kind) {
    case YamlKind::kNull:
      return "nothing";
    case YamlKind::kList:
      return "a list";
    case YamlKind::kMap:
      return "a map";
    case YamlKind::kPlain:
    case YamlKind::kQuoted:
      break;
  }
  return fmt::format("\"{}\"", Brief(entry.text));
}

// The whole of `text` as a number: decimal, as JSON has it, and a sign.
template <class Number>
std::optional<Number> ToNumber(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool YamlNode::IsNull() const { return EntryOf(tree_, index_).kind == YamlKind::kNull; }

bool YamlNode::IsScalar() const {
  const YamlKind kind = EntryOf(tree_, index_).kind;
  return kind == YamlKind::kPlain || kind == YamlKind::kQuoted;
}

bool YamlNode::IsList() const { return EntryOf(tree_, index_).kind == YamlKind::kList; }

bool YamlNode::IsMap() const { return EntryOf(tree_, index_).kind == YamlKind::kMap; }

Result<std::string> YamlNode::AsString() const {
  if (!IsScalar()) return Expected("a string");
  return EntryOf(tree_, index_).text;
}

Result<bool> YamlNode::AsBool() const {
  const YamlEntry& entry = EntryOf(tree_, index_);
  if (entry.kind == YamlKind::kPlain && entry.text == "true") return true;
  if (entry.kind == YamlKind::kPlain && entry.text == "false") return false;
  return Expected("true or false");
}

Result<int64_t> YamlNode::AsInt(int64_t low, int64_t high) const {
  const YamlEntry& entry = EntryOf(tree_, index_);
  if (entry.kind == YamlKind::kPlain) {
    const auto number = ToNumber<int64_t>(entry.text);
    if (number && *number >= low && *number <= high) return *number;
  }
  return Expected(RangeInWords("an integer", low, high));
}

Result<double> YamlNode::AsDouble(double low, double high) const {
  const YamlEntry& entry = EntryOf(tree_, index_);
  if (entry.kind == YamlKind::kPlain) {
    const auto number = ToNumber<double>(entry.text);
    if (number && std::isfinite(*number) && *number >= low && *number <= high) return *number;
  }
  return Expected(RangeInWords("a number", low, high));
}

Result<std::vector<YamlNode>> YamlNode::AsList() const {
  if (!IsList()) return Expected("a list");
  std::vector<YamlNode> list;
  for (const int child : EntryOf(tree_, index_).children) list.push_back(YamlNode(tree_, child));
  return list;
}

Result<YamlMap> YamlNode::AsMap() const {
  if (!IsMap()) return Expected("a map");
  return YamlMap(*this);
}

std::string YamlNode::Location() const {
  if (tree_ == nullptr) return "(nowhere)";
  const YamlEntry& entry = tree_->entries[index_];
  return fmt::format("{}:{}:{}", tree_->source_name, entry.line, entry.column);
}

std::string YamlNode::Path() const {
  if (tree_ == nullptr) return {};
  std::vector<int> way;
  for (int at = index_; tree_->entries[at].parent >= 0; at = tree_->entries[at].parent) {
    way.push_back(at);
  }
  std::string path;
  for (auto at = way.rbegin(); at != way.rend(); ++at) {
    const YamlEntry& entry = tree_->entries[*at];
    if (tree_->entries[entry.parent].kind == YamlKind::kList) {
      path += fmt::format("[{}]", entry.position);
    } else {
      path += fmt::format("{}{}", path.empty() ? "" : ".", Brief(entry.key));
    }
  }
  return path;
}

tl::unexpected<Error> YamlNode::Expected(std::string_view what) const {
  return Refuse(fmt::format("expected {}, found {}", what, Describe(EntryOf(tree_, index_))));
}

tl::unexpected<Error> YamlNode::Refuse(std::string_view what) const {
  const std::string path = Path();
  if (path.empty()) return Invalid("{}: {}", Location(), OneLine(what, std::string_view::npos));
  return Invalid("{}: `{}`: {}", Location(), path, OneLine(what, std::string_view::npos));
}

Result<YamlNode> ParseYaml(std::string_view text, std::string_view source_name) {
  TRY_ASSIGN(YamlTree tree, LoadYamlTree(text, source_name));
  return YamlNode(std::make_shared<const YamlTree>(std::move(tree)), 0);
}

std::optional<YamlNode> YamlMap::Find(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
  for (const int child : node_.tree_->entries[node_.index_].children) {
    if (node_.tree_->entries[child].key == key) return YamlNode(node_.tree_, child);
  }
  return std::nullopt;
}

Result<YamlNode> YamlMap::Required(std::string_view key) {
  if (std::optional<YamlNode> found = Find(key)) return *std::move(found);
  // Finish would name the misspelt key, but is never reached.
  if (asked_all_) return node_.Refuse(fmt::format("missing key `{}`", key));
  std::vector<std::string_view> unread;
  for (const int child : node_.tree_->entries[node_.index_].children) {
    const std::string& name = node_.tree_->entries[child].key;
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) unread.push_back(name);
  }
  const std::string_view nearest = Nearest(key, unread);
  for (const int child : node_.tree_->entries[node_.index_].children) {
    const YamlEntry& entry = node_.tree_->entries[child];
    if (nearest.empty() || entry.key != nearest) continue;
    return RefuseKey(
        entry, fmt::format("missing key `{}`; is `{}` meant to be that?", key, Brief(entry.key)));
  }
  return node_.Refuse(fmt::format("missing key `{}`", key));
}

tl::unexpected<Error> YamlMap::RefuseKey(const YamlEntry& entry, std::string_view what) const {
  const std::string path = node_.Path();
  return Invalid("{}:{}:{}: {}{}", node_.tree_->source_name, entry.key_line, entry.key_column,
                 path.empty() ? "" : fmt::format("`{}`: ", path), what);
}

std::optional<YamlNode> YamlMap::Optional(std::string_view key) {
  std::optional<YamlNode> found = Find(key);
  if (found && found->IsNull()) return std::nullopt;
  return found;
}

Result<std::string> YamlMap::RequiredString(std::string_view key) {
  TRY_ASSIGN(const YamlNode value, Required(key));
  return value.AsString();
}

Result<bool> YamlMap::RequiredBool(std::string_view key) {
  TRY_ASSIGN(const YamlNode value, Required(key));
  return value.AsBool();
}

Result<int64_t> YamlMap::RequiredInt(std::string_view key, int64_t low, int64_t high) {
  TRY_ASSIGN(const YamlNode value, Required(key));
  return value.AsInt(low, high);
}

Result<double> YamlMap::RequiredDouble(std::string_view key, double low, double high) {
  TRY_ASSIGN(const YamlNode value, Required(key));
  return value.AsDouble(low, high);
}

Result<std::vector<YamlNode>> YamlMap::RequiredList(std::string_view key) {
  TRY_ASSIGN(const YamlNode value, Required(key));
  return value.AsList();
}

Result<std::vector<std::string>> YamlMap::RequiredStrings(std::string_view key) {
  TRY_ASSIGN(const std::vector<YamlNode> list, RequiredList(key));
  std::vector<std::string> texts;
  for (const YamlNode& node : list) {
    TRY_ASSIGN(std::string text, node.AsString());
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<YamlMap> YamlMap::RequiredMap(std::string_view key) {
  TRY_ASSIGN(const YamlNode value, Required(key));
  return value.AsMap();
}

Result<std::string> YamlMap::OptionalString(std::string_view key, std::string_view fallback) {
  const std::optional<YamlNode> value = Optional(key);
  return value ? value->AsString() : Result<std::string>(std::string(fallback));
}

Result<bool> YamlMap::OptionalBool(std::string_view key, bool fallback) {
  const std::optional<YamlNode> value = Optional(key);
  return value ? value->AsBool() : Result<bool>(fallback);
}

Result<int64_t> YamlMap::OptionalInt(std::string_view key, int64_t low, int64_t high,
                                     int64_t fallback) {
  const std::optional<YamlNode> value = Optional(key);
  return value ? value->AsInt(low, high) : Result<int64_t>(fallback);
}

Result<double> YamlMap::OptionalDouble(std::string_view key, double low, double high,
                                       double fallback) {
  const std::optional<YamlNode> value = Optional(key);
  return value ? value->AsDouble(low, high) : Result<double>(fallback);
}

Result<std::vector<YamlNode>> YamlMap::OptionalList(std::string_view key) {
  const std::optional<YamlNode> value = Optional(key);
  return value ? value->AsList() : Result<std::vector<YamlNode>>(std::vector<YamlNode>{});
}

std::vector<std::pair<std::string, YamlNode>> YamlMap::Entries() {
  std::vector<std::pair<std::string, YamlNode>> entries;
  for (const int child : node_.tree_->entries[node_.index_].children) {
    entries.emplace_back(node_.tree_->entries[child].key, YamlNode(node_.tree_, child));
  }
  asked_all_ = true;
  return entries;
}

Result<void> YamlMap::Finish() const {
  if (asked_all_) return {};
  for (const int child : node_.tree_->entries[node_.index_].children) {
    const YamlEntry& entry = node_.tree_->entries[child];
    if (std::find(asked_.begin(), asked_.end(), entry.key) != asked_.end()) continue;
    const std::vector<std::string_view> known(asked_.begin(), asked_.end());
    std::string hint = DidYouMean(entry.key, known);
    if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(known, ", "));
    return RefuseKey(entry, fmt::format("unknown key `{}`{}", Brief(entry.key), hint));
  }
  return {};
}

}  // namespace rudderfish
