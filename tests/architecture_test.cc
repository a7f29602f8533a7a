// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/source_path.h"
#include "tests/support/source_tree.h"

// The table of docs/architecture.md is the law: CMake's edges must say the same, and no file may
// include what its module may not, directly or through others.

namespace rudderfish {
namespace {

using Edges = std::map<std::string, std::set<std::string>>;  // module -> modules it may include

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream in(SourcePath(path));
  EXPECT_TRUE(in.good()) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::set<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::set<std::string> words;
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

// Rows "| module | a b c |" below the heading "What may include what".
Edges TableOfThePage() {
  Edges table;
  bool in_section = false;
  const std::regex row(R"(\| ([a-z]+) \| ([a-z –]+) \|)");
  for (const std::string& line : ReadLines("docs/architecture.md")) {
    if (line.starts_with("## ")) in_section = line == "## What may include what";
    std::smatch match;
    if (!in_section || !std::regex_match(line, match, row) || match[1] == "module") continue;
    table[match[1]] = match[2] == "–" ? std::set<std::string>{} : Words(match[2]);
  }
  for (auto& [module, allowed] : table) {
    if (!allowed.contains("everything")) continue;
    allowed.clear();
    for (const auto& [other, unused] : table) {
      if (other != module) allowed.insert(other);
    }
  }
  return table;
}

Edges EdgesOfCmake() {
  Edges edges;
  const std::regex line_form(R"(module\(([a-z]+)(?: DEPENDS ([a-z ]+?))?(?: LIBRARIES .*)?\))");
  for (const std::string& line : ReadLines("src/CMakeLists.txt")) {
    std::smatch match;
    if (std::regex_match(line, match, line_form)) edges[match[1]] = Words(match[2]);
  }
  return edges;
}

struct Include {
  std::string from, to;  // Paths from the top of the tree.
  std::string at;
};

// Includes among files of src/.
std::vector<Include> IncludesOfTheTree() {
  std::vector<Include> includes;
  const std::regex form(R"re(^\s*#\s*include\s+"([^"]+)")re");
  for (const SourceFile& file : ReadSources("src", {".h", ".cc"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(file.lines[i], match, form)) continue;
      const std::string path = match[1];
      if (path.starts_with("tests/")) continue;  // Shared parts of tests.
      includes.push_back({file.path, "src/" + path, At(file, i, path)});
    }
  }
  return includes;
}

std::string ModuleOf(const std::string& path) { return path.substr(4, path.find('/', 4) - 4); }

TEST(Architecture, CmakeHasTheEdgesOfThePage) {
  const Edges table = TableOfThePage();
  ASSERT_GE(table.size(), 12u) << "the table in docs/architecture.md was not found";
  EXPECT_EQ(table, EdgesOfCmake());
}

TEST(Architecture, EveryModuleHasItsLineInTheTables) {
  std::set<std::string> folders, described;
  for (const SourceFile& file : ReadSources("src", {".h", ".cc"})) folders.insert(file.module);
  const std::regex row(R"(\| `([a-z]+)` \| .+ \|)");
  for (const std::string& line : ReadLines("docs/architecture.md")) {
    std::smatch match;
    if (std::regex_match(line, match, row)) described.insert(match[1]);
  }
  for (const auto& [module, unused] : TableOfThePage()) {
    EXPECT_TRUE(folders.contains(module)) << module << " stands in the table but not in src/";
    EXPECT_TRUE(described.contains(module)) << module << " is not described";
  }
  for (const std::string& folder : folders) {
    EXPECT_TRUE(TableOfThePage().contains(folder))
        << "src/" << folder << " does not stand in the table";
  }
}

TEST(Architecture, NoFileIncludesWhatItsModuleMayNot) {
  const Edges table = TableOfThePage();
  std::vector<std::string> findings;
  for (const Include& include : IncludesOfTheTree()) {
    const std::string from = ModuleOf(include.from), to = ModuleOf(include.to);
    if (from != to && (!table.contains(from) || !table.at(from).contains(to)))
      findings.push_back(include.at);
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

TEST(Architecture, NoFileReachesWhatItsModuleMayNotThroughOthers) {
  const Edges table = TableOfThePage();
  std::map<std::string, std::vector<std::string>> next;
  std::set<std::string> files;
  for (const Include& include : IncludesOfTheTree()) {
    next[include.from].push_back(include.to);
    files.insert(include.from);
  }
  std::vector<std::string> findings;
  for (const std::string& file : files) {
    const std::string module = ModuleOf(file);
    std::set<std::string> seen;
    std::vector<std::string> open{file};
    while (!open.empty()) {
      const std::string at = open.back();
      open.pop_back();
      for (const std::string& to : next[at]) {
        if (!seen.insert(to).second) continue;
        open.push_back(to);
        const std::string reached = ModuleOf(to);
        if (reached != module && !table.at(module).contains(reached))
          findings.push_back(file + " reaches " + to);
      }
    }
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

TEST(Architecture, IncludesHaveNoCycle) {
  std::map<std::string, std::vector<std::string>> next;
  for (const Include& include : IncludesOfTheTree()) next[include.from].push_back(include.to);
  std::map<std::string, int> colour;  // 1: on the path, 2: done.
  std::vector<std::string> cycles;
  const std::function<void(const std::string&)> visit = [&](const std::string& file) {
    colour[file] = 1;
    for (const std::string& to : next[file]) {
      if (colour[to] == 1) cycles.push_back(file + " -> " + to);
      if (colour[to] == 0) visit(to);
    }
    colour[file] = 2;
  };
  const auto copy = next;
  for (const auto& [file, unused] : copy) {
    if (colour[file] == 0) visit(file);
  }
  EXPECT_TRUE(cycles.empty()) << JoinLines(cycles);
}

TEST(Architecture, EveryIncludeNamesAFileOfTheTree) {
  std::set<std::string> paths;
  for (const SourceFile& file : ReadSources("src", {".h", ".cc"})) paths.insert(file.path);
  std::vector<std::string> findings;
  for (const Include& include : IncludesOfTheTree()) {
    if (!paths.contains(include.to)) findings.push_back(include.at);
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

TEST(Architecture, LibrariesThatThrowStayInTheirFiles) {
  struct Home {
    std::string library;
    std::function<bool(const SourceFile&)> allows;
  };
  const std::vector<Home> homes{
      {"yaml-cpp/", [](const SourceFile& file) { return file.path.starts_with("src/base/yaml"); }},
      {"zlib.h", [](const SourceFile& file) { return file.path.starts_with("src/base/gzip"); }},
      {"nlohmann/json.hpp", [](const SourceFile& file) { return !file.is_header(); }},
      {"CLI/", [](const SourceFile& file) { return file.module == "cli"; }},
      {"grpc",
       [](const SourceFile& file) { return file.path.starts_with("src/cloud/xds_server"); }},
      {"cloud/xds.pb.h",
       [](const SourceFile& file) { return file.path.starts_with("src/cloud/xds_session"); }},
      {"spdlog/", [](const SourceFile& file) { return file.path == "src/base/log.cc"; }},
  };
  std::vector<std::string> findings;
  for (const SourceFile& file : ReadSources("src", {".h", ".cc"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const Home& home : homes) {
        const bool includes = file.lines[i].starts_with("#include <" + home.library);
        if (includes && !home.allows(file)) findings.push_back(At(file, i, file.lines[i]));
      }
    }
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

TEST(Architecture, EveryPathNamedByThePagesExists) {
  // `src/x/y.cc` and `x/y.h` in backquotes.
  const std::regex form(
      R"re(`((?:src|docs|tests|scenarios|bench)/[\w./-]+)`|`([a-z]+/[a-z_]+\.(?:h|cc))`)re");
  std::vector<std::string> findings;
  for (const SourceFile& page : ReadSources("docs", {".md"})) {
    for (size_t i = 0; i < page.lines.size(); ++i) {
      const std::string& line = page.lines[i];
      for (std::sregex_iterator it(line.begin(), line.end(), form), end; it != end; ++it) {
        const std::string path = (*it)[1].matched ? (*it)[1].str() : "src/" + (*it)[2].str();
        if (!std::filesystem::exists(SourcePath(path))) findings.push_back(At(page, i, path));
      }
    }
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

}  // namespace
}  // namespace rudderfish
