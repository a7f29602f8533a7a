// SPDX-License-Identifier: Apache-2.0
#include "cluster/node_costs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace rudderfish {
namespace {

// HP ProLiant ML110 G5, SPECpower_ssj2008 result 20110124-00339, as Beloglazov and Buyya have it in
// "Optimal online deterministic algorithms and adaptive heuristics ...", Concurrency and
// Computation 24(13), 2012, table 2: watts at active idle and at each tenth of the full load.
constexpr double kMeasured[] = {93.7, 97, 101, 105, 110, 116, 121, 125, 129, 133, 135};

NodeCosts MeasuredCosts() {
  NodeCosts costs{.idle_watts = kMeasured[0], .busy_watts = kMeasured[10], .asleep_watts = 2};
  for (int tenth = 1; tenth < 10; ++tenth) costs.curve.Add({tenth / 10.0, kMeasured[tenth]});
  return costs;
}

TEST(NodeCosts, ACurveGoesThroughWhatWasMeasured) {
  const NodeCosts costs = MeasuredCosts();
  for (int tenth = 0; tenth <= 10; ++tenth)
    EXPECT_DOUBLE_EQ(costs.AwakeWatts(tenth / 10.0), kMeasured[tenth]) << tenth;
}

TEST(NodeCosts, BetweenPointsACurveIsALine) {
  const NodeCosts costs = MeasuredCosts();
  EXPECT_DOUBLE_EQ(costs.AwakeWatts(0.05), 95.35);   // Half way from 93.7 to 97.
  EXPECT_DOUBLE_EQ(costs.AwakeWatts(0.475), 114.5);  // Three quarters of the way from 110 to 116.
  EXPECT_DOUBLE_EQ(costs.AwakeWatts(0.95), 134);     // Half way from 133 to 135.
  EXPECT_NEAR(costs.AwakeWatts(0.5) - (93.7 + 135) / 2, 1.65, 1e-12);  // Above the line.
}

TEST(NodeCosts, ACurveStaysAtBusyAboveFullUse) { EXPECT_EQ(MeasuredCosts().AwakeWatts(1.5), 135); }

TEST(NodeCosts, ACurveMayFall) {
  NodeCosts costs{.idle_watts = 50, .busy_watts = 100};
  costs.curve.Add({0.5, 120});
  costs.curve.Add({0.75, 40});
  EXPECT_DOUBLE_EQ(costs.AwakeWatts(0.25), 85);
  EXPECT_DOUBLE_EQ(costs.AwakeWatts(0.7), 56);
  EXPECT_DOUBLE_EQ(costs.AwakeWatts(0.875), 70);
  EXPECT_EQ(costs.MostWatts(), 120);
  EXPECT_EQ((NodeCosts{.idle_watts = 50, .busy_watts = 100}.MostWatts()), 100);
}

RC_GTEST_PROP(NodeCosts, WithoutACurveTheyAreTheLineToTheBit, (uint64_t seed)) {
  Rng rng(seed);
  const double idle = rng.Uniform(0, 500), busy = idle + rng.Uniform(0, 500);
  const NodeCosts costs{.idle_watts = idle, .busy_watts = busy};
  const double use = rng.Uniform(0, 1.5);
  RC_ASSERT(costs.AwakeWatts(use) == idle + (busy - idle) * use);
}

RC_GTEST_PROP(NodeCosts, PointsOnTheLineChangeNothing, (uint64_t seed)) {
  Rng rng(seed);
  NodeCosts costs{.idle_watts = rng.Uniform(0, 500)};
  costs.busy_watts = costs.idle_watts + rng.Uniform(0, 500);
  NodeCosts curved = costs;
  const int points = rng.Between(1, PowerCurve::kPointsMax);
  for (int i = 1; i <= points; ++i) {
    const double use = i / (points + 1.0);
    curved.curve.Add({use, costs.AwakeWatts(use)});
  }
  const double use = rng.Uniform();
  RC_ASSERT(std::abs(curved.AwakeWatts(use) - costs.AwakeWatts(use)) < 1e-9);
  RC_ASSERT(curved.AwakeWatts(use) <= curved.MostWatts() + 1e-9);
}

}  // namespace
}  // namespace rudderfish
