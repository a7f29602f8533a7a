// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(TextTable, ColumnsAreAlignedAndLinesEndWithALetter) {
  TextTable table({{"NAME"}, {"MS", TextTable::Align::kRight}, {"NOTE"}}, 2);
  table.Row({"a", "1.5", ""});
  table.Row({"größe", "100.0", "x"});
  EXPECT_EQ(table.Text(),
            "  NAME      MS  NOTE\n"
            "  a        1.5\n"
            "  größe  100.0  x\n");
}

TEST(TextTable, WithoutHeadingsThereIsNoLineOfThem) {
  TextTable table({{""}, {""}});
  table.Row({"a", "b"});
  EXPECT_EQ(table.Text(), "a  b\n");
}

TEST(TextTable, ParagraphsBreakBetweenWords) {
  EXPECT_EQ(Paragraph("one two three", 9, 2), "  one two\n  three\n");
  EXPECT_EQ(Paragraph("unbreakable", 4), "unbreakable\n");
}

TEST(TextTable, CountsAreGroupedAndAgreeWithTheirNoun) {
  EXPECT_EQ(Counted(1, "pod"), "1 pod");
  EXPECT_EQ(Counted(1234567, "pod"), "1,234,567 pods");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(-1000), "-1,000");
}

}  // namespace
}  // namespace rudderfish
