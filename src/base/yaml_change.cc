// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_change.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/suggest.h"
#include "base/yaml_tree.h"

namespace rudderfish {
namespace {

// A key of a map, or a position in a list.
struct PathStep {
  std::string key;
  std::optional<size_t> position;
};

tl::unexpected<Error> NoPath(std::string_view path) {
  return Invalid("`{}` is no path such as services[2].cpu", path);
}

Result<std::vector<PathStep>> ParsePath(std::string_view path) {
  std::vector<PathStep> steps;
  std::string_view rest = path;
  while (!rest.empty()) {
    if (rest.front() == '[') {
      const size_t end = rest.find(']');
      size_t position = 0;
      const char* last = rest.data() + (end == rest.npos ? 0 : end);
      if (end == rest.npos || std::from_chars(rest.data() + 1, last, position).ptr != last ||
          end == 1) {
        return NoPath(path);
      }
      steps.push_back({.key = {}, .position = position});
      rest.remove_prefix(end + 1);
      continue;
    }
    if (!steps.empty()) {
      if (rest.front() != '.') return NoPath(path);
      rest.remove_prefix(1);
    }
    const size_t end = std::min(rest.find_first_of(".["), rest.size());
    if (end == 0) return NoPath(path);
    steps.push_back({.key = std::string(rest.substr(0, end)), .position = std::nullopt});
    rest.remove_prefix(end);
  }
  if (steps.empty()) return NoPath(path);
  return steps;
}

// The child of `parent` that `step` names, -1 if it is a new key of a map.
Result<int> ChildOf(const YamlTree& tree, int parent, const PathStep& step, std::string_view path) {
  const YamlEntry& entry = tree.entries[parent];
  if (step.position) {
    if (entry.kind != YamlKind::kList || *step.position >= entry.children.size()) {
      return Invalid("{}: `{}`: there is no element {}", tree.source_name, path, *step.position);
    }
    return entry.children[*step.position];
  }
  if (entry.kind != YamlKind::kMap && entry.kind != YamlKind::kNull) {
    return Invalid("{}: `{}`: there is nothing below which `{}` could stand", tree.source_name,
                   path, step.key);
  }
  for (const int child : entry.children) {
    if (tree.entries[child].key == step.key) return child;
  }
  return -1;
}

tl::unexpected<Error> NoSuchKey(const YamlTree& tree, int parent, const PathStep& step,
                                std::string_view path) {
  std::vector<std::string_view> keys;
  for (const int child : tree.entries[parent].children) keys.push_back(tree.entries[child].key);
  return Invalid("{}: `{}`: there is no `{}`{}", tree.source_name, path, step.key,
                 DidYouMean(step.key, keys));
}

// Puts a copy of `from` and all below it where `at` stands, which keeps its place in the file.
void Graft(const YamlTree& source, int from, YamlTree* tree, int at) {
  const YamlEntry& model = source.entries[from];
  tree->entries[at].kind = model.kind;
  tree->entries[at].text = model.text;
  tree->entries[at].children.clear();
  for (const int child : model.children) {
    const int copy = static_cast<int>(tree->entries.size());
    YamlEntry entry = source.entries[child];
    entry.line = entry.key_line = tree->entries[at].line;
    entry.column = entry.key_column = tree->entries[at].column;
    entry.parent = at;
    tree->entries.push_back(std::move(entry));
    tree->entries[at].children.push_back(copy);
    Graft(source, child, tree, copy);
  }
}

}  // namespace

Result<YamlNode> ChangeYaml(const YamlNode& root, const YamlChange& change) {
  const std::string& path = change.path;
  TRY_ASSIGN(const std::vector<PathStep> steps, ParsePath(path));
  TRY_ASSIGN(const YamlTree replacement, LoadYamlTree(change.value, path));
  auto tree = std::make_shared<YamlTree>(*root.tree_);
  int at = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    TRY_ASSIGN(const int child, ChildOf(*tree, at, steps[i], path));
    if (child >= 0) {
      at = child;
      continue;
    }
    if (i + 1 < steps.size()) return NoSuchKey(*tree, at, steps[i], path);
    YamlEntry entry{.line = tree->entries[at].line,
                    .column = tree->entries[at].column,
                    .parent = at,
                    .position = static_cast<int>(tree->entries[at].children.size()),
                    .key = steps[i].key};
    entry.key_line = entry.line;
    entry.key_column = entry.column;
    const int added = static_cast<int>(tree->entries.size());
    tree->entries[at].kind = YamlKind::kMap;
    tree->entries[at].children.push_back(added);
    tree->entries.push_back(std::move(entry));
    at = added;
  }
  Graft(replacement, 0, tree.get(), at);
  return YamlNode(std::move(tree), 0);
}

}  // namespace rudderfish
