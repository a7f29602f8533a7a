// SPDX-License-Identifier: Apache-2.0
#include "scenario/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/suggest.h"

namespace rudderfish {
namespace {

// At most so much of a field is repeated in a message, without what would break its line.
std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string quoted(text.substr(0, kMost));
  std::replace_if(
      quoted.begin(), quoted.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return fmt::format("\"{}{}\"", quoted, text.size() > kMost ? "..." : "");
}

}  // namespace

Result<CsvReader> CsvReader::Open(std::string_view text, std::string_view source_name,
                                  std::span<const std::string_view> columns) {
  CsvReader reader(text, source_name);
  std::string_view line;
  if (!reader.NextLine(&line)) {
    return Invalid("{}: expected a line of headings ({}), found an empty file", source_name,
                   fmt::join(columns, ","));
  }
  const std::vector<std::string_view> headings = Split(line);
  reader.headings_ = headings.size();
  for (const std::string_view column : columns) {
    const auto at = std::find(headings.begin(), headings.end(), column);
    if (at == headings.end()) {
      const std::string_view nearest = Nearest(column, headings);
      return Invalid("{}:{}:1: expected a column `{}`, found {}{}", source_name, reader.line_,
                     column, Quoted(line),
                     nearest.empty() ? "" : fmt::format("; is it {}?", Quoted(nearest)));
    }
    if (std::find(at + 1, headings.end(), column) != headings.end())
      return Invalid("{}:{}:1: two columns are called `{}`", source_name, reader.line_, column);
    reader.names_.emplace_back(column);
    reader.position_.push_back(static_cast<int>(at - headings.begin()));
  }
  reader.fields_.resize(columns.size());
  reader.column_at_.resize(columns.size());
  return reader;
}

bool CsvReader::NextLine(std::string_view* line) {
  while (!text_.empty()) {
    const size_t end = std::min(text_.find('\n'), text_.size());
    *line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++line_;
    if (line->ends_with('\r')) line->remove_suffix(1);
    if (!line->empty()) return true;
  }
  return false;
}

std::vector<std::string_view> CsvReader::Split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

Result<bool> CsvReader::Next() {
  std::string_view line;
  if (!NextLine(&line)) return false;
  const std::vector<std::string_view> fields = Split(line);
  if (fields.size() != headings_) {
    return Invalid("{}:{}:1: expected {} fields, as there are headings, found {}", source_, line_,
                   headings_, fields.size());
  }
  for (size_t i = 0; i < position_.size(); ++i) {
    fields_[i] = fields[position_[i]];
    column_at_[i] = static_cast<size_t>(fields_[i].data() - line.data()) + 1;
  }
  return true;
}

Result<int64_t> CsvReader::Int(int column, int64_t low, int64_t high) const {
  const std::string_view text = fields_[column];
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < low || number > high) {
    return Refuse(column, fmt::format("expected {}, found {}",
                                      RangeInWords("an integer", low, high), Quoted(text)));
  }
  return number;
}

tl::unexpected<Error> CsvReader::Refuse(int column, std::string_view what) const {
  return Invalid("{}:{}:{}: `{}`: {}", source_, line_, column_at_[column], names_[column], what);
}

}  // namespace rudderfish
