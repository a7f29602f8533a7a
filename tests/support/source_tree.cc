// SPDX-License-Identifier: Apache-2.0
#include "tests/support/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

// Removes comments, and the contents of string and character literals, raw strings included; keeps
// line numbers.
std::vector<std::string> StripToCode(const std::vector<std::string>& lines) {
  std::vector<std::string> code;
  bool in_comment = false;
  std::string raw_end;  // Inside a raw string: what ends it.
  for (const std::string& line : lines) {
    std::string kept;
    for (size_t i = 0; i < line.size();) {
      if (!raw_end.empty()) {
        const size_t end = line.find(raw_end, i);
        if (end == std::string::npos) break;
        i = end + raw_end.size();
        raw_end.clear();
        kept += '"';
      } else if (in_comment) {
        const size_t end = line.find("*/", i);
        if (end == std::string::npos) break;
        i = end + 2;
        in_comment = false;
      } else if (line.compare(i, 2, "//") == 0) {
        break;
      } else if (line.compare(i, 2, "/*") == 0) {
        in_comment = true;
        i += 2;
      } else if (line.compare(i, 2, "R\"") == 0) {
        const size_t open = line.find('(', i);
        raw_end = ")" + line.substr(i + 2, open - i - 2) + "\"";
        kept += '"';
        i = open + 1;
      } else if (line[i] == '"' ||
                 (line[i] == '\'' &&
                  (i == 0 || !isalnum(static_cast<unsigned char>(line[i - 1]))))) {
        const char quote = line[i];
        kept += quote;
        for (++i; i < line.size() && line[i] != quote; ++i) i += line[i] == '\\';
        kept += quote;
        ++i;
      } else {
        kept += line[i++];
      }
    }
    code.push_back(kept);
  }
  return code;
}

}  // namespace

SourceFile ReadSource(const std::string& path) {
  SourceFile file{
      .path = path, .module = "", .name = fs::path(path).filename(), .lines = {}, .code = {}};
  if (path.starts_with("src/")) file.module = path.substr(4, path.find('/', 4) - 4);
  std::ifstream in(SourcePath(path));
  CHECK(in.good());
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  // Only C++ has comments and literals of this kind.
  if (path.ends_with(".h") || path.ends_with(".cc")) file.code = StripToCode(file.lines);
  return file;
}

std::vector<SourceFile> ReadSources(std::string_view folder,
                                    const std::vector<std::string>& endings) {
  const fs::path top = SourcePath("");
  std::vector<SourceFile> files;
  for (const auto& entry : fs::recursive_directory_iterator(top / folder)) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() ||
        std::none_of(endings.begin(), endings.end(),
                     [&](const std::string& e) { return name.ends_with(e); })) {
      continue;
    }
    files.push_back(ReadSource(fs::relative(entry.path(), top)));
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::string At(const SourceFile& file, size_t line_index, std::string_view what) {
  return fmt::format("{}:{}: {}", file.path, line_index + 1, what);
}

std::string JoinLines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace rudderfish
