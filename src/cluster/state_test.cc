// SPDX-License-Identifier: Apache-2.0
#include "cluster/state.h"

#include <gtest/gtest.h>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::WorldBuilder;

State TwoNodes() {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId web = world.Workload("web", 300, 128), db = world.Workload("db", 500, 256);
  const NodeId a = world.Node(kind, 1000, 1024);
  world.Node(kind, 2000, 2048);
  world.Pod(web, a);
  world.Pod(web, a);
  world.Pod(db, 1);
  return world.Build();
}

TEST(State, BoundPodConsumesItsNodesResources) {
  const State state = TwoNodes();
  EXPECT_EQ(state.nodes.free[0], (Resources{400, 768 * testing::kMib}));
  EXPECT_EQ(state.nodes.free[1], (Resources{1500, 1792 * testing::kMib}));
}

TEST(State, MovedPodFreesItsOldNodeAndConsumesItsNewOne) {
  State state = TwoNodes();
  const uint64_t version = state.version;
  MovePod(1, 1, &state);
  EXPECT_EQ(state.pods.node[1], 1);
  EXPECT_EQ(state.nodes.free[0], (Resources{700, 896 * testing::kMib}));
  EXPECT_EQ(state.nodes.free[1], (Resources{1200, 1664 * testing::kMib}));
  EXPECT_GT(state.version, version);
  CheckConsistent(state);
}

TEST(State, PendingPodConsumesNothingUntilBound) {
  State state = TwoNodes();
  state.pods.workload.push_back(1);
  state.pods.node.push_back(kNone);
  CheckConsistent(state);
  BindPod(3, 1, &state);
  EXPECT_EQ(state.nodes.free[1].cpu_millis, 1000);
  CheckConsistent(state);
}

TEST(State, PodsWithoutNamesAreCountedWithinTheirWorkload) {
  State state = TwoNodes();
  EXPECT_EQ(PodName(state, 0), "web-1");
  EXPECT_EQ(PodName(state, 1), "web-2");
  EXPECT_EQ(PodName(state, 2), "db-1");
  Names names{state.names->nodes, {"a", "b", "c"}};
  state.names = std::make_shared<const Names>(names);
  EXPECT_EQ(PodName(state, 1), "b");
}

TEST(StateDeathTest, InconsistentResourcesAreABug) {
  State state = TwoNodes();
  state.nodes.free[0].cpu_millis += 1;
  EXPECT_DEATH(CheckConsistent(state), "against");
}

TEST(Resources, FitOnlyIfBothDo) {
  const Resources room{1000, 1000};
  EXPECT_TRUE(room.Fits({1000, 1000}));
  EXPECT_FALSE(room.Fits({1001, 1}));
  EXPECT_FALSE(room.Fits({1, 1001}));
}

}  // namespace
}  // namespace rudderfish
