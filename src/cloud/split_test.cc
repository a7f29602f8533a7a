// SPDX-License-Identifier: Apache-2.0
#include "cloud/split.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

namespace rudderfish {
namespace {

std::string RefusalOf(std::string_view text) {
  const auto split = ParseSplit(text);
  return split ? "accepted" : split.error().message;
}

TEST(Split, IsReadInPercent) {
  EXPECT_EQ(ParseSplit("eu=60,us=40").value(),
            (std::vector<RegionShare>{{"eu", 0.6}, {"us", 0.4}}));
  EXPECT_EQ(ParseSplit("eu=100,us=0").value(), (std::vector<RegionShare>{{"eu", 1}, {"us", 0}}));
  // A third has no end; the sum is 1 all the same.
  const auto thirds = ParseSplit("a=33.33,b=33.33,c=33.34").value();
  EXPECT_DOUBLE_EQ(thirds[0].share + thirds[1].share + thirds[2].share, 1);
}

TEST(Split, SaysWhatIsWrong) {
  EXPECT_EQ(RefusalOf("eu=60,us=35"), "the shares sum to 95 %; they must sum to 100 %");
  EXPECT_EQ(RefusalOf("eu=60,eu=40"), "eu is named twice");
  EXPECT_EQ(RefusalOf("eu=60,us"), "expected REGION=PERCENT, found `us`");
  EXPECT_EQ(RefusalOf("=100"), "expected REGION=PERCENT, found `=100`");
  EXPECT_EQ(RefusalOf(""), "expected REGION=PERCENT, found ``");
  EXPECT_EQ(RefusalOf("eu=-5,us=105"), "expected a percentage from 0 to 100 for eu, found `-5`");
  EXPECT_EQ(RefusalOf("eu=nan"), "expected a percentage from 0 to 100 for eu, found `nan`");
  EXPECT_EQ(RefusalOf("eu=60%,us=40%"), "expected a percentage from 0 to 100 for eu, found `60%`");
}

TEST(Split, WeightsGoToTheLargestRemainders) {
  EXPECT_EQ(WeightsOf(std::vector{1 / 3.0, 1 / 3.0, 1 / 3.0}, 100), (std::vector{34, 33, 33}));
  EXPECT_EQ(WeightsOf(std::vector{0.126, 0.437, 0.437}, 10), (std::vector{1, 5, 4}));
  EXPECT_EQ(WeightsOf(std::vector{1.0, 0.0}, 256), (std::vector{256, 0}));
}

RC_GTEST_PROP(Split, WeightsSumToTheTotalAndAreNeverOffByOne, ()) {
  const auto parts = *rc::gen::suchThat(
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000)),
      [](const auto& all) { return std::accumulate(all.begin(), all.end(), 0) > 0; });
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  const int total = *rc::gen::element(100, 256, 1'000'000);
  std::vector<double> shares;
  for (const int part : parts) shares.push_back(part / sum);
  const std::vector<int> weights = WeightsOf(shares, total);
  RC_ASSERT(std::accumulate(weights.begin(), weights.end(), 0) == total);
  for (size_t i = 0; i < weights.size(); ++i) {
    RC_ASSERT(std::abs(weights[i] - shares[i] * total) < 1 + 1e-6);
    if (parts[i] == 0) RC_ASSERT(weights[i] == 0);
  }
}

}  // namespace
}  // namespace rudderfish
