// SPDX-License-Identifier: Apache-2.0
#include "policy/placement_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::WorldBuilder;

// Nodes of 1, 2 and 4 cores, the first full but for 100m; the last is far from the users.
class PlacementRules : public ::testing::Test {
 protected:
  PlacementRules() {
    WorldBuilder world;
    const LayerId near = world.Layer("near"), far = world.Layer("far");
    const LayerId users = world.Layer("users");
    world.LatencyBothWays(users, far, 40);
    const KindId kinds[] = {world.Kind("near", near), world.Kind("far", far)};
    world.Workload("web", 500, 128);
    const WorkloadId filler = world.Workload("filler", 900, 128);
    world.Pod(filler, world.Node(kinds[0], 1000, 4096));
    world.Pod(filler, world.Node(kinds[0], 2000, 4096));
    world.Node(kinds[1], 4000, 4096);
    state_ = world.Build();
    laws_ = {.costs = {{50, 100, 1}, {50, 400, 1}}, .users = users};
    totals_.Reset(state_, laws_);
  }

  PlacementQuestion Question() { return {state_, totals_, 0}; }

  void SetHardLimit(double hard_ms) {
    auto catalog = std::make_shared<Catalog>(*state_.catalog);
    catalog->workloads[0].latency_limits.hard_ms = hard_ms;
    state_.catalog = catalog;
  }

  State state_;
  PlacementLaws laws_;
  ClusterTotals totals_;
};

TEST_F(PlacementRules, LeastAndMostAllocatedAreOpposites) {
  EXPECT_EQ(LeastAllocatedNode(Question()), 2);
  EXPECT_EQ(MostAllocatedNode(Question()), 1);
}

TEST_F(PlacementRules, RoundRobinPassesOverNodesWithoutRoom) {
  PlacementRule rule = *PlacementRuleNamed("round-robin", {});
  EXPECT_EQ(rule(Question()), 1);
  EXPECT_EQ(rule(Question()), 2);
  EXPECT_EQ(rule(Question()), 1);
}

TEST_F(PlacementRules, GreedyMakesItsObjectiveLeast) {
  EXPECT_EQ(GreedyNode(Question(), Objective::Of(ObjectiveTerm::kEnergy)), 1);
  EXPECT_EQ(GreedyNode(Question(), Objective::Of(ObjectiveTerm::kBalance)), 2);
  EXPECT_EQ(GreedyNode(Question(), Objective::Of(ObjectiveTerm::kLatency)), 1);
}

TEST_F(PlacementRules, HardLimitIsAMask) {
  SetHardLimit(79);  // There and back: 80 ms to the far node, 2 ms to the near ones.
  EXPECT_EQ(LeastAllocatedNode(Question()), 1);
  SetHardLimit(1);
  EXPECT_EQ(LeastAllocatedNode(Question()), kNone);
  EXPECT_EQ(NextNode(Question(), 0), kNone);
}

TEST_F(PlacementRules, UnknownNameIsRefusedWithTheNearest) {
  EXPECT_THAT(PlacementRuleNamed("least-alocated", {}).error().message,
              ::testing::HasSubstr("did you mean `least-allocated`?"));
  for (const std::string_view name : PlacementRuleNames())
    EXPECT_TRUE(PlacementRuleNamed(name, {}).has_value()) << name;
}

}  // namespace
}  // namespace rudderfish
