// SPDX-License-Identifier: Apache-2.0
#include "model/layer_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/evaluator.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::WorldBuilder;

// A client at the edge, and `services` in a chain in the far cloud: moving one of them alone makes
// two far hops of one.
State FarChain(int services) {
  WorldBuilder world;
  const LayerId cloud = world.Layer("cloud"), edge = world.Layer("edge");
  const KindId far = world.Kind("far", cloud), near = world.Kind("near", edge);
  world.LatencyBothWays(cloud, edge, 100);
  const WorkloadId client = world.Workload("client", 1, 1, false);
  const NodeId source = world.Node(far, 100'000, 100'000),
               target = world.Node(near, 100'000, 100'000);
  world.Pod(client, target);
  CallTree chain{.workload = services, .execution_ms = 1, .data_mbytes = 0};
  for (int i = 1; i <= services; ++i) world.Pod(world.Workload("service", 100, 100), source);
  for (int i = services - 1; i >= 1; --i) {
    chain = {.workload = i, .execution_ms = 1, .data_mbytes = 0, .groups = {{chain}}};
  }
  world.Endpoint({.workload = client, .groups = {{chain}}});
  return world.Build();
}

class Ranked {
 public:
  Ranked(const State& state, double bar_ms, std::vector<double> step_costs_ms)
      : model_(LatencyLaw::Reach()) {
    model_.Reset(state);
    cursor.Reset(model_);
    targets.List(*state.catalog, *state.calls, step_costs_ms, bar_ms, &cursor);
  }

  PlacementCursor cursor;
  LayerTargets targets;

 private:
  Evaluator model_;
};

std::vector<double> Steps(int count, double each_ms) {
  std::vector<double> sums(count + 1);
  for (int i = 0; i < count; ++i) sums[i + 1] = sums[i] + each_ms;
  return sums;
}

TEST(LayerTargets, RanksTheWholeChainAtTheClientFirst) {
  const Ranked ranked(FarChain(3), 1e9, Steps(100, 0.5));
  ASSERT_GT(ranked.targets.count(), 0);
  const auto best = ranked.targets.layers(0);
  for (WorkloadId w = 1; w <= 3; ++w) EXPECT_EQ(best[w], 1);
  EXPECT_EQ(best[0], kNone);
  EXPECT_DOUBLE_EQ(ranked.targets.cost_ms(0),
                   3 * 1 + 3 * 1 + 3 * 0.5);  // Execution, hops of 1 ms, steps.
  for (int i = 1; i < ranked.targets.count(); ++i)
    EXPECT_GE(ranked.targets.cost_ms(i), ranked.targets.cost_ms(i - 1));
}

TEST(LayerTargets, ListsNothingThatIsNotBetterThanTheBar) {
  const Ranked ranked(FarChain(3), 10, Steps(100, 0.5));
  EXPECT_EQ(ranked.targets.count(), 1);
}

TEST(LayerTargets, LeavesOutWhatTakesMoreMovesThanThereAre) {
  const Ranked ranked(FarChain(3), 1e9, Steps(2, 0.5));
  for (int i = 0; i < ranked.targets.count(); ++i) EXPECT_GT(ranked.targets.cost_ms(i), 100);
}

TEST(LayerTargets, RanksGroupsWhereThereAreTooManyAssignments) {
  const Ranked ranked(FarChain(12), 1e9, Steps(100, 0.5));  // 3^12 assignments.
  ASSERT_GT(ranked.targets.count(), 0);
  for (WorkloadId w = 1; w <= 12; ++w) EXPECT_EQ(ranked.targets.layers(0)[w], 1);
  EXPECT_LT(ranked.targets.count(), 100);
}

TEST(LayerTargets, AWorkloadGoesWithAllThatItCalls) {
  const Ranked ranked(FarChain(12), 1e9, Steps(100, 0.5));
  const std::vector<LayerId> last_four{kNone, kNone, kNone, kNone, kNone, kNone, kNone,
                                       kNone, kNone, 1,     1,     1,     1};
  int listed = 0;
  for (int i = 0; i < ranked.targets.count(); ++i) {
    const auto layers = ranked.targets.layers(i);
    listed += std::equal(layers.begin(), layers.end(), last_four.begin(), last_four.end());
  }
  EXPECT_EQ(listed, 1);
}

TEST(LayerTargets, LeavesTheCursorAsFound) {
  const State state = FarChain(3);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  Ranked ranked(state, 1e9, Steps(100, 0.5));
  EXPECT_EQ(ranked.cursor.by_kind().LatencyMs(), model.Now().latency_ms);
}

}  // namespace
}  // namespace rudderfish
