// SPDX-License-Identifier: Apache-2.0
#include "policy/region_autoscaler.h"

#include <gtest/gtest.h>

#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

struct Scaled {
  std::shared_ptr<const RegionLaws> laws = testing::LawsOf(testing::SmallRegions());
  RegionAutoscaler scaler;
  std::vector<RegionSight> sights = std::vector<RegionSight>(3);
  std::vector<int> nodes = std::vector<int>(3 * kNodePrices);
  bool has_spot = false;

  explicit Scaled(const RegionAutoscaling& options) : scaler(options, 3) {}

  // Those of the first region after it serves so much.
  std::pair<int, int> Decide(double per_s) {
    const std::vector<double> load = {per_s, 0, 0};
    scaler.Decide({.has_spot = has_spot, .laws = laws.get(), .regions = sights}, load, nodes);
    return {nodes[kOnDemand], nodes[kSpot]};
  }
};

TEST(RegionAutoscaler, AsksForNodesAtItsTargetUseAndIgnoresSmallDifferences) {
  Scaled region({.use = 0.5, .tolerance = 0.1});
  region.sights[0].ready[kOnDemand] = 10;  // At the target they serve 400.
  EXPECT_EQ(region.Decide(430), std::pair(10, 0));
  EXPECT_EQ(region.Decide(480), std::pair(12, 0));
  EXPECT_EQ(region.Decide(1e6), std::pair(40, 0));      // The quota.
  EXPECT_EQ(region.nodes[kNodePrices + kOnDemand], 1);  // Others keep one.
}

TEST(RegionAutoscaler, GivesNodesBackOnlyAfterItsWindow) {
  Scaled region({.use = 0.5, .down_s = 180});
  region.sights[0].ready[kOnDemand] = 10;
  EXPECT_EQ(region.Decide(400).first, 10);
  for (int minute = 0; minute < 3; ++minute) EXPECT_EQ(region.Decide(80).first, 10) << minute;
  EXPECT_EQ(region.Decide(80).first, 2);
}

TEST(RegionAutoscaler, KeepsOnDemandNodesUntilSpotNodesServe) {
  Scaled region({.use = 0.5, .spot_share = 0.5});
  region.has_spot = true;
  region.sights[0].ready[kOnDemand] = 10;
  EXPECT_EQ(region.Decide(400), std::pair(10, 5));
  region.sights[0].pending[kSpot] = 5;
  region.sights[0].ready[kOnDemand] = 10;
  EXPECT_EQ(region.Decide(400).first, 10);
  region.sights[0].pending[kSpot] = 0;
  region.sights[0].ready[kSpot] = 5;
  for (int minute = 0; minute < 6; ++minute) region.Decide(400);
  EXPECT_EQ(region.Decide(400), std::pair(5, 5));
}

}  // namespace
}  // namespace rudderfish
