// SPDX-License-Identifier: Apache-2.0
#include "policy/region_planner.h"

#include <gtest/gtest.h>

#include "tests/support/count_allocations.h"
#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

struct PlannedRegions {
  std::shared_ptr<const RegionLaws> laws = testing::LawsOf(testing::SmallRegions());
  std::shared_ptr<RegionPlanning> planning = std::make_shared<RegionPlanning>();
  std::unique_ptr<RegionPlanner> planner;
  RegionAutoscaler autoscaler{{}, 3};
  std::vector<RegionSight> sights = std::vector<RegionSight>(3);
  std::vector<double> load = {400, 400, 400}, error = {0.1, 0.1, 0.1};
  std::vector<int> asked = std::vector<int>(3 * kNodePrices);
  int step = 0, questions = 0;
  bool has_notices = false;

  explicit PlannedRegions(const RegionScalingRule& rule = {.use = 0.7, .hazard_per_h = 8}) {
    planning->rule = rule;
    planning->weights = RegionScalingTask::ModelWeights(rule);
    planning->seen = [this](const ScoredRows&) { ++questions; };
    planner = std::make_unique<RegionPlanner>(planning, 3);
    for (RegionSight& one : sights) {
      one.load_per_s = 400;
      one.ready[kSpot] = 8;
      one.node_per_h[kOnDemand] = 0.15;
      one.node_per_h[kSpot] = 0.05;
      one.carbon_g_per_kwh = 300;
    }
  }

  void Plan() {
    planner->Plan({.step = step++,
                   .has_spot = true,
                   .has_notices = has_notices,
                   .laws = laws.get(),
                   .regions = sights},
                  {.load_per_s = load, .error = error}, asked, &autoscaler);
  }

  // Nodes of the first region that the autoscaler would have.
  std::pair<int, int> Nodes() {
    std::vector<int> nodes(3 * kNodePrices);
    autoscaler.Decide({.has_spot = true, .laws = laws.get(), .regions = sights}, load, nodes);
    return {nodes[kOnDemand], nodes[kSpot]};
  }
};

TEST(RegionPlanner, AsksAllAtFirstAndThenOneRegionAfterAnother) {
  PlannedRegions planned;
  planned.Plan();
  EXPECT_EQ(planned.questions, 3);
  for (int i = 0; i < 5; ++i) planned.Plan();  // Five minutes: each region once.
  EXPECT_EQ(planned.questions, 6);
}

TEST(RegionPlanner, LeavesSpotNodesOnceSomeAreLostAndComesBack) {
  PlannedRegions planned;
  planned.Plan();
  EXPECT_GT(planned.Nodes().second, 0);
  for (RegionSight& one : planned.sights) one.lost = 3;
  for (int i = 0; i < 5; ++i) planned.Plan();
  const int on_demand_after_loss = planned.Nodes().first;
  EXPECT_GT(on_demand_after_loss, 2);
  for (RegionSight& one : planned.sights) one.lost = 0;
  for (int i = 0; i < 300; ++i) planned.Plan();  // Five hours.
  EXPECT_LT(planned.Nodes().first, on_demand_after_loss);
}

TEST(RegionPlanner, TakesAnOrderThatIsNotMetForASignOfScarcity) {
  PlannedRegions planned;
  planned.Plan();
  for (int r = 0; r < 3; ++r) planned.asked[r * kNodePrices + kSpot] = 12;  // None of four came.
  for (int i = 0; i < 5; ++i) planned.Plan();
  EXPECT_GT(planned.Nodes().first, 2);
}

TEST(RegionPlanner, LeavesSpotNodesOnNoticesAndComesBackAfterSilence) {
  PlannedRegions planned;
  planned.has_notices = true;
  for (int i = 0; i < 6; ++i) planned.Plan();
  const int before = planned.Nodes().first;
  for (RegionSight& one : planned.sights) one.notice = true;
  for (int i = 0; i < 6; ++i) planned.Plan();
  EXPECT_GT(planned.Nodes().first, before + 2);
  for (RegionSight& one : planned.sights) one.notice = false;
  for (int i = 0; i < 60; ++i) planned.Plan();
  EXPECT_EQ(planned.Nodes().first, before);
}

TEST(RegionPlanner, TakesLearnedPricesOffPairs) {
  PlannedRegions planned;
  planned.planning->seen = nullptr;
  const size_t first_of_pairs = planned.planning->weights.size() - RegionScalingTask::kPairFeatures;
  EXPECT_FALSE(RegionPlanner(planned.planning, 3).looks_at_pairs());
  planned.planning->weights[first_of_pairs] = -2;     // pair_foreign: two units dearer elsewhere,
  planned.planning->weights[first_of_pairs + 5] = 1;  // pair_full: cheaper the fuller, of 0.5.
  RegionPlanner planner(planned.planning, 3);
  EXPECT_TRUE(planner.looks_at_pairs());
  planned.sights[2].load_per_s = 0;
  std::vector<double> costs(9, 1.0);
  planner.PricePairs({.laws = planned.laws.get(), .regions = planned.sights}, costs);
  const double full = 400.0 / (8 * 80) / 0.5;
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      const double foreign = from == to ? 0 : 2;
      EXPECT_NEAR(costs[from * 3 + to], 1 + foreign - (to == 2 ? 0 : full), 1e-6);
    }
  }
}

TEST(RegionPlanner, TakesRequestsAwayFromSpotNodesThatAreScarce) {
  PlannedRegions planned({.use = 0.7, .hazard_per_h = 8, .risk = 2});
  planned.planning->seen = nullptr;
  RegionPlanner planner(planned.planning, 3);
  EXPECT_TRUE(planner.looks_at_pairs());
  const auto costs = [&] {
    std::vector<double> of(9, 1.0);
    const RoutingQuestion question{
        .has_spot = true, .laws = planned.laws.get(), .regions = planned.sights};
    planner.PricePairs(question, of);
    of.resize(3);  // Of the first origin.
    return of;
  };
  const auto plan = [&](int step) {
    planner.Plan(
        {.step = step, .has_spot = true, .laws = planned.laws.get(), .regions = planned.sights},
        {.load_per_s = planned.load, .error = planned.error}, planned.asked, &planned.autoscaler);
  };
  plan(0);
  EXPECT_EQ(costs(), (std::vector<double>{1, 1, 1}));
  planned.sights[1].lost = 4;
  plan(1);
  EXPECT_NEAR(costs()[1], 3, 1e-5);  // All of its nodes are on spot.
  planned.sights[1].ready[kOnDemand] = planned.sights[1].ready[kSpot];
  EXPECT_NEAR(costs()[1], 2, 1e-5);
  EXPECT_EQ(costs()[2], 1);
}

TEST(RegionPlanner, AllocatesNothing) {
  PlannedRegions planned;
  planned.planning->seen = nullptr;
  planned.Plan();
  const long before = allocation_count;
  for (int i = 0; i < 10; ++i) planned.Plan();
  EXPECT_EQ(allocation_count - before, 0);
}

}  // namespace
}  // namespace rudderfish
