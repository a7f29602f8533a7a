// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/files.h"
#include "base/suggest.h"
#include "scenario/reach_files.h"

// Where REACH keeps which file, and what to say when it is not there.

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPatternSuffix = "_call_patterns.json";

// Names in a folder for which `name_of` gives one, sorted.
template <class NameOf>
std::vector<std::string> NamesIn(const fs::path& folder, NameOf name_of) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (const std::optional<std::string> name = name_of(at->path())) names.push_back(*name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string NearestOrAll(std::string_view name, const std::vector<std::string>& names,
                         std::string_view none) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string hint = DidYouMean(name, known);
  if (!hint.empty()) return hint;
  return names.empty() ? fmt::format("; {}", none)
                       : fmt::format("; there are {}", fmt::join(names, ", "));
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The file in the first of the folders that has it.
Result<ReachText> ReadFirst(std::string_view file, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    const fs::path path = folder / file;
    if (!Exists(path)) continue;
    TRY_ASSIGN(std::string text, ReadFile(path));
    return ReachText{path.string(), std::move(text)};
  }
  return Fail(ErrorCode::kNotFound, "{}: there is no such file", (folders.front() / file).string());
}

Result<void> CheckConfig(const fs::path& dir, std::string_view config) {
  if (!Exists(dir)) return Fail(ErrorCode::kNotFound, "{}: there is no such folder", dir.string());
  if (config.empty())
    return Invalid(
        "the name of a configuration is missing; REACH calls them <nodes>-<pods>, such as 7-21");
  if (Exists(dir / config)) return {};
  const std::vector<std::string> configs =
      NamesIn(dir, [](const fs::path& path) -> std::optional<std::string> {
        if (!Exists(path / "nodes.json")) return std::nullopt;
        return path.filename().string();
      });
  return Fail(ErrorCode::kNotFound, "{}: there is no configuration \"{}\"{}", dir.string(), config,
              NearestOrAll(config, configs, "no folder in it holds a nodes.json"));
}

Result<ReachText> ReadPatternFile(const fs::path& dir, std::string_view config,
                                  const std::string& pattern) {
  const std::string file = pattern + std::string(kPatternSuffix);
  if (Exists(dir / file) || Exists(dir / config / file))
    return ReadFirst(file, {dir, dir / config});
  const auto name_of = [](const fs::path& path) -> std::optional<std::string> {
    std::string name = path.filename().string();
    if (!name.ends_with(kPatternSuffix)) return std::nullopt;
    name.resize(name.size() - kPatternSuffix.size());
    return name;
  };
  std::vector<std::string> patterns = NamesIn(dir, name_of);
  for (std::string& name : NamesIn(dir / config, name_of)) patterns.push_back(std::move(name));
  return Fail(ErrorCode::kNotFound, "{}: there is no call pattern \"{}\"{}", dir.string(), pattern,
              NearestOrAll(pattern, patterns, "no file in it ends in _call_patterns.json"));
}

}  // namespace

Result<Scenario> ImportReach(const fs::path& dir, std::string_view config,
                             std::span<const std::string> patterns,
                             const ReachImportOptions& options) {
  TRY(CheckConfig(dir, config));
  const char* nodes_file =
      options.capacity == ReachCapacity::kDrawn ? "nodes.json" : "nodes-simple.json";
  ReachTexts texts;
  TRY_ASSIGN(texts.nodes, ReadFirst(nodes_file, {dir / config}));
  TRY_ASSIGN(texts.services, ReadFirst(options.services_file, {dir / config, dir}));
  for (const std::string& pattern : patterns) {
    TRY_ASSIGN(ReachText file, ReadPatternFile(dir, config, pattern));
    texts.patterns.emplace_back(pattern, std::move(file));
  }
  return ParseReach(texts, config, options);
}

}  // namespace rudderfish
