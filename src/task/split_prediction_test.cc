// SPDX-License-Identifier: Apache-2.0
#include "task/split_prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

// `home` has users, and all regions so many ready nodes.
struct SplitAsked {
  std::shared_ptr<const RegionLaws> laws = testing::LawsOf(testing::SmallRegions());
  std::vector<RegionSight> seen{3};
  std::vector<double> shares{1, 0, 0, 0, 1, 0, 0, 0, 1};

  explicit SplitAsked(double demand_per_s, int nodes = 2) {
    seen[0].demand_per_s = demand_per_s;
    for (RegionSight& one : seen) {
      one.ready[kOnDemand] = nodes;
      one.node_per_h[kOnDemand] = 0.15;
      one.node_per_h[kSpot] = 0.05;
      one.carbon_g_per_kwh = 300;
    }
  }

  RoutingQuestion question() const {
    return {.interval_s = 60, .laws = laws.get(), .regions = seen};
  }
  SplitPrediction Of(double home, double near, double far) {
    shares[0] = home;
    shares[1] = near;
    shares[2] = far;
    return PredictSplit(question(), shares, 0);
  }
};

TEST(SplitPrediction, AResponseTakesTheTripTheWaitOfErlangAndTheService) {
  SplitAsked asked(120);  // Of 160 requests a second that 2 nodes of 4 pods serve.
  const double c = 8, offered = 120.0 / 20, waits = [&] {  // Erlang's formula, by its recursion.
    double blocked = 1;
    for (int i = 1; i <= c; ++i) blocked = offered * blocked / (i + offered * blocked);
    return blocked / (1 - offered / c * (1 - blocked));
  }();
  const SplitPrediction home = asked.Of(1, 0, 0);
  EXPECT_NEAR(home.response_s, 1 / 20.0 + waits / (160 - 120), 1e-4);
  EXPECT_NEAR(home.parts[SplitPrediction::kWait], home.response_s, 1e-12);  // At 1 a second.
  // Half of them 20 ms away: waiting is negligible.
  const SplitPrediction half = asked.Of(0.5, 0.5, 0);
  EXPECT_NEAR(half.response_s, 0.05 + 0.01, 1e-3);
  EXPECT_GT(half.parts[SplitPrediction::kEgress], 0);
}

TEST(SplitPrediction, ADistantRegionIsLaterAsItsTripUsesUpTheDeadline) {
  SplitAsked asked(10);
  const double late = std::exp(-20 * (0.4 - 0.2));  // Of an exponential service.
  const SplitPrediction far = asked.Of(0, 0, 1);
  EXPECT_NEAR(far.late_share, late, 1e-4);
  EXPECT_NEAR(far.parts[SplitPrediction::kLate], 20 * late, 2e-3);
  EXPECT_NEAR(far.objective(),
              far.parts[0] + far.parts[1] + far.parts[2] + far.parts[3] + far.parts[4], 1e-12);
}

TEST(SplitPrediction, RegionsThatDoNotServeMakeAllLate) {
  SplitAsked asked(10);
  asked.seen[1].reachable = false;
  EXPECT_DOUBLE_EQ(asked.Of(0, 1, 0).late_share, 1);
  asked.seen[1].reachable = true;
  asked.seen[1].ready[kOnDemand] = 0;
  EXPECT_DOUBLE_EQ(asked.Of(0, 1, 0).late_share, 1);
  EXPECT_TRUE(std::isinf(PredictOneMore(asked.question(), asked.shares, 0, 1).objective()));
}

TEST(SplitPrediction, WhatIsNotAskedAboutStillLoadsTheRegions) {
  SplitAsked asked(100);
  const double alone = asked.Of(1, 0, 0).response_s;
  asked.seen[1].demand_per_s = 50;  // Of `near`, all served at home.
  asked.shares[3] = 1;
  asked.shares[4] = 0;
  EXPECT_GT(asked.Of(1, 0, 0).response_s, alone);
  const SplitPrediction all = PredictSplit(asked.question(), asked.shares, -1);
  const SplitPrediction home = PredictSplit(asked.question(), asked.shares, 0);
  const SplitPrediction near = PredictSplit(asked.question(), asked.shares, 1);
  EXPECT_NEAR(all.objective(), (100 * home.objective() + 50 * near.objective()) / 150, 1e-9);
}

TEST(SplitPrediction, OneMoreCostsWhatItMakesOthersWait) {
  SplitAsked asked(150);
  const SplitPrediction here = PredictOneMore(asked.question(), asked.shares, 0, 0);
  const SplitPrediction there = PredictOneMore(asked.question(), asked.shares, 0, 1);
  EXPECT_GT(here.parts[SplitPrediction::kWait], there.parts[SplitPrediction::kWait]);
  EXPECT_EQ(here.parts[SplitPrediction::kNodes], there.parts[SplitPrediction::kNodes]);
  EXPECT_LT(here.parts[SplitPrediction::kEgress], there.parts[SplitPrediction::kEgress]);
}

TEST(SplitPrediction, NoRequestsCostNothing) {
  SplitAsked asked(0);
  EXPECT_EQ(asked.Of(1, 0, 0).objective(), 0);
  EXPECT_EQ(SplitPartName(SplitPrediction::kWait), "wait");
}

}  // namespace
}  // namespace rudderfish
