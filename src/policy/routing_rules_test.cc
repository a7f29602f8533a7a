// SPDX-License-Identifier: Apache-2.0
#include "policy/routing_rules.h"

#include <gtest/gtest.h>

#include "policy/policy_table.h"
#include "policy/registry.h"
#include "tests/support/count_allocations.h"
#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

// One decision after another of a policy of the table.
struct Routed {
  std::shared_ptr<const RegionLaws> laws;
  std::unique_ptr<RoutingPolicy> policy;
  std::unique_ptr<RoutingMemory> memory;
  std::vector<RegionSight> sights = std::vector<RegionSight>(3);
  std::vector<double> shares = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::vector<int> nodes = std::vector<int>(3 * kNodePrices);

  explicit Routed(std::string_view spec, const RegionNetwork& network = testing::SmallRegions())
      : laws(testing::LawsOf(network)),
        policy(MakeRoutingPolicy(*ParsePolicySpec(spec)).value()),
        memory(policy->NewMemory(laws)) {
    for (int r = 0; r < 3; ++r) {
      sights[r].demand_per_s = 400;
      sights[r].ready[kOnDemand] = 10;  // 800 requests per second.
      sights[r].node_per_h[kOnDemand] = network.regions[r].on_demand_per_h;
      sights[r].node_per_h[kSpot] = network.regions[r].spot_per_h;
      sights[r].carbon_g_per_kwh = network.regions[r].carbon_g_per_kwh[0];
    }
  }

  std::vector<double> Decide() {
    policy->Decide({.laws = laws.get(), .regions = sights}, memory.get(), {shares, nodes});
    for (int from = 0; from < 3; ++from) {
      double sum = 0;
      for (int to = 0; to < 3; ++to) sum += shares[3 * from + to];
      EXPECT_NEAR(sum, 1, 1e-9) << from;
    }
    return {shares[0], shares[1], shares[2]};  // Of home.
  }
};

using Shares = std::vector<double>;

TEST(RoutingRules, AProviderThatServesMoreThanItsLimitPaysForIt) {
  RegionNetwork network = testing::SmallRegions();
  network.providers = {"", "one", "other"};
  for (int r = 0; r < 3; ++r) network.regions[r].provider = r < 2 ? 1 : 2;
  network.limits.provider_percent = 50;
  const auto served = [&](std::string_view spec) {  // In the mean of the last decisions.
    Routed routed(spec, network);
    double sum = 0;
    for (int step = 0; step < 80; ++step) {
      for (int to = 0; to < 3; ++to) {
        routed.sights[to].load_per_s = 0;
        for (int from = 0; from < 3; ++from)
          routed.sights[to].load_per_s += 400 * routed.shares[3 * from + to];
      }
      if (step >= 40) sum += routed.sights[0].load_per_s + routed.sights[1].load_per_s;
      routed.Decide();
    }
    return sum / 40 / 1200;
  };
  EXPECT_NEAR(served("lp"), 2.0 / 3, 1e-9);  // All at home.
  EXPECT_NEAR(served("lp:provider_price=0.1"), 0.5, 0.08);
  network.limits.provider_percent = RoutingLimits::kNone;
  EXPECT_NEAR(served("lp:provider_price=0.1"), 2.0 / 3, 1e-9);
}

TEST(RoutingRules, APriceOfTheRuleStandsInPlaceOfTheObjectives) {
  RegionNetwork network = testing::SmallRegions();
  network.objective.carbon_per_kg = 0;
  network.regions[0].carbon_g_per_kwh.fill(900);
  network.regions[1].carbon_g_per_kwh.fill(10);
  EXPECT_EQ(Routed("lp", network).Decide(), Shares({1, 0, 0}));
  EXPECT_EQ(Routed("lp:carbon_price=1000", network).Decide()[0], 0);
  // Beyond the deadline of all, no carbon is worth it, unless lateness costs nothing.
  network.regions[1].carbon_g_per_kwh.fill(900);
  network.regions[2].carbon_g_per_kwh.fill(10);
  network.service.deadline_s = 0.21;
  EXPECT_EQ(Routed("lp:carbon_price=100", network).Decide()[2], 0);
  EXPECT_GT(Routed("lp:carbon_price=100,late_price=0", network).Decide()[2], 0.5);
}

TEST(RoutingRules, AllOfTheTableAnswerWithoutAllocating) {
  for (const std::string_view name : PolicyNamesOf(TaskKind::kRoute)) {
    Routed routed(name);
    routed.Decide();
    const long before = allocation_count;
    routed.policy->Decide({.laws = routed.laws.get(), .regions = routed.sights},
                          routed.memory.get(), {routed.shares, routed.nodes});
    EXPECT_EQ(allocation_count - before, 0) << name;
    for (int r = 0; r < 3; ++r) EXPECT_GE(routed.nodes[r * kNodePrices], 1) << name;
  }
}

TEST(RoutingRules, StaticSharesNeverChange) {
  Routed routed("static:home=40");
  routed.sights[0].reachable = false;
  const Shares shares = routed.Decide();
  EXPECT_NEAR(shares[0], 0.6, 1e-9);
  EXPECT_NEAR(shares[1], 0.2, 1e-9);
}

TEST(RoutingRules, LocalitySpillsOverToTheNearestWithRoom) {
  Routed routed("locality:full=80");
  EXPECT_EQ(routed.Decide(), (Shares{1, 0, 0}));
  routed.sights[0].ready[kOnDemand] = 5;  // 320 at 80 %.
  const Shares shares = routed.Decide();
  EXPECT_NEAR(shares[0], 0.8, 1e-9);
  EXPECT_NEAR(shares[1], 0.2, 1e-9);
  // Nodes are made for the whole demand of home nevertheless: 400 / (80 x 60 %).
  EXPECT_EQ(routed.nodes[kOnDemand], 9);
  routed.sights[0].reachable = false;
  EXPECT_EQ(routed.Decide()[0], 0);
}

TEST(RoutingRules, CheapestAndCarbonAwareStayWithinTheirRoundTrip) {
  RegionNetwork network = testing::SmallRegions();
  network.regions[2].on_demand_per_h = 0.01;  // Far away.
  network.regions[1].on_demand_per_h = 0.02;
  network.regions[1].carbon_g_per_kwh.fill(20);
  for (const std::string_view rule : {"cheapest", "carbon-aware"}) {
    Routed routed(rule, network);
    routed.sights[0].demand_per_s = routed.sights[1].demand_per_s = 200;
    EXPECT_EQ(routed.Decide(), (Shares{0, 1, 0})) << rule;
  }
  Routed anywhere("cheapest:within=1s", network);
  anywhere.sights[0].demand_per_s = anywhere.sights[2].demand_per_s = 200;
  EXPECT_EQ(anywhere.Decide(), (Shares{0, 0, 1}));
}

TEST(RoutingRules, LeastLatencyCountsTheWaitThatWasMeasured) {
  Routed routed("least-latency");
  routed.sights[0].demand_per_s = routed.sights[1].demand_per_s = 200;
  EXPECT_EQ(routed.Decide(), (Shares{1, 0, 0}));
  routed.sights[0].wait_s = 0.1;
  EXPECT_EQ(routed.Decide(), (Shares{0, 1, 0}));
}

TEST(RoutingRules, ByPowerOfTwoTheBestOfThreeHasTwoThirds) {
  Routed routed("power-of-two");
  // Of three pairs the nearest is in two, the next one the best of the third.
  EXPECT_EQ(routed.Decide(), (Shares{2 / 3.0, 1 / 3.0, 0}));
  routed.sights[0].wait_s = 10;
  EXPECT_EQ(routed.Decide(), (Shares{0, 2 / 3.0, 1 / 3.0}));
  routed.sights[1].reachable = false;
  EXPECT_EQ(routed.Decide(), (Shares{0, 0, 1}));
  Routed even("round-robin");
  EXPECT_EQ(even.Decide(), (Shares{1 / 3.0, 1 / 3.0, 1 / 3.0}));
}

TEST(RoutingRules, PrequalGoesFromHotRegionsToColdOnes) {
  Routed routed("prequal:probes=2,hot=60");
  for (RegionSight& seen : routed.sights) seen.load_per_s = 400;
  EXPECT_EQ(routed.Decide(), (Shares{2 / 3.0, 1 / 3.0, 0}));
  routed.sights[0].load_per_s = 700;  // Hot: it is the last choice, however near.
  EXPECT_EQ(routed.Decide(), (Shares{0, 2 / 3.0, 1 / 3.0}));
  // Where all are probed, the best one has everything.
  Routed all("prequal:probes=16,hot=100");
  for (RegionSight& seen : all.sights) seen.load_per_s = 400;
  EXPECT_EQ(all.Decide(), (Shares{1, 0, 0}));
}

TEST(RoutingRules, TheSplitMakesNodesBeforeItMovesAndKeepsThoseThatServe) {
  RegionNetwork network = testing::SmallRegions();
  network.regions[1].on_demand_per_h = 0.02;  // Worth a move, but it has few nodes yet.
  Routed routed("lp:down=0s", network);
  routed.sights[1].ready[kOnDemand] = 6;
  const Shares shares = routed.Decide();
  EXPECT_GT(shares[0], 0.5);
  EXPECT_GE(routed.nodes[kNodePrices + kOnDemand], 16);  // For 800 at 60 %.
  EXPECT_GE(routed.nodes[kOnDemand], 5);                 // For what is still served at home.
  routed.sights[1].ready[kOnDemand] = 20;
  EXPECT_EQ(routed.Decide(), (Shares{0, 1, 0}));
}

TEST(RoutingRules, OptionsHaveRanges) {
  for (const char* wrong : {"locality:full=0", "lp:headroom=2", "static:home=101", "lp:fool=1"})
    EXPECT_FALSE(MakeRoutingPolicy(*ParsePolicySpec(wrong)).has_value()) << wrong;
}

}  // namespace
}  // namespace rudderfish
