// SPDX-License-Identifier: Apache-2.0
#include "scenario/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

constexpr std::string_view kColumns[] = {"name", "cpu"};

std::string CsvRefusal(std::string_view text) {
  Result<CsvReader> reader = CsvReader::Open(text, "pods.csv", kColumns);
  if (!reader) return reader.error().message;
  for (;;) {
    const Result<bool> more = reader->Next();
    if (!more) return more.error().message;
    if (!*more) return "";
    const Result<int64_t> cpu = reader->Int(1, 0, 100);
    if (!cpu) return cpu.error().message;
  }
}

TEST(Csv, ColumnsAreFoundByTheirHeadingsInAnyOrder) {
  Result<CsvReader> reader =
      CsvReader::Open("extra,cpu,name\r\n1,20,a\r\n\r\n2,30,b", "pods.csv", kColumns);
  ASSERT_TRUE(reader.has_value());
  ASSERT_TRUE(*reader->Next());
  EXPECT_EQ(reader->Text(0), "a");
  EXPECT_EQ(*reader->Int(1, 0, 100), 20);
  ASSERT_TRUE(*reader->Next());
  EXPECT_EQ(reader->Text(0), "b");
  EXPECT_EQ(reader->line(), 4);
  EXPECT_FALSE(*reader->Next());
}

TEST(Csv, RefusesWithThePlaceOfTheField) {
  EXPECT_EQ(CsvRefusal("name,cpu\na,1\nb,fast\n"),
            "pods.csv:3:3: `cpu`: expected an integer from 0 to 100, found \"fast\"");
  EXPECT_EQ(CsvRefusal("name,cpu\na,-1\n"),
            "pods.csv:2:3: `cpu`: expected an integer from 0 to 100, found \"-1\"");
  EXPECT_EQ(CsvRefusal("name,cpu\na,101"),
            "pods.csv:2:3: `cpu`: expected an integer from 0 to 100, found \"101\"");
  EXPECT_EQ(CsvRefusal("name,cpu\na\n"),
            "pods.csv:2:1: expected 2 fields, as there are headings, found 1");
}

TEST(Csv, RefusesHeadingsThatLackAColumnAndNamesTheNearest) {
  EXPECT_EQ(CsvRefusal("name,cpus\n"),
            "pods.csv:1:1: expected a column `cpu`, found \"name,cpus\"; is it \"cpus\"?");
  EXPECT_EQ(CsvRefusal("name,cpu,cpu\n"), "pods.csv:1:1: two columns are called `cpu`");
  EXPECT_EQ(CsvRefusal(""),
            "pods.csv: expected a line of headings (name,cpu), found an empty file");
}

TEST(Csv, MessagesStayOneLine) {
  EXPECT_THAT(CsvRefusal("name,cpu\na,\x01\x02\n"), ::testing::HasSubstr("\"??\""));
}

}  // namespace
}  // namespace rudderfish
