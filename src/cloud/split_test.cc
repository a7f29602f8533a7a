// SPDX-License-Identifier: Apache-2.0
#include "cloud/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

namespace rudderfish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Split, ReadsPercent) {
  const Result<Split> split = ParseSplit("eu=62.5,us=37.5,ap=0");
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_THAT(*split, ElementsAre(RegionShare{"eu", 0.625}, RegionShare{"us", 0.375},
                                  RegionShare{"ap", 0}));
  EXPECT_EQ(SplitText(*split), "eu 62.5 %, us 37.5 %, ap 0 %");
}

TEST(Split, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"eu=60,us=30", "the shares sum to 90 %"},
      {"eu=60,us", "`us`: expected REGION=PERCENT"},
      {"", "expected REGION=PERCENT"},
      {"=100", "expected REGION=PERCENT"},
      {"eu=50,eu=50", "`eu` is given twice"},
      {"eu=-1,us=101", "expected a percentage from 0 to 100"},
      {"eu=nan", "expected a percentage"},
      {"eu=100x", "expected a percentage"},
      {"eu=100,", "expected REGION=PERCENT"}};
  for (const auto& [text, says] : cases) {
    const Result<Split> split = ParseSplit(text);
    ASSERT_FALSE(split) << text;
    EXPECT_THAT(split.error().message, HasSubstr(says)) << text;
  }
}

TEST(Split, GivesTheLargestRemaindersMore) {
  EXPECT_THAT(Quantise(std::vector<double>{0.6, 0.4}, 256), ElementsAre(154, 102));
  EXPECT_THAT(Quantise(std::vector<double>{1.0 / 3, 1.0 / 3, 1.0 / 3}, 100),
              ElementsAre(34, 33, 33));
  EXPECT_THAT(Quantise(std::vector<double>{0.005, 0.995}, 100), ElementsAre(1, 99));
  EXPECT_THAT(Quantise(std::vector<double>{1, 0}, 1'000'000), ElementsAre(1'000'000, 0));
}

RC_GTEST_PROP(Split, QuantisedSharesSumExactlyAndAreNear, ()) {
  const auto parts =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1'000'000)));
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  RC_PRE(sum > 0);
  std::vector<double> shares;
  for (const int part : parts) shares.push_back(part / sum);
  const int64_t total = *rc::gen::element<int64_t>(1, 100, 255, 256, 1'000'000);
  const std::vector<int64_t> weights = Quantise(shares, total);
  RC_ASSERT(std::accumulate(weights.begin(), weights.end(), int64_t{0}) == total);
  for (size_t i = 0; i < shares.size(); ++i) {
    RC_ASSERT(weights[i] >= 0 && weights[i] <= total);
    RC_ASSERT(std::abs(static_cast<double>(weights[i]) - shares[i] * static_cast<double>(total)) <
              1 + 1e-6);
  }
  RC_ASSERT(Quantise(shares, total) == weights);
}

}  // namespace
}  // namespace rudderfish
