// SPDX-License-Identifier: Apache-2.0
#include "model/kind_ends.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/rng.h"
#include "model/evaluator.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::WorldBuilder;

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<double> Steps(int count, double each_ms) {
  std::vector<double> sums(count + 1);
  for (int i = 0; i < count; ++i) sums[i + 1] = sums[i] + each_ms;
  return sums;
}

// `pods` of one service on slow nodes; so much room on each of two fast nodes.
State SlowAndFast(int pods, int64_t fast_millis, int64_t fast_bytes = 100'000) {
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId slow = world.Kind("slow", layer, 2), fast = world.Kind("fast", layer, 1);
  const WorkloadId client = world.Workload("client", 1, 1, false),
                   service = world.Workload("service", 1000, 100);
  const NodeId source = world.Node(slow, 100'000, 100'000);
  world.Node(fast, fast_millis, fast_bytes);
  world.Node(fast, fast_millis, fast_bytes);
  world.Pod(client, source);
  for (int i = 0; i < pods; ++i) world.Pod(service, source);
  world.Endpoint({.workload = client,
                  .groups = {{{.workload = service, .execution_ms = 10, .data_mbytes = 0}}}});
  return world.Build();
}

struct Ends {
  explicit Ends(const State& state, int64_t most = 1'000'000, double bar_ms = kNever)
      : model(LatencyLaw::Reach()) {
    model.Reset(state);
    cursor.Reset(model);
    listed = ends.List(Steps(100, 0.5), bar_ms, most, &cursor);
  }

  Evaluator model;
  PlacementCursor cursor;
  KindEnds ends;
  bool listed = false;
};

TEST(KindEnds, ListsEveryNumberOfPodsOnEveryKind) {
  const Ends all(SlowAndFast(4, 100'000));
  ASSERT_TRUE(all.listed);
  EXPECT_EQ(all.ends.count(), 5);  // 0 to 4 of them on fast nodes.
}

TEST(KindEnds, LeavesOutWhatDoesNotFitOnAnyOneNode) {
  // 1.5 cores on each of two nodes: three cores in all, but room for two pods only.
  const Ends ends(SlowAndFast(4, 1500));
  EXPECT_EQ(ends.ends.count(), 3);
  // And of memory: room for one on each, and for one in all.
  EXPECT_EQ(Ends(SlowAndFast(4, 100'000, 150)).ends.count(), 3);
  EXPECT_EQ(Ends(SlowAndFast(4, 100'000, 99)).ends.count(), 1);
}

TEST(KindEnds, BoundIsTheBestEndWithItsMoves) {
  Ends ends(SlowAndFast(4, 1500));
  // Two of four pods run 10 instead of 20 ms: 15 + 1 of a hop, and two moves.
  EXPECT_DOUBLE_EQ(ends.ends.Bound(ends.cursor.by_kind(), 0, kNever), 16 + 2 * 0.5);
  ends.cursor.Apply({1, 0, 1});
  EXPECT_DOUBLE_EQ(ends.ends.Bound(ends.cursor.by_kind(), 1, kNever), 16 + 2 * 0.5);
  ends.cursor.Revert({1, 0, 1});
  EXPECT_DOUBLE_EQ(ends.ends.Bound(ends.cursor.by_kind(), 1, kNever), 16 + 3 * 0.5);
  EXPECT_EQ(ends.ends.Bound(ends.cursor.by_kind(), 0, 17), kNever);
}

TEST(KindEnds, RefusesMoreEndsThanItMayLookAt) {
  const Ends ends(SlowAndFast(4, 100'000), 4);
  EXPECT_FALSE(ends.listed);
  EXPECT_EQ(ends.ends.count(), 0);
}

TEST(KindEnds, NoPlanBeatsTheBound) {
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    const State state = testing::ContinuumWorld({.replicas_max = 2}, &rng);
    Ends ends(state);
    ASSERT_TRUE(ends.listed);
    const double bound_ms = ends.ends.Bound(ends.cursor.by_kind(), 0, kNever);
    double steps_ms = 0;
    for (int step = 0; step < 12; ++step) {
      EXPECT_GE(ends.cursor.by_kind().LatencyMs() + steps_ms, bound_ms - 1e-9);
      const auto movable = ends.cursor.movable();
      const WorkloadId w = movable[rng.Below(static_cast<uint32_t>(movable.size()))];
      std::vector<Move> moves;
      ForEachNode(ends.cursor.Hosts(w), ends.cursor.word_count(), [&](NodeId from) {
        ForEachNode(ends.cursor.Targets(w), ends.cursor.word_count(), [&](NodeId to) {
          if (from != to) moves.push_back({w, from, to});
        });
      });
      if (moves.empty()) continue;
      ends.cursor.Apply(moves[rng.Below(static_cast<uint32_t>(moves.size()))]);
      steps_ms += 0.5;
    }
  }
}

}  // namespace
}  // namespace rudderfish
