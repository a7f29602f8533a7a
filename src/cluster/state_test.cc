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

TEST(State, RemovedPodGivesBackItsRoomAndTheLastOneTakesItsId) {
  State state = TwoNodes();
  RemovePod(0, &state);
  EXPECT_EQ(state.pods.size(), 2);
  EXPECT_EQ(state.pods.workload[0], 1);  // The db pod, the last before.
  EXPECT_EQ(state.pods.node[0], 1);
  EXPECT_EQ(state.nodes.free[0].cpu_millis, 700);
  CheckConsistent(state);
  RemovePod(1, &state);  // Now itself the last.
  CheckConsistent(state);
}

TEST(State, AddedPodIsPendingUntilBoundAndAgainWhenUnbound) {
  State state = TwoNodes();
  const PodId pod = AddPod(1, &state);
  EXPECT_EQ(state.pods.node[pod], kNone);
  BindPod(pod, 1, &state);
  EXPECT_EQ(state.nodes.free[1].cpu_millis, 1000);
  UnbindPod(pod, &state);
  EXPECT_EQ(state.nodes.free[1].cpu_millis, 1500);
  CheckConsistent(state);
}

State WithDevices() {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all")), other = world.Kind("other", 0);
  world.Workload("share", 100, 64);
  world.Workload("pair", 100, 64);
  world.Node(kind, 4000, 4096);
  world.Node(other, 4000, 4096);
  State state = world.Build();
  auto catalog = std::make_shared<Catalog>(*state.catalog);
  catalog->workloads[0].devices = {.count = 1, .millis = 400};
  catalog->workloads[1].devices = {.count = 2, .millis = 1000};
  catalog->workloads[1].node_kinds = 1;
  state.catalog = catalog;
  state.nodes.devices = {Devices::Of(3), Devices::Of(2)};
  return state;
}

TEST(State, ShareOfADeviceIsTakenWhereLeastIsLeft) {
  State state = WithDevices();
  for (int i = 0; i < 4; ++i) BindPod(AddPod(0, &state), 0, &state);
  EXPECT_EQ(state.nodes.devices[0].free_millis[0], 200);  // Two on the first before the second.
  EXPECT_EQ(state.nodes.devices[0].free_millis[1], 200);
  EXPECT_EQ(state.nodes.devices[0].free_millis[2], 1000);
  CheckConsistent(state);
  EXPECT_FALSE(HasRoom(state, 1, 0));  // 1.4 devices are free there, but not two whole ones.
  EXPECT_FALSE(HasRoom(state, 1, 1));  // Of a kind on which it may not run.
  RemovePod(0, &state);
  RemovePod(0, &state);
  CheckConsistent(state);
}

TEST(State, LostNodeHasNoRoom) {
  State state = WithDevices();
  EXPECT_TRUE(HasRoom(state, 0, 1));
  state.nodes.lost = {0, 1};
  EXPECT_FALSE(HasRoom(state, 0, 1));
  EXPECT_TRUE(HasRoom(state, 0, 0));
}

TEST(StateDeathTest, DevicesCannotBeOvercommitted) {
  State state = WithDevices();
  BindPod(AddPod(1, &state), 0, &state);
  EXPECT_DEATH(BindPod(AddPod(1, &state), 0, &state), "");
}

}  // namespace
}  // namespace rudderfish
