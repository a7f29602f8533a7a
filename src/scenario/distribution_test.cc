// SPDX-License-Identifier: Apache-2.0
#include "scenario/distribution.h"

#include <gtest/gtest.h>

#include <map>

namespace rudderfish {
namespace {

TEST(Distribution, ConstantTakesNothingFromTheGenerator) {
  Rng rng(1);
  EXPECT_EQ(Distribution::Constant(4.5).Draw(&rng), 4.5);
  EXPECT_EQ(rng.position(), 0u);
}

TEST(Distribution, RangeFillsItsWholeLengthEvenly) {
  const Distribution range = Distribution::Uniform(-1, 3);
  Rng rng(2);
  double sum = 0;
  std::map<int, int> quarter;
  for (int i = 0; i < 40'000; ++i) {
    const double value = range.Draw(&rng);
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 3);
    ++quarter[static_cast<int>(value + 1)];
    sum += value;
  }
  EXPECT_NEAR(sum / 40'000, 1, 0.03);
  for (int q = 0; q < 4; ++q) EXPECT_NEAR(quarter[q], 10'000, 400) << q;
}

TEST(Distribution, RangeOfCountsIncludesBothEnds) {
  const Distribution range = Distribution::Uniform(2, 4);
  Rng rng(3);
  std::map<int, int> seen;
  for (int i = 0; i < 30'000; ++i) ++seen[range.DrawInteger(&rng)];
  ASSERT_EQ(seen.size(), 3u);
  for (int count = 2; count <= 4; ++count) EXPECT_NEAR(seen[count], 10'000, 400) << count;
}

TEST(Distribution, ChoiceDrawsEachValueEquallyOften) {
  const Distribution choice = Distribution::Choice({7, 2, 5, 2});
  Rng rng(4);
  std::map<double, int> seen;
  for (int i = 0; i < 40'000; ++i) ++seen[choice.Draw(&rng)];
  EXPECT_NEAR(seen[2], 20'000, 600);  // Given twice.
  EXPECT_NEAR(seen[5], 10'000, 400);
  EXPECT_NEAR(seen[7], 10'000, 400);
  EXPECT_EQ(choice.min(), 2);
  EXPECT_EQ(choice.max(), 7);
}

TEST(Distribution, OfOneValueIsConstantHoweverItIsWritten) {
  EXPECT_EQ(Distribution::Uniform(3, 3), Distribution::Constant(3));
  EXPECT_EQ(Distribution::Choice({3}), Distribution::Constant(3));
  EXPECT_NE(Distribution::Choice({3, 4}), Distribution::Uniform(3, 4));
}

}  // namespace
}  // namespace rudderfish
