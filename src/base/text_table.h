// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

// Rows of text in aligned columns, two spaces apart, under headings; nothing stands after the last
// letter of a line. Widths count letters of UTF-8.

namespace rudderfish {

class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string_view heading;  // If all are empty there is no line of headings.
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns, int indent = 0)
      : columns_(std::move(columns)), indent_(indent) {}

  // A row may be shorter than there are columns.
  void Row(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }
  std::string Text() const;

 private:
  std::vector<Column> columns_;
  int indent_;
  std::vector<std::vector<std::string>> rows_;
};

// Letters of UTF-8 text.
int TextColumns(std::string_view text);

// Words broken into lines of at most `columns` letters, each after `indent` spaces, the first too;
// ends with a newline.
std::string Paragraph(std::string_view text, int columns, int indent = 0);

// "1 pod", "2 pods", "1,234 pods".
std::string Counted(int64_t count, std::string_view noun);

// "1,234,567".
std::string Grouped(int64_t count);

}  // namespace rudderfish
