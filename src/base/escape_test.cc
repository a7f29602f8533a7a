// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rudderfish {
namespace {

TEST(Escaped, LeavesWhatCanBeReadAsItIs) {
  for (const char* text : {"", "node-1 {} %v", "Zürich, 東京, \xF0\x9F\x90\x9F"}) {
    EXPECT_TRUE(IsPrintable(text)) << text;
    EXPECT_EQ(Escaped(text), text);
  }
}

TEST(Escaped, WritesOutWhatCannotBeSeenOrSteersATerminal) {
  const std::pair<std::string, std::string> cases[] = {
      {"a\nb\tc\rd", R"(a\nb\tc\x0dd)"},
      {"\x1b]0;title\a", R"(\x1b]0;title\x07)"},
      {std::string("a\0b", 3), R"(a\x00b)"},
      {"\x7f", R"(\x7f)"},
      {"\xe2\x80\xaeknil", R"(\u{202e}knil)"},
      {"\xe2\x80\xa8", R"(\u{2028})"},
      {"\xc0\xaf\xe4\xb8", R"(\xc0\xaf\xe4\xb8)"},
      {"\xed\xa0\x80\xf4\x90\x80\x80", R"(\xed\xa0\x80\xf4\x90\x80\x80)"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_FALSE(IsPrintable(text)) << expected;
    EXPECT_EQ(Escaped(text), expected);
    EXPECT_TRUE(IsPrintable(Escaped(text)));
  }
}

TEST(Escape, AllButUnreservedCharactersOfAUrlArePercentEncoded) {
  EXPECT_EQ(PercentEncoded("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncoded("a b+c/\xC3\xA9="), "a%20b%2Bc%2F%C3%A9%3D");
}

}  // namespace
}  // namespace rudderfish
