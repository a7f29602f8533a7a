// SPDX-License-Identifier: Apache-2.0
#include "model/call_branches.h"

#include <gtest/gtest.h>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::WorldBuilder;

// client -> a -> { b -> d | c } then e: a forks into two branches and e follows in a's own call
// sequence.
State Forked() {
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId kind = world.Kind("node", layer);
  for (const char* name : {"client", "a", "b", "c", "d", "e"}) world.Workload(name, 100, 100);
  const NodeId node = world.Node(kind, 1000, 1000);
  for (WorkloadId w = 0; w < 6; ++w) world.Pod(w, node);
  const CallTree b{
      .workload = 2, .execution_ms = 1, .groups = {{{.workload = 4, .execution_ms = 1}}}};
  const CallTree c{.workload = 3, .execution_ms = 1};
  const CallTree a{.workload = 1, .execution_ms = 1, .groups = {{b}, {c}}};
  const CallTree e{.workload = 5, .execution_ms = 1};
  world.Endpoint({.workload = 0, .groups = {{a, e}}});
  return world.Build();
}

TEST(CallBranches, CallsOfASingleGroupStayInTheirCallersBranch) {
  const State state = Forked();
  CallBranches branches;
  branches.Build(*state.calls, 6);
  ASSERT_EQ(branches.branch_count(), 3);
  ASSERT_EQ(branches.fork_count(), 1);
  for (CallId call = 0; call < state.calls->call_count(); ++call) {
    const WorkloadId w = state.calls->calls[call].workload;
    const int32_t expected = w == 2 || w == 4 ? 1 : w == 3 ? 2 : 0;
    EXPECT_EQ(branches.branch_of(call), expected) << "workload " << w;
  }
  EXPECT_EQ(branches.parent(1), 0);
  EXPECT_EQ(branches.parent(0), kNone);
}

TEST(CallBranches, AMoveChangesTheBranchesItsWorkloadTouchesAndThoseAround) {
  const State state = Forked();
  CallBranches branches;
  branches.Build(*state.calls, 6);
  const auto of_d = branches.AffectedBy(4);
  ASSERT_EQ(of_d.end - of_d.begin, 2);
  EXPECT_EQ(branches.affected(of_d.begin).branch, 1);
  EXPECT_TRUE(branches.affected(of_d.begin).touched);
  EXPECT_EQ(branches.affected(of_d.begin + 1).branch, 0);
  EXPECT_FALSE(branches.affected(of_d.begin + 1).touched);
  const auto of_a = branches.AffectedBy(1);  // It also makes the calls of both branches.
  EXPECT_EQ(of_a.end - of_a.begin, 3);
  const auto of_e = branches.AffectedBy(5);
  EXPECT_EQ(of_e.end - of_e.begin, 1);
}

}  // namespace
}  // namespace rudderfish
