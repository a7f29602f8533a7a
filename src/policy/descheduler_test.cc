// SPDX-License-Identifier: Apache-2.0
#include "policy/descheduler.h"

#include <gtest/gtest.h>

#include "policy/registry.h"
#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::Play;
using testing::WorldBuilder;

// Nodes of 4 cores and 4000 MiB with so many pods of 500 m and 500 MiB each; and a client, outside.
State NodesWith(const std::vector<int>& pods) {
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud"), outside = world.Layer("client", false);
  const KindId kind = world.Kind("node", layer), client_kind = world.Kind("client", outside);
  const WorkloadId service = world.Workload("service", 500, 500),
                   client = world.Workload("client", 1, 1, false);
  for (const int count : pods) {
    const NodeId node = world.Node(kind, 4000, 4000);
    for (int i = 0; i < count; ++i) world.Pod(service, node);
  }
  world.Pod(client, world.Node(client_kind, 1000, 1000));
  world.Endpoint({.workload = client, .groups = {{{.workload = service, .execution_ms = 1}}}});
  return world.Build();
}

std::vector<Move> MovesOf(const std::vector<int>& pods, const DeschedulerThresholds& thresholds) {
  const auto played =
      Play(DeschedulerPolicy(thresholds), MigrationTask({}), LatencyLaw::Reach(), NodesWith(pods));
  EXPECT_TRUE(played.stopped);
  return played.moves;
}

TEST(Descheduler, EmptiesWhatIsOverutilizedWhileSomeIsIdle) {
  // 75 % of node 1 is requested: two pods leave it, then it is at 50 % and left alone.
  const std::vector<Move> moves = MovesOf({3, 6, 1}, {});
  ASSERT_EQ(moves.size(), 1u);  // Then node 2 is at 25 %, and no node is underutilized.
  EXPECT_EQ(moves[0].from, 1);
  EXPECT_EQ(moves[0].to, 2);
  const std::vector<Move> more = MovesOf({3, 6, 0}, {.low = 26, .high = 50});
  ASSERT_EQ(more.size(), 2u);
  for (const Move& move : more) {
    EXPECT_EQ(move.from, 1);
    EXPECT_EQ(move.to, 2);
  }
}

TEST(Descheduler, LeavesWhatIsBetweenItsThresholds) {
  EXPECT_TRUE(MovesOf({4, 2, 3}, {}).empty());                        // Nothing above 50 %.
  EXPECT_TRUE(MovesOf({6, 2, 2}, {}).empty());                        // Nothing below 20 %.
  EXPECT_EQ(MovesOf({4, 2, 3}, {.low = 26, .high = 40}).size(), 1u);  // As many as are idle.
}

TEST(Descheduler, TakesTheMostUsedNodeFirst) {
  const std::vector<Move> moves = MovesOf({5, 7, 0}, {});
  ASSERT_FALSE(moves.empty());
  EXPECT_EQ(moves[0].from, 1);
}

TEST(Descheduler, ThresholdsThatCrossAreRefused) {
  const MigrationTask task({});
  EXPECT_TRUE(MakePolicy("descheduler:low=10,high=80", task).has_value());
  const auto crossed = MakePolicy("descheduler:low=60", task);
  ASSERT_FALSE(crossed.has_value());
  EXPECT_NE(crossed.error().message.find("low"), std::string::npos);
}

}  // namespace
}  // namespace rudderfish
