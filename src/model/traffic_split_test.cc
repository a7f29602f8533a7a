// SPDX-License-Identifier: Apache-2.0
#include "model/traffic_split.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/count_allocations.h"
#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Split {
  std::shared_ptr<const RegionLaws> laws = testing::LawsOf(testing::SmallRegions());
  TrafficSplitSolver solver{laws};
  std::vector<double> per_s = {300, 300, 300}, cost = {1, 1.2, 2, 1.2, 1, 2, 2, 2, 1};
  std::vector<double> shares = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::vector<int> nodes = {10, 10, 10};
  double moving = 0;

  void Solve() {
    solver.Solve({.per_s = per_s, .pair_cost = cost, .nodes = nodes, .moving_cost = moving},
                 shares);
    for (int from = 0; from < 3; ++from)
      EXPECT_NEAR(shares[3 * from] + shares[3 * from + 1] + shares[3 * from + 2], 1, 1e-12);
  }
};

TEST(TrafficSplit, StaysHomeWhereThatIsCheapest) {
  Split split;
  split.Solve();
  EXPECT_EQ(split.shares, (std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(TrafficSplit, SendsOnlyWhatAFullRegionCannotServe) {
  Split split;
  split.nodes = {2, 10, 10};  // 160 requests per second at home.
  split.Solve();
  EXPECT_GT(split.shares[0], 0.3);
  EXPECT_LT(split.shares[0], 0.55);
  EXPECT_GT(split.shares[1], 0.4);  // To the near one,
  EXPECT_EQ(split.shares[2], 0);    // not to the far one.
  EXPECT_LT(split.solver.load_per_s()[0], 160);
}

TEST(TrafficSplit, IsNoDearerThanAnyMoveOfOneChunk) {
  Split split;
  split.nodes = {3, 4, 12};
  split.per_s = {400, 350, 100};
  split.Solve();
  const auto load = split.solver.load_per_s();
  for (int from = 0; from < 3; ++from) {
    const double chunk = split.per_s[from] / TrafficSplitSolver::kChunks;
    for (int to = 0; to < 3; ++to) {
      if (split.shares[3 * from + to] == 0) continue;
      const double here =
          split.cost[3 * from + to] + split.laws->CongestionOf(split.nodes[to], load[to]);
      for (int other = 0; other < 3; ++other) {
        if (other == to) continue;
        EXPECT_LE(here, split.cost[3 * from + other] +
                            split.laws->CongestionOf(split.nodes[other], load[other] + chunk) +
                            0.05);
      }
    }
  }
}

TEST(TrafficSplit, LeavesADeadRegionAndKeepsTheLastSplitWhereAllAreDead) {
  Split split;
  for (int from = 0; from < 3; ++from) split.cost[3 * from] = kNever;
  split.Solve();
  EXPECT_EQ(split.shares[0], 0);
  EXPECT_EQ(split.shares[1], 1);
  split.nodes = {0, 0, 0};
  split.Solve();
  EXPECT_EQ(split.shares[1], 1);
}

TEST(TrafficSplit, AMoveMustBeWorthItsPrice) {
  Split split;
  split.cost[1] = 0.9;  // A little cheaper than home.
  split.moving = 0.2;
  split.Solve();
  EXPECT_EQ(split.shares[0], 1);
  split.moving = 0.05;
  split.Solve();
  EXPECT_GT(split.shares[1], 0.5);
}

TEST(TrafficSplit, AllocatesNothing) {
  Split split;
  const long before = allocation_count;
  split.solver.Solve({.per_s = split.per_s, .pair_cost = split.cost, .nodes = split.nodes},
                     split.shares);
  EXPECT_EQ(allocation_count - before, 0);
}

}  // namespace
}  // namespace rudderfish
