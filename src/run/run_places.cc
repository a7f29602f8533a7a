// SPDX-License-Identifier: Apache-2.0
#include "run/run_places.h"

#include <algorithm>
#include <string_view>

#include "base/files.h"
#include "base/yaml.h"
#include "run/config.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

// The path at `section.key`; `by_default` if there is none that can be read.
fs::path PathAt(const YamlNode& root, std::string_view section, std::string_view key,
                const fs::path& folder, const fs::path& by_default) {
  Result<YamlMap> map = root.AsMap();
  if (!map) return by_default;
  const std::optional<YamlNode> below = map->Optional(section);
  if (!below) return by_default;
  Result<YamlMap> keys = below->AsMap();
  if (!keys) return by_default;
  const std::optional<YamlNode> node = keys->Optional(key);
  if (!node) return by_default;
  const Result<std::string> path = node->AsString();
  return path && !path->empty() ? folder / *path : by_default;
}

// The value of `key: VALUE` in a line, without quotes; empty: it has none.
std::string_view ValueIn(std::string_view line, std::string_view key) {
  for (size_t at = line.find(key); at != line.npos; at = line.find(key, at + 1)) {
    if (at > 0 && line.find_first_of(" \t{,", at - 1) != at - 1) continue;
    std::string_view rest = line.substr(at + key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (!rest.starts_with(':')) continue;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\"'", 1), rest.size()));
    return rest.substr(0, rest.find_first_of(" \t\r\"',}#"));
  }
  return "";
}

// The same of a text that is no YAML, for instance because a key stands twice in it: the first
// such key below a line that begins with `section:`.
fs::path PathIn(std::string_view text, std::string_view section, std::string_view key,
                const fs::path& folder, const fs::path& by_default) {
  bool is_below = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    // Without its comment.
    for (size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1)) {
      if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') line = line.substr(0, at);
    }
    if (line.empty()) continue;
    if (line.front() != ' ' && line.front() != '\t') {
      is_below = line.starts_with(section) && line.substr(section.size()).starts_with(':');
      if (is_below) line.remove_prefix(section.size() + 1);
    }
    const std::string_view value = is_below ? ValueIn(line, key) : "";
    if (!value.empty()) return folder / value;
  }
  return by_default;
}

}  // namespace

Result<RunPlaces> FindRunPlaces(const fs::path& path) {
  TRY_ASSIGN(const std::string text, ReadConfigText(path));
  const Result<Config> config = ParseConfig(text, path);
  if (config) return RunPlaces{config->server.socket, config->journal.path, ""};
  const fs::path folder = path.parent_path();
  RunPlaces places{.journal = folder / kJournalName, .problem = config.error().message};
  const Result<YamlNode> root = ParseYaml(text, path.string());
  const auto find = [&](std::string_view section, std::string_view key, const fs::path& other) {
    return root ? PathAt(*root, section, key, folder, other)
                : PathIn(text, section, key, folder, other);
  };
  places.journal = find("journal", "path", places.journal);
  places.socket = find("server", "socket", SocketBeside(places.journal));
  return places;
}

}  // namespace rudderfish
