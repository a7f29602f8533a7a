// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Comma-separated values with a line of headings, as traces are published: no quotes, no escapes,
// lines that end in \n or \r\n, blank lines passed over. Messages read
//   pods.csv:12:8: `cpu_milli`: expected an integer from 0 to 1000000000, found "fast"

namespace rudderfish {

class CsvReader {
 public:
  // `columns` must all be among the headings, in any order; others are ignored. REQUIRES: `text`
  // outlives the reader.
  static Result<CsvReader> Open(std::string_view text, std::string_view source_name,
                                std::span<const std::string_view> columns);

  // The next row; false at the end.
  Result<bool> Next();

  // Of the row, by position in `columns`.
  std::string_view Text(int column) const { return fields_[column]; }
  Result<int64_t> Int(int column, int64_t low, int64_t high) const;

  // With the place of a field of the row.
  tl::unexpected<Error> Refuse(int column, std::string_view what) const;

  int line() const { return line_; }

 private:
  CsvReader(std::string_view text, std::string_view source_name)
      : text_(text), source_(source_name) {}

  bool NextLine(std::string_view* line);
  static std::vector<std::string_view> Split(std::string_view line);

  std::string_view text_;
  std::string source_;
  std::vector<std::string> names_;        // Of the columns asked for,
  std::vector<int> position_;             // where they stand in a line,
  std::vector<std::string_view> fields_;  // and what is there in this row.
  std::vector<size_t> column_at_;         // 1-based character of each.
  size_t headings_ = 0;
  int line_ = 0;
};

}  // namespace rudderfish
