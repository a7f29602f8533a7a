// SPDX-License-Identifier: Apache-2.0
#include "control/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;

// A full node, an empty one, a layer that accepts nothing; a workload that may not be moved.
State Crowded() {
  testing::WorldBuilder builder;
  const LayerId edge = builder.Layer("edge"), client = builder.Layer("client", false);
  const KindId small = builder.Kind("small", edge), device = builder.Kind("device", client);
  const NodeId full = builder.Node(small, 1000, 1000), narrow = builder.Node(small, 4000, 100);
  const NodeId outside = builder.Node(device, 1000, 1000);
  const WorkloadId users = builder.Workload("users", 0, 0, false);
  const WorkloadId web = builder.Workload("web", 800, 200);
  builder.Pod(users, outside);
  builder.Pod(web, full);
  static_cast<void>(narrow);
  builder.Endpoint({.workload = users, .groups = {{{.workload = web, .execution_ms = 1}}}});
  return builder.Build();
}

JournalRow Listed(const State& state, int keep) {
  Placement placement;
  placement.Reset(state);
  JournalRow row;
  ListRefusals(state, placement, Guard({}), keep, &row);
  return row;
}

TEST(Refusals, SayWhatIsMissingInWords) {
  EXPECT_THAT(
      Listed(Crowded(), 10).refused,
      ElementsAre(Refusal{"", "device-3", "layer client accepts no pods that are moved"},
                  Refusal{"users", "", "may not be moved"},
                  Refusal{"web", "small-2", "asks for 200 MiB of memory, 100 MiB is free"}));
}

TEST(Refusals, AreCountedBeyondWhatIsKept) {
  const JournalRow row = Listed(Crowded(), 1);
  EXPECT_EQ(row.refused.size(), 1u);
  EXPECT_EQ(row.refused_count, 3);
  EXPECT_EQ(Listed(Crowded(), 0).refused_count, 0) << "not asked for";
}

TEST(Refusals, PodsThatAreAllThereAlreadyAreNoRefusal) {
  for (const Refusal& one : Listed(Crowded(), 10).refused) EXPECT_NE(one.node, "small-1");
}

TEST(Refusals, PodsThatRestComeFirstAndAreNamed) {
  State state = Crowded();
  Guard guard({.pod_cooldown = std::chrono::seconds(60)});
  guard.Note(state, {Migrate{1, 0, 1}});
  guard.Hold(&state);
  Placement placement;
  placement.Reset(state);
  JournalRow row;
  ListRefusals(state, placement, guard, 1, &row);
  EXPECT_THAT(row.refused,
              ElementsAre(Refusal{"web", "", "was moved just before and rests for 60 s", "web-1"}));
  EXPECT_EQ(row.refused_count, 4);
}

}  // namespace
}  // namespace rudderfish
