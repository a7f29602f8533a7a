// SPDX-License-Identifier: Apache-2.0
#include "cloud/split_guard.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rudderfish {
namespace {

const std::vector<std::string> kRegions = {"eu", "us", "as"};

GuardedSplit Guarded(const std::vector<double>& now, const std::vector<double>& wanted,
                     const std::vector<RegionState>& states, Duration age = {},
                     const SplitLimits& limits = {}) {
  return GuardSplit(
      {.regions = kRegions, .now = now, .wanted = wanted, .states = states, .age = age}, limits);
}

constexpr RegionState kUp = RegionState::kHealthy, kDown = RegionState::kUnhealthy,
                      kUnknown = RegionState::kUnseen;

TEST(SplitGuard, AStepIsLimitedAndSaysSo) {
  const GuardedSplit split = Guarded({0.2, 0.4, 0.4}, {0.6, 0.2, 0.2}, {kUp, kUp, kUp});
  EXPECT_NEAR(split.shares[0], 0.3, 1e-12);
  EXPECT_NEAR(split.shares[1], 0.35, 1e-12);
  ASSERT_EQ(split.notes.size(), 1u);
  EXPECT_EQ(split.notes[0], "a step changes a region by at most 10.0 %; 30.0 % more are wanted");
}

TEST(SplitGuard, ARegionThatIsDownIsLeftAtOnce) {
  const GuardedSplit split = Guarded({0.5, 0.25, 0.25}, {0.5, 0.25, 0.25}, {kDown, kUp, kUp});
  EXPECT_EQ(split.shares[0], 0);
  EXPECT_NEAR(split.shares[1], 0.5, 1e-12);
  EXPECT_EQ(split.notes[0], "eu gets nothing: it is not healthy");
  const GuardedSplit unseen = Guarded({0, 0.5, 0.5}, {1, 0, 0}, {kUnknown, kUp, kUp});
  EXPECT_EQ(unseen.shares, (std::vector<double>{0, 0.5, 0.5}));
  EXPECT_EQ(unseen.notes[0], "eu gets nothing: its health is not known");
}

TEST(SplitGuard, NothingMovesOnStaleKnowledgeOrWithoutAHealthyRegion) {
  const std::vector<double> now = {0.2, 0.3, 0.5};
  const GuardedSplit stale = Guarded(now, {1, 0, 0}, {kUp, kUp, kUp}, std::chrono::seconds(95));
  EXPECT_TRUE(stale.held);
  EXPECT_EQ(stale.shares, now);
  EXPECT_EQ(stale.notes[0],
            "the split stays: what is known of the regions is 95 s old; at most 90 s");
  const GuardedSplit dark = Guarded(now, {1, 0, 0}, {kDown, kUnknown, kDown});
  EXPECT_TRUE(dark.held);
  EXPECT_EQ(dark.shares, now);
}

TEST(SplitGuard, AHealthyRegionKeepsTheFloor) {
  const GuardedSplit split =
      Guarded({0.9, 0.05, 0.05}, {1, 0, 0}, {kUp, kUp, kUp}, {}, {.change_max = 1});
  EXPECT_NEAR(split.shares[1], 0.01, 1e-12);
  EXPECT_NEAR(split.shares[0], 0.98, 1e-12);
}

std::vector<double> AnyShares() {
  const auto parts = *rc::gen::suchThat(
      rc::gen::container<std::vector<int>>(3, rc::gen::inRange(0, 100)),
      [](const auto& all) { return std::accumulate(all.begin(), all.end(), 0) > 0; });
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  return {parts[0] / sum, parts[1] / sum, parts[2] / sum};
}

RC_GTEST_PROP(SplitGuard, NeverSendsAnythingToADarkRegionAndNeverLosesARequest, ()) {
  const std::vector<double> now = AnyShares(), wanted = AnyShares();
  const auto states =
      *rc::gen::container<std::vector<RegionState>>(3, rc::gen::element(kUp, kDown, kUnknown));
  const SplitLimits limits{.change_max = *rc::gen::element(0.05, 0.1, 1.0),
                           .floor = *rc::gen::element(0.0, 0.01, 0.3)};
  const GuardedSplit split = Guarded(now, wanted, states, {}, limits);
  const double sum = std::accumulate(split.shares.begin(), split.shares.end(), 0.0);
  RC_ASSERT(std::abs(sum - 1) < 1e-9);
  if (split.held) return;
  const bool all_up = std::count(states.begin(), states.end(), kUp) == 3;
  for (size_t i = 0; i < 3; ++i) {
    RC_ASSERT(split.shares[i] >= -1e-12);
    if (states[i] != kUp) RC_ASSERT(split.shares[i] == 0);
    if (all_up) RC_ASSERT(std::abs(split.shares[i] - now[i]) <= limits.change_max + 1e-9);
  }
}

RC_GTEST_PROP(SplitGuard, StepsArriveWhereTheyAreWanted, ()) {
  std::vector<double> shares = AnyShares();
  const std::vector<double> wanted = AnyShares();
  for (int step = 0; step < 30; ++step)
    shares = Guarded(shares, wanted, {kUp, kUp, kUp}, {}, {.floor = 0}).shares;
  for (size_t i = 0; i < 3; ++i) RC_ASSERT(std::abs(shares[i] - wanted[i]) < 1e-9);
}

}  // namespace
}  // namespace rudderfish
