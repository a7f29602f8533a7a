// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr int kGap = 2;

std::string WithoutTrailingSpaces(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

int TextColumns(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void TextTable::Row(std::vector<std::string> cells) {
  CHECK_LE(cells.size(), columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::Text() const {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> headings;
  bool titled = false;
  for (const Column& column : columns_) {
    headings.emplace_back(column.heading);
    titled |= !column.heading.empty();
  }
  if (titled) lines.push_back(std::move(headings));
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<int> widths(columns_.size(), 0);
  for (const std::vector<std::string>& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], TextColumns(cells[i]));
  }
  std::string text;
  for (const std::vector<std::string>& cells : lines) {
    std::string line(indent_, ' ');
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - TextColumns(cells[i]), ' ');
      if (i > 0) line += std::string(kGap, ' ');
      line += columns_[i].align == Align::kRight ? padding + cells[i] : cells[i] + padding;
    }
    text += WithoutTrailingSpaces(std::move(line)) + "\n";
  }
  return text;
}

std::string Paragraph(std::string_view text, int columns, int indent) {
  std::string lines, line;
  const std::string margin(indent, ' ');
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (!line.empty() && indent + TextColumns(line) + 1 + TextColumns(word) > columns) {
      lines += margin + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return lines + margin + line + "\n";
}

std::string Grouped(int64_t count) {
  std::string digits = fmt::format("{}", count);
  const int first = count < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) digits.insert(at, ",");
  return digits;
}

std::string Counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", Grouped(count), noun, count == 1 ? "" : "s");
}

}  // namespace rudderfish
