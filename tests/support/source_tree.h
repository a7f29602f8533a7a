// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

// The project's own source files, read once, for tests that check habits and the order of modules.

namespace rudderfish {

struct SourceFile {
  std::string path;    // From the top of the tree: src/base/rng.h
  std::string module;  // base; empty outside src/
  std::string name;    // rng.h
  std::vector<std::string> lines;
  std::vector<std::string> code;  // The lines without comments and contents of string literals.

  bool is_header() const { return name.ends_with(".h"); }
  bool is_test() const { return name.ends_with("_test.cc"); }
};

// All files below `folder` of the tree whose name ends in one of `endings`, sorted by path.
std::vector<SourceFile> ReadSources(std::string_view folder,
                                    const std::vector<std::string>& endings);

// One file, `path` from the top of the tree.
SourceFile ReadSource(const std::string& path);

// "src/base/rng.h:12: <what>", the form in which tests report.
std::string At(const SourceFile& file, size_t line_index, std::string_view what);

// A list of findings as one text, for EXPECT_TRUE(list.empty()) << Join(list).
std::string JoinLines(const std::vector<std::string>& lines);

}  // namespace rudderfish
