// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <limits>

namespace rudderfish {
namespace {

constexpr std::array<std::string_view, 4> kKnown = {"workloads", "nodes", "seed", "layers"};

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("ab", "ba"), 1);
  EXPECT_EQ(EditDistance("ca", "abc"), 3);  // 2 if a swapped pair could be edited again.
}

RC_GTEST_PROP(EditDistance, IsSymmetricAndZeroOnlyForEquals, (std::string a, std::string b)) {
  RC_ASSERT(EditDistance(a, b) == EditDistance(b, a));
  RC_ASSERT((EditDistance(a, b) == 0) == (a == b));
  RC_ASSERT(EditDistance(a, a + "x") == 1);
}

TEST(Nearest, FindsTheMistypedWord) {
  EXPECT_EQ(Nearest("wrokloads", kKnown), "workloads");
  EXPECT_EQ(Nearest("Nodes", kKnown), "nodes");
  EXPECT_EQ(Nearest("layer", kKnown), "layers");
}

TEST(Nearest, FindsNothingWhereMoreThanAThirdDiffers) {
  EXPECT_EQ(Nearest("services", kKnown), "");
  EXPECT_EQ(Nearest("sd", kKnown), "");
  EXPECT_EQ(Nearest("", kKnown), "");
  EXPECT_EQ(Nearest(std::string(100000, 'x'), kKnown), "");
  EXPECT_EQ(Nearest("nodes", {}), "");
}

TEST(DidYouMean, EndsASentenceOrSaysNothing) {
  EXPECT_EQ(DidYouMean("sead", kKnown), "; did you mean `seed`?");
  EXPECT_EQ(DidYouMean("zzz", kKnown), "");
}

TEST(RangeInWords, LeavesOutBoundsThatAreNone) {
  EXPECT_EQ(RangeInWords("an integer", int64_t{0}, int64_t{9}), "an integer from 0 to 9");
  EXPECT_EQ(RangeInWords("an integer", int64_t{1}, std::numeric_limits<int64_t>::max()),
            "an integer of at least 1");
  EXPECT_EQ(RangeInWords("a number", std::numeric_limits<double>::lowest(), 0.5),
            "a number of at most 0.5");
  EXPECT_EQ(RangeInWords("a number", std::numeric_limits<double>::lowest(),
                         std::numeric_limits<double>::max()),
            "a number");
}

}  // namespace
}  // namespace rudderfish
