// SPDX-License-Identifier: Apache-2.0
#include "cloud/split_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace rudderfish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Duration kFresh = std::chrono::seconds(1);

std::vector<RegionHealth> AllHealthy(const Split& split) {
  std::vector<RegionHealth> health;
  for (const RegionShare& one : split) health.push_back({one.region, true, ""});
  return health;
}

void ExpectShares(const Split& split, const std::vector<double>& shares) {
  ASSERT_EQ(split.size(), shares.size());
  for (size_t i = 0; i < shares.size(); ++i)
    EXPECT_NEAR(split[i].share, shares[i], 1e-9) << split[i].region;
}

TEST(SplitGuard, LetsASmallChangePass) {
  const Split now = {{"eu", 0.6}, {"us", 0.4}}, wanted = {{"eu", 0.65}, {"us", 0.35}};
  const SplitReview review = ReviewSplit(now, wanted, AllHealthy(now), kFresh, {});
  ExpectShares(review.split, {0.65, 0.35});
  EXPECT_THAT(review.reasons, IsEmpty());
}

TEST(SplitGuard, ShortensALargeChangeByOneFactor) {
  const Split now = {{"a", 0.8}, {"b", 0.2}, {"c", 0}},
              wanted = {{"a", 0.4}, {"b", 0.3}, {"c", 0.3}};
  const SplitReview review = ReviewSplit(now, wanted, AllHealthy(now), kFresh, {});
  ExpectShares(review.split, {0.7, 0.225, 0.075});
  EXPECT_THAT(review.reasons, ElementsAre(HasSubstr("at most 10 points in one step, not by 40")));
}

TEST(SplitGuard, KeepsAFloorForProbing) {
  const Split now = {{"a", 0.95}, {"b", 0.05}}, wanted = {{"a", 1}, {"b", 0}};
  const SplitReview review = ReviewSplit(now, wanted, AllHealthy(now), kFresh, {});
  ExpectShares(review.split, {0.99, 0.01});
  EXPECT_THAT(review.reasons, ElementsAre("b keeps 1 % for probing"));
}

TEST(SplitGuard, LeavesADeadRegionAtOnce) {
  const Split now = {{"a", 0.5}, {"b", 0.3}, {"c", 0.2}};
  std::vector<RegionHealth> health = AllHealthy(now);
  health[0] = {"a", false, "0 endpoints are ready"};
  const SplitReview review = ReviewSplit(now, now, health, kFresh, {});
  ExpectShares(review.split, {0, 0.6, 0.4});
  EXPECT_THAT(review.reasons, ElementsAre("a gets no requests: 0 endpoints are ready"));
}

TEST(SplitGuard, SharesEquallyWhatWasWantedOfTheDeadAlone) {
  const Split now = {{"a", 1}, {"b", 0}, {"c", 0}};
  std::vector<RegionHealth> health = AllHealthy(now);
  health[0].is_healthy = false;
  ExpectShares(ReviewSplit(now, now, health, kFresh, {}).split, {0, 0.5, 0.5});
}

TEST(SplitGuard, KeepsTheLastGoodSplitWhereItSeesNothing) {
  const Split now = {{"a", 0.5}, {"b", 0.5}}, wanted = {{"a", 0.55}, {"b", 0.45}};
  const SplitReview stale =
      ReviewSplit(now, wanted, AllHealthy(now), std::chrono::seconds(181), {});
  EXPECT_EQ(stale.split, now);
  EXPECT_TRUE(stale.is_frozen);
  EXPECT_THAT(stale.reasons, ElementsAre(HasSubstr("181 s old, more than 180 s")));
  const SplitReview dead =
      ReviewSplit(now, wanted, {{"a", false, "x"}, {"b", false, "y"}}, kFresh, {});
  EXPECT_EQ(dead.split, now);
  EXPECT_THAT(dead.reasons.back(), HasSubstr("no region is healthy"));
}

Split AnySplit(size_t size) {
  Split split;
  double sum = 0;
  for (size_t i = 0; i < size; ++i) {
    split.push_back({"r" + std::to_string(i), static_cast<double>(*rc::gen::inRange(0, 1000))});
    sum += split.back().share;
  }
  RC_PRE(sum > 0);
  for (RegionShare& one : split) one.share /= sum;
  return split;
}

RC_GTEST_PROP(SplitGuard, KeepsItsLimitsWhateverIsWanted, ()) {
  const auto size = *rc::gen::inRange<size_t>(1, 17);
  const Split now = AnySplit(size), wanted = AnySplit(size);
  std::vector<RegionHealth> health = AllHealthy(now);
  bool are_all_healthy = true, is_any_healthy = false;
  for (RegionHealth& one : health) {
    one.is_healthy = *rc::gen::inRange(0, 4) > 0;
    are_all_healthy &= one.is_healthy;
    is_any_healthy |= one.is_healthy;
  }
  const SplitLimits limits{.step = *rc::gen::inRange(1, 101) / 100.0,
                           .floor = *rc::gen::inRange(0, 6) / 100.0};
  const SplitReview review = ReviewSplit(now, wanted, health, kFresh, limits);
  if (!is_any_healthy) {
    RC_ASSERT(review.split == now);
    return;
  }
  double sum = 0, shares_left = 0;
  for (size_t i = 0; i < size; ++i) {
    const double share = review.split[i].share;
    RC_ASSERT(review.split[i].region == wanted[i].region);
    RC_ASSERT(share >= -1e-9);
    if (!health[i].is_healthy) RC_ASSERT(share == 0.0);
    sum += share;
    if (health[i].is_healthy) shares_left += now[i].share;
  }
  RC_ASSERT(std::abs(sum - 1) < 1e-9);
  for (size_t i = 0; i < size; ++i) {
    const double share = review.split[i].share;
    if (are_all_healthy) RC_ASSERT(std::abs(share - now[i].share) <= limits.step + 1e-9);
    // A region at or above the floor stays there.
    if (health[i].is_healthy && shares_left > 0 && now[i].share >= limits.floor)
      RC_ASSERT(share >= limits.floor - 1e-9);
  }
  if (are_all_healthy && review.reasons.empty()) {
    for (size_t i = 0; i < size; ++i)
      RC_ASSERT(std::abs(review.split[i].share - wanted[i].share) < 1e-9);
  }
}

// However far it is, steps arrive.
RC_GTEST_PROP(SplitGuard, ArrivesAtWhatIsWanted, ()) {
  const auto size = *rc::gen::inRange<size_t>(1, 9);
  Split now = AnySplit(size);
  const Split wanted = AnySplit(size);
  const SplitLimits limits{.floor = 0};
  for (int step = 0; step < 11; ++step)
    now = ReviewSplit(now, wanted, AllHealthy(now), kFresh, limits).split;
  for (size_t i = 0; i < size; ++i) RC_ASSERT(std::abs(now[i].share - wanted[i].share) < 1e-9);
}

}  // namespace
}  // namespace rudderfish
