// SPDX-License-Identifier: Apache-2.0
#include "task/features.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

#include "task/migration.h"
#include "task/question_summary.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::RandomWorld;
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
    // Nothing has been moved: each move is one that the plan must pay for.
    EXPECT_NEAR(FeatureOf(asked, i, "cost"), asked.task.StepCost({0}), 1e-5);
  }
}

// Rows are put together from parts that candidates share, in whatever order those stand.
RC_GTEST_PROP(MigrationFeatures, ACandidatesRowIsTheSameInAnyOrderOfCandidates, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  Asked asked(*rc::gen::arbitrary<bool>() ? RandomWorld(&rng) : ContinuumWorld({}, &rng));
  const std::vector<Candidate> before = asked.space.candidates;
  const FloatRows rows = asked.batch.candidates;
  const int count = asked.space.count(), width = asked.task.widths().candidate;
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int i = count; i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
  for (int i = 0; i < count; ++i) asked.space.candidates[i] = before[order[i]];
  asked.space.exhaustive = *rc::gen::arbitrary<bool>();
  asked.batch.Clear();
  asked.task.Encode(&asked.model, {0}, &asked.space, &asked.batch);
  for (int i = 0; i < count; ++i) {
    for (int f = 0; f < width; ++f) {
      RC_ASSERT(asked.batch.candidates[i * width + f] == rows[order[i] * width + f]);
    }
  }
}

// What depends on one of a move's nodes, against the state itself.
RC_GTEST_PROP(MigrationFeatures, SayOfBothNodesWhatTheStateSays, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  Asked asked(RandomWorld(&rng));
  const Placement& placement = asked.model.placement();
  const auto accepts = [&](NodeId node) {
    return asked.state.catalog->layers[asked.state.kind_of(node).layer].accepts_moves;
  };
  for (int i = 0; i < asked.space.count(); ++i) {
    const auto& [w, from, to] = asked.space.candidates[i].move;
    const Resources& requests = placement.requests(w);
    int unlocks = 0, blocks = 0, pods_on_from = 0, pods_on_to = 0;
    for (WorkloadId other = 0; other < placement.workload_count(); ++other) {
      pods_on_from += placement.on_node(other, from);
      pods_on_to += placement.on_node(other, to);
      if (!asked.state.catalog->workloads[other].movable || placement.replicas(other) == 0)
        continue;
      const Resources& theirs = placement.requests(other);
      unlocks += accepts(from) && !placement.Fits(other, from) &&
                 (placement.free(from) + requests).Fits(theirs);
      blocks += placement.Fits(other, to) && !(placement.free(to) - requests).Fits(theirs);
    }
    const auto near = [&](std::string_view name, double value) {
      const double scale = name == "unlocks_count" || name == "blocks_count" ? 4 : 8;
      return std::abs(FeatureOf(asked, i, name) - std::min(value, 8 * scale)) < 1e-4;
    };
    RC_ASSERT(near("unlocks_count", unlocks));
    RC_ASSERT(near("blocks_count", blocks));
    RC_ASSERT(near("all_pods_on_from", pods_on_from));
    RC_ASSERT(near("all_pods_on_to", pods_on_to));
    RC_ASSERT(std::abs(FeatureOf(asked, i, "pods_on_to") - std::min(24, placement.on_node(w, to))) <
              1e-4);
    RC_ASSERT(std::abs(FeatureOf(asked, i, "from_free_cpu") -
                       std::min(32.0, placement.free(from).cpu_millis / 1000.0)) < 1e-3);
    RC_ASSERT(std::abs(FeatureOf(asked, i, "to_free_cpu") -
                       std::min(32.0, placement.free(to).cpu_millis / 1000.0)) < 1e-3);
  }
}

// What is kept of a world must not outlive it: one space asked about world after world, and after
// moves, sees what a fresh one sees.
RC_GTEST_PROP(MigrationFeatures, ASpaceThatHasSeenOtherWorldsEncodesToTheSameBits, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  Asked used(RandomWorld(&rng));
  for (int world = 0; world < 3; ++world) {
    used.state = world == 1 ? ContinuumWorld({}, &rng) : RandomWorld(&rng);
    Evaluator other(LatencyLaw::Reach());
    Evaluator* model = world == 2 ? &other : &used.model;
    model->Reset(used.state);
    for (int step = 0; step < 4; ++step) {
      used.task.Space(model, {step}, &used.space);
      used.batch.Clear();
      used.task.Encode(model, {step}, &used.space, &used.batch);
      ActionSpace space;
      GraphBatch batch;
      batch.widths = used.task.widths();
      used.task.Space(model, {step}, &space);
      used.task.Encode(model, {step}, &space, &batch);
      RC_ASSERT(used.batch.candidates == batch.candidates);
      RC_ASSERT(used.batch.nodes == batch.nodes);
      RC_ASSERT(used.batch.workloads == batch.workloads);
      RC_ASSERT(used.batch.context == batch.context);
      if (space.count() == 0) break;
      model->Commit(space.candidates[rng.Below(space.count())].move);
    }
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
  QuestionSummary q;
  q.Update(&asked.model, {.next_ms = 0.4f, .growth_ms = 0.2f}, {1}, asked.space.ends,
           asked.space.candidates);
  EXPECT_NEAR(q.CostOf(3), 0.4 + 0.6 + 0.8, 1e-6);
  EXPECT_EQ(q.KindRoom(web, near_kind), 3);  // 1100 millicores are free.
  EXPECT_EQ(q.KindRoom(web, far_kind), 2);
  EXPECT_EQ(q.LayerRoom(web, near), 2);  // Three places for one pod, capped at 2.
  EXPECT_NEAR(q.ShareOnLayer(web, far), 0.5, 1e-6);
  EXPECT_NEAR(q.CallersOnLayer(web, near), 1, 1e-6);
  // A hop within a layer takes 1 ms, between them 40: half the requests save 39.
  EXPECT_NEAR(q.workload(web).best_gain, 19.5, 1e-3);
  EXPECT_NEAR(q.kind(near_kind).everything_each, 19.5, 1e-3);
  EXPECT_NEAR(q.kind(far_kind).everything_each, -19.5, 1e-3);
  EXPECT_EQ(q.workload(web).best_kind, near_kind);
  EXPECT_NEAR(q.workload(web).share_on_best, 0.5, 1e-6);
  EXPECT_NEAR(q.workload(web).hop_in, 20.5, 1e-3);
  EXPECT_NEAR(q.paying, 0.5, 1e-6);
}

}  // namespace
}  // namespace rudderfish
