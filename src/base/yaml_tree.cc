// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <exception>
#include <sstream>
#include <unordered_set>
#include <utility>

namespace rudderfish {
namespace {

constexpr size_t kDeepestYaml = 100;

// Thrown through yaml-cpp's parser, which has no other way to stop, and caught below.
struct Refusal {
  int line;
  int column;
  std::string what;
};

// Builds the tree from the parser's events. Its own YAML::Node would follow aliases and forget
// duplicates.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::vector<YamlEntry>* entries) : entries_(*entries) {}

  // NOLINTBEGIN(readability-identifier-naming)
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    if (ExpectsKey()) Refuse(mark, "a key is missing before `:`");
    Add(mark, YamlKind::kNull);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    Refuse(mark, "aliases (*name) are not supported; write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (ExpectsKey()) {
      TakeKey(mark, value);
      return;
    }
    // "!" is how the parser says quoted, "?" plain.
    entries_[Add(mark, tag == "!" ? YamlKind::kQuoted : YamlKind::kPlain)].text = value;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Enter(mark, tag, anchor, YamlKind::kList);
  }
  void OnSequenceEnd() override { open_.pop_back(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Enter(mark, tag, anchor, YamlKind::kMap);
  }
  void OnMapEnd() override { open_.pop_back(); }
  // NOLINTEND(readability-identifier-naming)

 private:
  struct Open {
    int entry = 0;
    bool has_key = false;
    std::string key;
    YAML::Mark key_mark;
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] static void Refuse(const YAML::Mark& mark, std::string what) {
    throw Refusal{mark.line + 1, mark.column + 1, std::move(what)};
  }

  static void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) Refuse(mark, "anchors (&name) are not supported");
  }

  static void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    Refuse(mark, fmt::format("tags are not supported, found `{}`", tag));
  }

  bool ExpectsKey() const {
    return !open_.empty() && entries_[open_.back().entry].kind == YamlKind::kMap &&
           !open_.back().has_key;
  }

  void TakeKey(const YAML::Mark& mark, const std::string& key) {
    Open& map = open_.back();
    if (!map.keys.insert(key).second) Refuse(mark, fmt::format("`{}` is given twice", key));
    map.has_key = true;
    map.key = key;
    map.key_mark = mark;
  }

  int Add(const YAML::Mark& mark, YamlKind kind) {
    const int index = static_cast<int>(entries_.size());
    YamlEntry entry{.kind = kind, .line = mark.line + 1, .column = mark.column + 1};
    if (!open_.empty()) {
      Open& parent = open_.back();
      entry.parent = parent.entry;
      entry.position = static_cast<int>(entries_[parent.entry].children.size());
      if (parent.has_key) {
        entry.key = std::move(parent.key);
        entry.key_line = parent.key_mark.line + 1;
        entry.key_column = parent.key_mark.column + 1;
        parent.has_key = false;
      }
      entries_[parent.entry].children.push_back(index);
    }
    entries_.push_back(std::move(entry));
    return index;
  }

  void Enter(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlKind kind) {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (ExpectsKey()) Refuse(mark, "a key must be a plain word, found a list or a map");
    if (open_.size() >= kDeepestYaml)
      Refuse(mark, fmt::format("nested more than {} deep", kDeepestYaml));
    const int entry = Add(mark, kind);
    open_.emplace_back();
    open_.back().entry = entry;
  }

  std::vector<YamlEntry>& entries_;
  std::vector<Open> open_;
};

tl::unexpected<Error> At(std::string_view source_name, int line, int column,
                         std::string_view what) {
  return Invalid("{}:{}:{}: {}", source_name, line, column, what);
}

// What yaml-cpp could not read. Its message for a tab in the indentation does not mention the tab.
std::string SyntaxProblem(std::string_view text, const YAML::Exception& error) {
  size_t begin = 0;
  for (int line = 0; line < error.mark.line && begin < text.size(); ++line) {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  const std::string_view rest = text.substr(std::min(begin, text.size()));
  const std::string_view indentation = rest.substr(0, rest.find_first_not_of(" \t"));
  if (indentation.find('\t') != std::string_view::npos) {
    return "YAML is indented by spaces, found a tab";
  }
  return fmt::format("cannot be read as YAML: {}", error.msg);
}

}  // namespace

Result<YamlTree> LoadYamlTree(std::string_view text, std::string_view source_name) {
  YamlTree tree;
  tree.source_name = source_name;
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return Invalid("{}: is not text: it has a zero byte at offset {}", source_name, zero);
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(&tree.entries);
    if (!parser.HandleNextDocument(builder) || tree.entries.empty()) {
      return Invalid("{}: is empty; expected YAML", source_name);
    }
    std::vector<YamlEntry> others;
    TreeBuilder other_builder(&others);
    if (parser.HandleNextDocument(other_builder)) {
      const int line = others.empty() ? 1 : others.front().line;
      const int column = others.empty() ? 1 : others.front().column;
      return At(source_name, line, column, "a second document; expected one");
    }
  } catch (const Refusal& refusal) {
    return At(source_name, refusal.line, refusal.column, refusal.what);
  } catch (const YAML::Exception& error) {
    return At(source_name, error.mark.line + 1, error.mark.column + 1, SyntaxProblem(text, error));
  } catch (const std::exception& error) {
    return Invalid("{}: {}", source_name, error.what());
  }
  return tree;
}

}  // namespace rudderfish
