// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "tests/support/plain_words.h"
#include "tests/support/source_path.h"
#include "tests/support/source_tree.h"

// The habits of CONTRIBUTING.md that a program can check. An exception is named below, with its
// reason, or there is none.

namespace rudderfish {
namespace {

constexpr size_t kColumnsMax = 100;
constexpr size_t kHeaderLinesMax = 200;
constexpr size_t kSourceLinesMax = 500;
constexpr size_t kFunctionLinesMax = 70;
constexpr int kMethodsOfASplitClassMax = 30;

const std::vector<SourceFile>& Cpp() {
  static const auto* files = [] {
    auto* all = new std::vector<SourceFile>;
    for (const char* folder : {"src", "tests", "bench", "testbed"}) {
      for (SourceFile& file : ReadSources(folder, {".h", ".cc"})) all->push_back(std::move(file));
    }
    return all;
  }();
  return *files;
}

std::vector<SourceFile> Product() {
  std::vector<SourceFile> files;
  for (const SourceFile& file : Cpp()) {
    if (!file.module.empty() && !file.is_test()) files.push_back(file);
  }
  return files;
}

// Reports every line of `files` for which `finding` says something.
void ExpectNone(const std::vector<SourceFile>& files,
                const std::function<std::string(const SourceFile&, size_t)>& finding) {
  std::vector<std::string> findings;
  for (const SourceFile& file : files) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (const std::string what = finding(file, i); !what.empty())
        findings.push_back(At(file, i, what));
    }
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

// Reports every match of `pattern` in code (not in comments and literals), but in files named in
// `homes`.
void ExpectNoCode(const std::vector<SourceFile>& files, const std::string& pattern,
                  const std::set<std::string>& homes = {}) {
  const std::regex form(pattern);
  ExpectNone(files, [&](const SourceFile& file, size_t i) -> std::string {
    std::smatch match;
    if (homes.contains(file.path) || !std::regex_search(file.code[i], match, form)) return "";
    return match.str();
  });
}

size_t Columns(const std::string& line) {
  return std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

TEST(Tidy, FirstLineIsTheLicence) {
  ExpectNone(Cpp(), [](const SourceFile& file, size_t i) -> std::string {
    return i == 0 && file.lines[0] != "// SPDX-License-Identifier: Apache-2.0" ? "no SPDX line"
                                                                               : "";
  });
  for (const SourceFile& script : ReadSources("tests", {".py"})) {
    EXPECT_NE(std::find(script.lines.begin(),
                        script.lines.begin() + std::min<size_t>(2, script.lines.size()),
                        "# SPDX-License-Identifier: Apache-2.0"),
              script.lines.begin() + std::min<size_t>(2, script.lines.size()))
        << script.path;
  }
}

TEST(Tidy, HeadersAreGuardedByPragmaOnce) {
  for (const SourceFile& file : Cpp()) {
    if (!file.is_header() || file.name == "kernel_body.h")
      continue;  // Included once for each instruction set.
    ASSERT_GE(file.lines.size(), 2u) << file.path;
    EXPECT_EQ(file.lines[1], "#pragma once") << file.path;
  }
}

TEST(Tidy, HeadersOpenWithWhatTheyAre) {
  for (const SourceFile& file : Product()) {
    if (!file.is_header()) continue;
    const auto comment =
        std::find_if(file.lines.begin() + 1, file.lines.end(),
                     [](const std::string& line) { return line.starts_with("// "); });
    const auto space =
        std::find_if(file.lines.begin(), file.lines.end(),
                     [](const std::string& line) { return line.starts_with("namespace "); });
    EXPECT_TRUE(comment < space) << file.path << " has no opening comment";
  }
}

TEST(Tidy, LinesFitIntoAHundredColumns) {
  ExpectNone(Cpp(), [](const SourceFile& file, size_t i) -> std::string {
    const size_t columns = Columns(file.lines[i]);
    return columns > kColumnsMax ? fmt::format("{} columns", columns) : "";
  });
}

// A class that has outgrown a file is more than one class.
TEST(Tidy, LargeClassesAreNotSplitOverFiles) {
  struct Definitions {
    int methods = 0;
    std::set<std::string> files;
  };
  std::map<std::string, Definitions> classes;
  const std::regex method(R"(^\w[^=;"]*?\b([A-Z]\w+)::~?\w+\()");
  for (const SourceFile& file : Product()) {
    if (!file.path.ends_with(".cc")) continue;
    for (const std::string& line : file.lines) {
      std::smatch found;
      if (!std::regex_search(line, found, method)) continue;
      Definitions& of = classes[found[1]];
      ++of.methods;
      of.files.insert(file.path);
    }
  }
  EXPECT_GT(classes.size(), 100u);
  for (const auto& [name, of] : classes) {
    EXPECT_TRUE(of.files.size() == 1 || of.methods <= kMethodsOfASplitClassMax)
        << name << ": " << of.methods << " methods in " << of.files.size() << " files";
  }
}

// Where a text has grown, clang-format leaves a word on a line of its own.
TEST(Tidy, TextsAreNotCutIntoScraps) {
  const std::regex scrap(R"(^\s+"[^"\\]{1,14} "$)");
  ExpectNone(Cpp(), [&](const SourceFile& file, size_t i) -> std::string {
    return std::regex_match(file.lines[i], scrap) ? "a scrap of a text: rewrap the text" : "";
  });
}

TEST(Tidy, LinesHaveNoTabsAndNothingAfterTheirEnd) {
  ExpectNone(Cpp(), [](const SourceFile& file, size_t i) -> std::string {
    const std::string& line = file.lines[i];
    if (line.find('\t') != std::string::npos) return "a tab";
    return !line.empty() && (line.back() == ' ' || line.back() == '\r') ? "white space at the end"
                                                                        : "";
  });
}

TEST(Tidy, FilesFitInTheHead) {
  for (const SourceFile& file : Product()) {
    const size_t limit =
        file.is_header() && file.name != "kernel_body.h" ? kHeaderLinesMax : kSourceLinesMax;
    EXPECT_LE(file.lines.size(), limit) << file.path << ": look for the missing noun";
  }
}

// A function begins with a line that starts in column 0 and ends with the first "}" alone in column
// 0.
TEST(Tidy, FunctionsFitOnAScreen) {
  const std::regex other(
      R"(^(namespace|class|struct|enum|union|#|//|\}|using|constexpr|const |static const|extern))");
  for (const SourceFile& file : Product()) {
    size_t begin = 0;
    bool open = false;
    for (size_t i = 0; i < file.code.size(); ++i) {
      const std::string& line = file.code[i];
      if (open && line == "}") {
        EXPECT_LE(i - begin + 1, kFunctionLinesMax) << At(file, begin, file.lines[begin]);
        open = false;
      } else if (!open && line.ends_with("{") && line.find('(') != std::string::npos &&
                 line[0] != ' ' && !std::regex_search(line, other)) {
        begin = i;
        open = true;
      }
    }
  }
}

TEST(Tidy, NothingIsLeftForLater) {
  const std::regex form(
      "\\b(TO"
      "DO|FIX"
      "ME|XX"
      "X|HA"
      "CK)\\b");
  ExpectNone(Cpp(), [&](const SourceFile& file, size_t i) -> std::string {
    return std::regex_search(file.lines[i], form) ? file.lines[i] : "";
  });
}

TEST(Tidy, TypesAreNamedByWhatTheyAre) {
  ExpectNoCode(Cpp(),
               R"(\b(class|struct) \w*(Manager|Helper|Helpers|Util|Utils|Impl|Info|Data|Base)\b)");
}

// Two types of one name in one namespace are one type to the linker, which then joins their
// functions and says nothing.
TEST(Tidy, NoTypeIsDefinedTwice) {
  const std::regex opening(R"(^(?:inline )?namespace ([\w:]+) \{$)"),
      closing(R"(^\}  // namespace)");
  const std::regex type(R"(^(?:struct|class|enum class|enum) (\w+)(?: final)?(?: :.*)? \{)");
  std::map<std::string, std::string> homes;  // By name.
  for (const SourceFile& file : Product()) {
    if (!file.is_header()) continue;
    std::vector<std::string> spaces;
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (std::regex_search(line, match, opening)) spaces.push_back(match[1]);
      if (!spaces.empty() && std::regex_search(line, closing)) spaces.pop_back();
      if (!std::regex_search(line, match, type)) continue;
      const std::string name =
          fmt::format("{}::{}", fmt::join(spaces, "::"), std::string(match[1]));
      const auto [home, is_new] = homes.emplace(name, file.path);
      EXPECT_TRUE(is_new) << name << " is defined in " << home->second << " and in " << file.path;
    }
  }
  EXPECT_GT(homes.size(), 500u);
}

// bool arguments say nothing where they are passed.
TEST(Tidy, PublicFunctionsTakeNoBool) {
  std::vector<SourceFile> headers;
  for (const SourceFile& file : Product()) {
    if (file.is_header()) headers.push_back(file);
  }
  ExpectNoCode(headers, R"([(,] *(const )?bool &?\w+ *[,)=])",
               {"src/base/json.h", "src/base/yaml.h",
                "src/base/yaml_writer.h"});  // Booleans of the formats.
}

TEST(Tidy, UnitsStandLastInNames) {
  ExpectNoCode(Product(), R"(\b(ms|us|ns|millis|seconds|mbytes|gib|mib)_(?!per_|to_|t\b)[a-z]\w*)");
}

TEST(Tidy, ModulesHaveNoFoldersWithin) {
  for (const SourceFile& file : ReadSources("src", {""})) {
    EXPECT_LE(std::count(file.path.begin(), file.path.end(), '/'), 2) << file.path;
  }
}

// x.cc has x_test.cc, or some test sees x.h, directly or through headers. A source without a header
// of its own is a part of something else (one instruction set of the kernels, the backward pass of
// a network): a test that begins with the same word is the whole's. The commands are run by
// tests/cli_test.py, the process of `rudderfish run` by tests/run_test.py, tests/place_test.py and
// the live tests.
TEST(Tidy, EverySourceHasATest) {
  std::map<std::string, std::vector<std::string>> includes;  // Of headers.
  std::set<std::string> seen, first_words;
  std::vector<std::string> open;
  const auto first_word = [](const SourceFile& file) {
    return file.module + "/" + file.name.substr(0, file.name.find_first_of("_."));
  };
  const std::regex include(R"re(#include "([a-z]+/[a-z0-9_]+\.h)")re");
  for (const SourceFile& file : Cpp()) {
    if (!file.is_header() && !file.is_test()) continue;
    if (file.is_test()) {
      first_words.insert(first_word(file));
      open.push_back(file.path.substr(0, file.path.size() - 8) + ".h");
    }
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      if (file.is_test()) open.push_back("src/" + match[1].str());
      includes[file.path].push_back("src/" + match[1].str());
    }
  }
  while (!open.empty()) {
    const std::string header = open.back();
    open.pop_back();
    if (!seen.insert(header).second) continue;
    for (const std::string& next : includes[header]) open.push_back(next);
  }
  std::vector<std::string> findings;
  for (const SourceFile& file : Product()) {
    if (file.is_header() || file.module == "cli" || file.module == "run") continue;
    const std::string header = file.path.substr(0, file.path.size() - 2) + "h";
    if (!seen.contains(header) &&
        (includes.contains(header) || !first_words.contains(first_word(file)))) {
      findings.push_back(file.path + " has no test");
    }
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

TEST(Tidy, OnlyFilesOfThrowingLibrariesKnowExceptions) {
  std::vector<SourceFile> files;
  for (const SourceFile& file : Product()) {
    const bool home =
        std::any_of(file.lines.begin(), file.lines.end(), [](const std::string& line) {
          return line.starts_with("#include <yaml-cpp/") ||
                 line.starts_with("#include <nlohmann/") || line.starts_with("#include <CLI/") ||
                 line.starts_with("#include <boost/");
        });
    if (!home) files.push_back(file);
  }
  ExpectNoCode(files, R"(\b(try|catch|throw)\b)");
  ExpectNoCode(Product(), R"(\bstd::sto(i|l|ll|ul|ull|f|d|ld)\b)");
}

TEST(Tidy, ChanceAndTimeHaveOneSource) {
  ExpectNoCode(
      Product(),
      R"(\b(std::rand|srand|random_device|mt19937|std::shuffle|uniform_real_distribution)\b)");
  // TensorBoard's events and Kubernetes' objects carry the date.
  ExpectNoCode(Product(), R"(\w+_clock::now)",
               {"src/base/clock.h", "src/base/wall_time.cc", "src/base/timestamp.cc",
                "src/learn/tensorboard.cc"});
}

TEST(Tidy, OnlyTheCommandsWriteToStdout) {
  std::vector<SourceFile> files;
  for (const SourceFile& file : Product()) {
    if (file.module != "cli") files.push_back(file);
  }
  ExpectNoCode(files, R"(\b(std::cout|printf\(|puts\(|fmt::print\((?!stderr)))");
}

TEST(Tidy, HeadersUseNoNamespaces) {
  std::vector<SourceFile> headers;
  for (const SourceFile& file : Cpp()) {
    if (file.is_header()) headers.push_back(file);
  }
  ExpectNoCode(headers, R"(\busing namespace\b)");
}

TEST(Tidy, NoCodeIsCommentedOut) {
  const std::regex form(R"(^\s*// *[A-Za-z_][\w:<>*&. ]*(\([^()]*\);| = [^,()]*;|\) \{)$)");
  ExpectNone(Product(), [&](const SourceFile& file, size_t i) -> std::string {
    return std::regex_search(file.lines[i], form) ? file.lines[i] : "";
  });
}

// TEST(State, BoundPodConsumesItsNodesResources), never TEST(State, Works).
TEST(Tidy, TestsAreNamedAsFacts) {
  const std::regex form(
      R"(^(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\((\w+), *(\w+))");
  const std::regex empty_name(
      R"(^(Test\d*|Basic\w*|Simple|Works|Smoke\w*|Misc\w*|\w*Works|Case\d*)$)");
  ExpectNone(Cpp(), [&](const SourceFile& file, size_t i) -> std::string {
    std::smatch match;
    if (!std::regex_search(file.code[i], match, form)) return "";
    const std::string name = match[2];
    const auto words =
        std::count_if(name.begin(), name.end(), [](unsigned char c) { return isupper(c) != 0; });
    return words < 2 || std::regex_match(name, empty_name) ? name + " states no fact" : "";
  });
}

TEST(Tidy, EveryTestCanFail) {
  const std::regex begin(R"(^(TEST|TEST_F|TEST_P|TYPED_TEST)\()");
  const std::regex checks(R"(EXPECT_|ASSERT_|RC_|rc::check|\bExpect\w*\(|\bCheck\w*\(|CHECK)");
  std::vector<std::string> findings;
  for (const SourceFile& file : Cpp()) {
    for (size_t i = 0; i < file.code.size(); ++i) {
      if (!std::regex_search(file.code[i], begin)) continue;
      const size_t first = i;
      bool found = std::regex_search(file.code[i], checks);
      while (!file.code[i].starts_with("}") && !(i == first && file.code[i].ends_with("}")) &&
             i + 1 < file.code.size()) {
        found |= std::regex_search(file.code[++i], checks);
      }
      if (!found) findings.push_back(At(file, first, file.lines[first]));
    }
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

// What a person reads: string literals, joined where one continues on the next line.
TEST(Tidy, TextsAreInPlainWords) {
  const std::regex literal(R"re("((?:[^"\\]|\\.)*)")re");
  std::vector<std::string> findings;
  for (const SourceFile& file : Product()) {
    std::string text;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& code = file.code[i];
      const size_t first = code.find_first_not_of(' ');
      const bool continues = first != std::string::npos && code[first] == '"';
      if (!continues || i == 0 || !file.code[i - 1].ends_with('"')) text.clear();
      if (code.find('"') == std::string::npos || code.starts_with("#include")) continue;
      const std::string& line = file.lines[i];
      for (std::sregex_iterator at(line.begin(), line.end(), literal), end; at != end; ++at)
        text += (*at)[1].str();
      if (const std::string word = PrivateWordIn(text); !word.empty()) {
        findings.push_back(At(file, i, word));
        text.clear();
      }
    }
  }
  EXPECT_TRUE(findings.empty()) << JoinLines(findings);
}

TEST(Tidy, CommentsAreInPlainWords) {
  ExpectNone(Cpp(), [](const SourceFile& file, size_t i) -> std::string {
    const size_t begin = file.lines[i].find("//");
    return begin == std::string::npos ? "" : PrivateWordIn(file.lines[i].substr(begin));
  });
}

TEST(Tidy, DocsAreInPlainWords) {
  std::vector<SourceFile> files = ReadSources("docs", {".md"});
  std::erase_if(files, [](const SourceFile& file) { return file.name == "glossary.md"; });
  for (const char* name : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"})
    files.push_back(ReadSource(name));
  ExpectNone(files, [](const SourceFile& file, size_t i) { return PrivateWordIn(file.lines[i]); });
}

// Nothing names a machine on which this was made, or a server that a proxy would have to allow.
TEST(Tidy, NothingNamesOneMachine) {
  const std::regex form(
      "(^|[^A-Za-z0-9._-])/(work|farm)/"
      "|\\.\\./shared"
      "|/home/[a-z]"
      "|pypi\\"
      ".org|pythonhosted"
      "\\.org");
  namespace fs = std::filesystem;
  const fs::path top = SourcePath("");
  std::vector<SourceFile> files;
  for (const char* folder : {"src", "tests", "bench", "docs", "scenarios", "cmake", "policies"}) {
    for (SourceFile& file : ReadSources(
             folder, {".h", ".cc", ".py", ".md", ".yaml", ".json", ".txt", ".cmake", ".sh"})) {
      files.push_back(std::move(file));
    }
  }
  for (const char* name : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CMakeLists.txt",
                           "CMakePresets.json", "setup", "test", "demo"}) {
    files.push_back(ReadSource(name));
  }
  ExpectNone(files, [&](const SourceFile& file, size_t i) -> std::string {
    return std::regex_search(file.lines[i], form) ? file.lines[i] : "";
  });
}

}  // namespace
}  // namespace rudderfish
