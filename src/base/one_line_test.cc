// SPDX-License-Identifier: Apache-2.0
#include "base/one_line.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(OneLine, IsPrintableAndBounded) {
  EXPECT_EQ(OneLine("a\nb\x1b[31m"), "a b [31m");
  EXPECT_EQ(OneLine("ab\xc3\xa4z", 3), "ab...");
  EXPECT_EQ(OneLine("abc", 3), "abc");
  EXPECT_EQ(OneLine("abc \n"), "abc");
  EXPECT_EQ(OneLine(std::string(kOneLineBytes + 1, 'x')).size(), kOneLineBytes + 3);
}

}  // namespace
}  // namespace rudderfish
