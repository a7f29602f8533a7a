// SPDX-License-Identifier: Apache-2.0
#include "task/features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "task/migration.h"
#include "task/question_summary.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::WorldBuilder;

// A state with its first question asked and encoded.
struct Asked {
  explicit Asked(const State& start) : state(start), task({}), model(LatencyLaw::Reach()) {
    model.Reset(state);
    task.Space(&model, {0}, &space);
    batch.widths = task.widths();
    task.Encode(&model, {0}, &space, &batch);
  }
  State state;
  MigrationTask task;
  Evaluator model;
  ActionSpace space;
  GraphBatch batch;
};

// The value of a candidate feature by name, unscaled.
double FeatureOf(const Asked& asked, int candidate, std::string_view name) {
  const auto& table = asked.task.features().candidate;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].name == name) {
      return asked.batch.candidates[candidate * asked.task.widths().candidate + i] * table[i].scale;
    }
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(MigrationFeatures, SayWhatTheModelPredictsAndWhatRoomIsLeft) {
  Rng rng(11);
  Asked asked(ContinuumWorld({}, &rng));
  ASSERT_GT(asked.space.count(), 3);
  for (int i = 0; i < asked.space.count(); ++i) {
    const Move& move = asked.space.candidates[i].move;
    const double exact = asked.model.Now().latency_ms - asked.model.Try(move).latency_ms;
    if (std::abs(exact) < 390) {  // Features are clipped.
      EXPECT_NEAR(FeatureOf(asked, i, "gain"), exact, 0.01);
    }
    const int64_t left = asked.state.nodes.free[move.to].cpu_millis -
                         asked.state.catalog->workloads[move.workload].requests.cpu_millis;
    EXPECT_NEAR(FeatureOf(asked, i, "to_left_cpu"), left / 1000.0, 1e-3);
    EXPECT_NEAR(FeatureOf(asked, i, "pods_on_from"), asked.space.candidates[i].pods, 1e-5);
    const double parts =
        FeatureOf(asked, i, "gain_execution") + FeatureOf(asked, i, "gain_network");
    EXPECT_NEAR(parts, FeatureOf(asked, i, "gain"), 0.01);
  }
}

// Two nodes of one kind in a far layer full of `big`; `small` blocks the way into the near one.
TEST(MigrationFeatures, SayWhatAMoveUnlocksAndBlocks) {
  WorldBuilder world;
  const LayerId near = world.Layer("near"), far = world.Layer("far"),
                outside = world.Layer("outside", false);
  const KindId near_kind = world.Kind("near", near), far_kind = world.Kind("far", far);
  const KindId client_kind = world.Kind("client", outside);
  for (LayerId layer : {near, outside}) world.LatencyBothWays(layer, far, 100);
  const WorkloadId client = world.Workload("client", 100, 1, false);
  const WorkloadId big = world.Workload("big", 1000, 1), small = world.Workload("small", 300, 1);
  const NodeId near_node = world.Node(near_kind, 1100, 100);
  const NodeId far_node = world.Node(far_kind, 1500, 100);
  world.Pod(client, world.Node(client_kind, 1000, 100));
  world.Pod(small, near_node);
  world.Pod(big, far_node);
  world.Endpoint({.workload = client, .groups = {{testing::CallTree{big, 10}}}});
  const Asked asked(world.Build());
  ASSERT_EQ(asked.space.count(), 1);  // small to the far node; big does not fit the near one.
  EXPECT_EQ(asked.space.candidates[0].move, (Move{small, near_node, far_node}));
  EXPECT_NEAR(FeatureOf(asked, 0, "unlocks"), 99,
              1e-3);  // big comes 100 ms nearer; a hop in REACH is at least 1 ms.
  EXPECT_NEAR(FeatureOf(asked, 0, "unlocks_count"), 1, 1e-6);
  EXPECT_NEAR(FeatureOf(asked, 0, "blocks_count"), 1,
              1e-6);  // The far node then holds no second small.
}

// One movable workload of two replicas, one on each side; all of it is better near.
TEST(QuestionSummary, CountsRoomCostAndWhatIsStillToGo) {
  WorldBuilder world;
  const LayerId near = world.Layer("near"), far = world.Layer("far");
  const KindId near_kind = world.Kind("near", near), far_kind = world.Kind("far", far);
  world.LatencyBothWays(near, far, 40);
  const WorkloadId client = world.Workload("client", 100, 1, false);
  const WorkloadId web = world.Workload("web", 300, 1);
  const NodeId here = world.Node(near_kind, 1500, 100);
  const NodeId there = world.Node(far_kind, 1000, 100);
  world.Pod(client, here);
  world.Pod(web, here);
  world.Pod(web, there);
  world.Endpoint({.workload = client, .groups = {{testing::CallTree{web, 10}}}});
  Asked asked(world.Build());
  const QuestionSummary q(&asked.model, {.next_ms = 0.4f, .growth_ms = 0.2f}, 1, &asked.space);
  EXPECT_NEAR(q.CostOf(3), 0.4 + 0.6 + 0.8, 1e-6);
  EXPECT_EQ(q.KindRoom(web, near_kind), 3);  // 1100 millicores are free.
  EXPECT_EQ(q.KindRoom(web, far_kind), 2);
  EXPECT_EQ(q.LayerRoom(web, near), 2);  // Three places for one pod, capped at 2.
  EXPECT_NEAR(q.ShareOnLayer(web, far), 0.5, 1e-6);
  EXPECT_NEAR(q.CallersOnLayer(web, near), 1, 1e-6);
  // A hop within a layer takes 1 ms, between them 40: half the requests save 39.
  EXPECT_NEAR(q.workload(web).best_gain, 19.5, 1e-3);
  EXPECT_NEAR(q.EverythingEach(near_kind), 19.5, 1e-3);
  EXPECT_NEAR(q.EverythingEach(far_kind), -19.5, 1e-3);
  EXPECT_EQ(q.workload(web).best_kind, near_kind);
  EXPECT_NEAR(q.workload(web).share_on_best, 0.5, 1e-6);
  EXPECT_NEAR(q.workload(web).hop_in, 20.5, 1e-3);
  EXPECT_NEAR(q.paying, 0.5, 1e-6);
}

}  // namespace
}  // namespace rudderfish
