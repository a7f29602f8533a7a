// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_bound.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "evaluation/placement_evaluation.h"
#include "policy/registry.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/small_arrivals.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(LeastImbalance, IsThatOfTheBestSplitWorkedOutByHand) {
  testing::WorldBuilder world;
  const KindId kind = world.Kind("plain", world.Layer("site"));
  world.Workload("a", 500, 1000);
  world.Workload("b", 1000, 500);
  world.Node(kind, 2000, 4000);
  world.Node(kind, 2000, 2000);
  const State state = world.Build();
  LeastImbalance least(state);
  EXPECT_EQ(least.Of(std::vector<int32_t>{0, 0}), 0);
  // One of a: on the first node 1/4 and 1/4, half of it is the deviation.
  EXPECT_DOUBLE_EQ(least.Of(std::vector<int32_t>{1, 0}), 0.125 + 0.125);
  // Two of a: one each is 0 of CPU and 1/4 against 1/2 of memory.
  EXPECT_DOUBLE_EQ(least.Of(std::vector<int32_t>{2, 0}), 0.125);
  // Two of a on the first (1/2, 1/2), b on the second (1/2, 1/4); or a and b apart.
  EXPECT_DOUBLE_EQ(least.Of(std::vector<int32_t>{2, 1}), 0.125);
  EXPECT_TRUE(std::isinf(least.Of(std::vector<int32_t>{0, 5})));  // No room.
  EXPECT_EQ(least.Splits(std::vector<int32_t>{2, 1}), 3 * 2);
}

TEST(PlacementBound, NothingComesBelowItAndManyDoNotCome) {
  const auto scenario = testing::ShippedScenario("drs-even");
  std::vector<PlacementGroup> groups;
  for (const char* name : {"round-robin", "kube-default", "greedy"})
    groups.push_back({name, {*MakePlacementPolicy(name, PlacementTask(*scenario->objective))}});
  ThreadPool pool(1);
  const auto found = EvaluatePlacements(
      scenario, groups, {.seed = 2, .episodes = 2, .bound = PlacementBound::kComputed}, &pool);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  ASSERT_TRUE(found->bound.has_value());
  EXPECT_GT(*found->bound, 0.05);
  for (const EvaluatedPlacement& policy : found->policies) {
    for (int episode = 0; episode < 2; ++episode)
      EXPECT_GT(policy.Objectives(2).values[static_cast<size_t>(episode)], *found->bound * 0.95);
  }
  ASSERT_TRUE(found->best_foreseen.has_value());
  EXPECT_GT(*found->best_foreseen, *found->bound);
  EXPECT_LT(*found->best_foreseen, Mean(found->policies.back().Objectives(2).values));
  const std::string table = PlacementTable(*found);
  EXPECT_THAT(table, HasSubstr("No way to place these pods comes below"));
  EXPECT_THAT(table, HasSubstr(fmt::format("leaves, is {:.5f}. Above", *found->best_foreseen)));
  EXPECT_THAT(PlacementJson(*found), HasSubstr("\"bound\""));
  EXPECT_THAT(PlacementJson(*found), HasSubstr("\"best_without_moving\""));
}

TEST(PlacementBound, WhereNoneIsKnownItSaysWhy) {
  const auto refusal = [](std::shared_ptr<const Scenario> scenario) {
    const Result<double> bound = LeastBalance(std::move(scenario), 1);
    return bound ? std::string() : bound.error().message;
  };
  EXPECT_THAT(refusal(testing::ShippedScenario("thesis-test1")), HasSubstr("than balance"));
  Scenario small = *testing::ArrivalsScenario(
      "  streams: [{workloads: batch, interval: 1s, count: 40, lifetime: 60s}]");
  small.objective = Objective::Of(ObjectiveTerm::kBalance);
  EXPECT_THAT(refusal(std::make_shared<const Scenario>(small)), HasSubstr("on every node"));
  Scenario crowded = *testing::ShippedScenario("drs-even");
  auto arrivals = std::make_shared<Arrivals>(*crowded.arrivals);
  arrivals->streams[0].interval = TimeLaw::Constant(std::chrono::seconds(5));
  crowded.arrivals = arrivals;
  EXPECT_THAT(refusal(std::make_shared<const Scenario>(crowded)), HasSubstr("have to wait"));
}

}  // namespace
}  // namespace rudderfish
