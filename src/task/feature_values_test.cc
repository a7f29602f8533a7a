// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "task/features.h"
#include "task/migration.h"
#include "tests/support/small_world.h"

// Every number of every row against what its table says of it, written out from the placement, the
// gains and the summary (which question_summary_test.cc checks).

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::RandomWorld;

struct Value {
  std::string_view name;
  double value;
};

double Cores(const Resources& room) { return room.cpu_millis / 1000.0; }
double Gib(const Resources& room) { return room.memory_bytes / 1073741824.0; }

struct Asked {
  Asked(const State& start, const MigrationOptions& options, int at_step)
      : state(start), task(options), model(LatencyLaw::Reach()), step(at_step) {
    model.Reset(state);
    batch.widths = task.widths();
    Ask();
  }
  void Ask() { Ask({step}); }
  void Ask(const Question& question) {
    task.Space(&model, question, &space);
    task.Encode(&model, question, &space, &batch);
  }
  // Goes so many steps of a walk, and asks where that has led.
  void WalkOn(int steps, Rng* rng) {
    model.ImagineMoves();
    walk.Begin(model, task, {step});
    for (int i = 0; i < steps && space.count() > 0; ++i) {
      const Move move = space.candidates[rng->Below(static_cast<uint32_t>(space.count()))].move;
      model.CommitForGood(move);
      MovePod(PodOf(move), move.to, &moved);
      walk.Note(model, move);
      task.Space(&model, walk.question(), &space);
    }
    step = walk.question().step;
    walks = true;
    batch.Clear();
    Ask(walk.question());
  }
  PodId PodOf(const Move& move) {
    if (moved.pods.size() == 0) moved = state;
    PodId pod = 0;
    while (moved.pods.workload[pod] != move.workload || moved.pods.node[pod] != move.from) ++pod;
    return pod;
  }
  int MorePods(WorkloadId w, NodeId node) const {
    if (!walks) return 0;
    int before = 0;
    for (PodId pod = 0; pod < state.pods.size(); ++pod)
      before += state.pods.workload[pod] == w && state.pods.node[pod] == node;
    return model.placement().on_node(w, node) - before;
  }
  double Behind() const { return walks ? walk.objective_ms() - walk.best_objective_ms() : 0; }
  LayerId LayerOf(NodeId node) const { return state.kind_of(node).layer; }
  double StepCost() const { return task.StepCost({step}); }
  // Of a move: that of one pod more that is elsewhere, of one less, or nothing.
  double CostOf(const Move& move) const {
    const int more =
        (MorePods(move.workload, move.to) >= 0) - (MorePods(move.workload, move.from) > 0);
    if (more == 0) return 0;
    return more > 0 ? StepCost() : -task.StepCost({step - 1});
  }

  State state, moved;
  Walk walk;
  bool walks = false;
  MigrationTask task;
  Evaluator model;
  int step;
  ActionSpace space;
  GraphBatch batch;
};

void ExpectRow(const float* row, int width, const std::vector<FeatureDescription>& table,
               const std::vector<Value>& values) {
  ASSERT_EQ(table.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(table[i].name, values[i].name);
    const double expected = std::clamp(values[i].value / table[i].scale, -8.0, 8.0);
    EXPECT_NEAR(row[i], expected, 2e-4 + 1e-4 * std::abs(expected)) << values[i].name;
  }
  for (int i = static_cast<int>(values.size()); i < width; ++i) EXPECT_EQ(row[i], 0);
}

std::vector<Value> CandidateValues(Asked* a, const Candidate& c) {
  const QuestionSummary& q = a->space.summary;
  const auto& [w, from, to] = c.move;
  const Placement& placement = a->model.placement();
  const MoveGains& gains = a->model.Gains();
  const KindId from_kind = placement.kind(from), to_kind = placement.kind(to);
  const LayerId from_layer = a->LayerOf(from), to_layer = a->LayerOf(to);
  const Resources& requests = placement.requests(w);
  const Resources from_free = placement.free(from), to_free = placement.free(to);
  const int replicas = placement.replicas(w), to_go = replicas - placement.on_kind(w, to_kind);
  int from_pods = 0, to_pods = 0;
  for (WorkloadId other = 0; other < placement.workload_count(); ++other) {
    from_pods += placement.on_node(other, from);
    to_pods += placement.on_node(other, to);
  }
  const double gain = gains.Gain(w, from_kind, to_kind), all = gains.GainOfAll(w, to_kind);
  double all_cost = 0;
  for (int i = 0; i < to_go; ++i) all_cost += a->task.StepCost({a->step + i});
  const double each = all / std::max(1, to_go), best = std::max(0.0f, q.best_gain);
  const double execution =
      (q.ExecutionOn(w, from_kind) - q.ExecutionOn(w, to_kind)) / std::max(1, replicas);
  const double per_best = 1 / std::max({static_cast<double>(q.best_gain), a->StepCost(), 1e-3});
  const double net = gain - a->CostOf(c.move), improves = std::max(0.0, net - a->Behind());
  const Sequel unlocks = q.UnlockedBy(w, a->space.ends.row(from));
  const Sequel blocks = q.BlockedBy(w, a->space.ends.row(to));
  return {{"gain", gain},
          {"gain_fine", std::clamp(gain, -30.0, 30.0)},
          {"cost", a->CostOf(c.move)},
          {"gain_net", std::clamp(net, -30.0, 30.0)},
          {"gain_behind", gain - best},
          {"gain_execution", execution},
          {"hop_there", a->model.HopMsBetween(from_kind, to_kind)},
          {"improves", improves},
          {"improves_fine", std::min(15.0, improves)},
          {"lies_behind", std::max(0.0, a->Behind() - net)},
          {"same_layer", from_layer == to_layer ? 1.0 : 0.0},
          {"gain_relative", gain * per_best},
          {"gain_of_all", all},
          {"gain_of_all_net", all - all_cost},
          {"gain_of_all_each", each},
          {"gain_of_all_best", q.workload(w).best_all},
          {"gain_of_everything", gains.GainOfEverything(to_kind)},
          {"gain_of_everything_each", q.kind(to_kind).everything_each},
          {"gain_of_all_each_relative", each * per_best},
          {"requests_cpu", Cores(requests)},
          {"requests_memory", Gib(requests)},
          {"share_on_to", q.ShareOnLayer(w, to_layer)},
          {"callers_on_to", q.CallersOnLayer(w, to_layer)},
          {"callees_on_to", q.CalleesOnLayer(w, to_layer)},
          {"to_free_cpu", Cores(to_free)},
          {"to_free_memory", std::min(8.0, Gib(to_free))},
          {"to_left_cpu", Cores(to_free - requests)},
          {"to_left_memory", std::min(4.0, Gib(to_free - requests))},
          {"pods_on_to", static_cast<double>(placement.on_node(w, to))},
          {"more_pods_on_to", static_cast<double>(a->MorePods(w, to))},
          {"all_pods_on_to", static_cast<double>(to_pods)},
          {"blocks", blocks.gain},
          {"blocks_count", blocks.workloads},
          {"layer_room", q.LayerRoom(w, to_layer)},
          {"kind_room", std::min(10.0f, q.KindRoom(w, to_kind))},
          {"workload_best_gain", q.workload(w).best_gain},
          {"others_best_gain", q.BestGainOfOthers(w)},
          {"gain_of_everything_from", q.kind(from_kind).everything_each},
          {"share_on_from", q.ShareOnLayer(w, from_layer)},
          {"callers_on_from", q.CallersOnLayer(w, from_layer)},
          {"callees_on_from", q.CalleesOnLayer(w, from_layer)},
          {"from_free_cpu", Cores(from_free)},
          {"from_free_memory", std::min(8.0, Gib(from_free))},
          {"pods_on_from", static_cast<double>(placement.on_node(w, from))},
          {"more_pods_on_from", static_cast<double>(a->MorePods(w, from))},
          {"all_pods_on_from", static_cast<double>(from_pods)},
          {"unlocks", unlocks.gain},
          {"unlocks_count", unlocks.workloads}};
}

std::vector<Value> NodeValues(const Asked& a, int row) {
  const NodeSummary& n = a.space.summary.node(row);
  const KindSummary& k = a.space.summary.kind(n.kind);
  const NodeId id = a.space.ends.node(row).id;
  const Resources& free = a.model.placement().free(id);
  double more = 0;
  for (WorkloadId w = 0; w < a.model.placement().workload_count(); ++w) more += a.MorePods(w, id);
  return {{"free_cpu", Cores(free)},
          {"free_memory", std::min(16.0, Gib(free))},
          {"used_cpu", n.used_cpu},
          {"slowness", k.slowness},
          {"accepts_moves", k.accepts_moves},
          {"pods", n.pods},
          {"best_gain_in", n.best_in},
          {"best_gain_blocked", n.best_blocked},
          {"best_gain_out", n.best_out},
          {"fits", n.fits},
          {"gain_of_everything", k.everything},
          {"hop_in", k.hop_in},
          {"hop_out", k.hop_out},
          {"room_largest", n.room_largest},
          {"more_pods", more},
          {"one", 1}};
}

std::vector<Value> WorkloadValues(const Asked& a, WorkloadId id) {
  const WorkloadSummary& w = a.space.summary.workload(id);
  const Workload& workload = a.state.catalog->workloads[id];
  double displaced = 0;
  for (NodeId node = 0; node < a.state.nodes.size(); ++node)
    displaced += std::max(0, a.MorePods(id, node));
  return {{"replica_share", w.share},
          {"requests_cpu", Cores(workload.requests)},
          {"requests_memory", Gib(workload.requests)},
          {"movable", workload.movable ? 1.0 : 0.0},
          {"best_gain", w.best_gain},
          {"best_gain_all", w.best_all},
          {"execution", w.execution_now},
          {"execution_best", w.execution_best},
          {"hop_in", w.hop_in},
          {"hop_out", w.hop_out},
          {"spread", w.spread},
          {"share_on_best", w.share_on_best},
          {"room_on_best", w.room_on_best},
          {"best_gain_blocked", w.best_blocked},
          {"displaced", displaced},
          {"calls", w.calls}};
}

std::vector<Value> ContextValues(const Asked& a) {
  const QuestionSummary& q = a.space.summary;
  const Terms& now = a.model.Now();
  return {{"latency", now.latency_ms},
          {"execution", now.execution_ms},
          {"network", now.network_ms},
          {"step_cost", a.StepCost()},
          {"best_gain", q.best_gain},
          {"best_pays", q.best_gain > a.StepCost() ? 1.0 : 0.0},
          {"best_everything", q.best_everything},
          {"best_everything_each", q.best_everything_each},
          {"sum_gain_of_all", q.sum_best_all},
          {"hop_mean", q.hop_mean},
          {"hop_max", q.hop_max},
          {"paying", q.paying},
          {"free_cpu", q.free_cpu},
          {"behind", a.Behind()},
          {"at_best", !a.walks || a.walk.steps() == a.walk.best_steps() ? 1.0 : 0.0},
          {"since_best", a.walks ? a.walk.steps() - a.walk.best_steps() : 0.0},
          {"displaced", a.walks ? a.walk.displaced() : 0.0},
          {"won", a.walks ? a.walk.start_ms() - now.latency_ms : 0.0},
          {"one", 1}};
}

MigrationOptions AnyOptions(Rng* rng) {
  return {.step_penalty_ms = rng->Uniform(0, 10),
          .step_penalty = rng->Below(2) == 0 ? StepPenalty::kGrowing : StepPenalty::kConstant,
          .max_candidates = rng->Below(3) == 0 ? 6 : 1024};
}

TEST(MigrationFeatures, RowsHoldWhatTheirTablesSay) {
  for (int seed = 0; seed < 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 8);
    const State state =
        seed % 3 == 0 ? ContinuumWorld({.replicas_max = 8}, &rng) : RandomWorld(&rng);
    Asked asked(state, AnyOptions(&rng), rng.Between(0, 9));
    if (seed % 2 == 0) asked.WalkOn(rng.Between(0, 8), &rng);
    const FeatureTable& table = asked.task.features();
    const GraphWidths& widths = asked.batch.widths;
    for (int i = 0; i < asked.space.count(); ++i) {
      ExpectRow(asked.batch.candidates.data() + i * widths.candidate, widths.candidate,
                table.candidate, CandidateValues(&asked, asked.space.candidates[i]));
    }
    for (int row = 0; row < asked.state.nodes.size(); ++row) {
      ExpectRow(asked.batch.nodes.data() + row * widths.node, widths.node, table.node,
                NodeValues(asked, row));
    }
    for (WorkloadId w = 0; w < asked.state.catalog->workload_count(); ++w) {
      ExpectRow(asked.batch.workloads.data() + w * widths.workload, widths.workload, table.workload,
                WorkloadValues(asked, w));
    }
    ExpectRow(asked.batch.context.data(), widths.context, table.context, ContextValues(asked));
  }
}

TEST(MigrationFeatures, EdgesSayWhoRunsWhereAndWhoCallsWhomSampleBySample) {
  for (int seed = 0; seed < 30; ++seed) {
    Rng rng(seed, 9);
    const FeaturePreset preset = seed % 2 == 0 ? FeaturePreset::kModel : FeaturePreset::kReachAgent;
    Asked asked(RandomWorld(&rng), {.features = preset}, 0);
    asked.Ask();
    const GraphBatch& batch = asked.batch;
    const Placement& placement = asked.model.placement();
    ASSERT_EQ(batch.samples, 2);
    size_t edge = 0;
    for (int sample = 0; sample < 2; ++sample) {
      EXPECT_EQ(batch.placement_begin[sample], static_cast<int32_t>(edge));
      for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
        for (int row = 0; row < placement.node_count(); ++row) {
          const int here = placement.on_node(w, asked.space.ends.node(row).id);
          if (here == 0) continue;
          ASSERT_LT(edge, batch.placements.size());
          EXPECT_EQ(batch.placements[edge].a, row);
          EXPECT_EQ(batch.placements[edge].b, w);
          EXPECT_NEAR(batch.placements[edge].weight, 1.0 * here / placement.replicas(w), 1e-6);
          ++edge;
        }
      }
    }
    EXPECT_EQ(edge, batch.placements.size());
    const auto& calls = asked.space.summary.calls();
    EXPECT_EQ(batch.calls.size(), 2 * calls.size());
    for (size_t i = 0; i < batch.calls.size(); ++i) {
      EXPECT_EQ(batch.calls[i].a, calls[i % calls.size()].a);
      EXPECT_EQ(batch.calls[i].b, calls[i % calls.size()].b);
      EXPECT_EQ(batch.calls[i].weight, calls[i % calls.size()].weight);
    }
    const int32_t count = asked.space.count(), nodes = placement.node_count();
    EXPECT_EQ(batch.candidate_begin, (std::vector<int32_t>{0, count, 2 * count}));
    EXPECT_EQ(batch.node_begin, (std::vector<int32_t>{0, nodes, 2 * nodes}));
    EXPECT_EQ(batch.call_begin[1], static_cast<int32_t>(calls.size()));
    EXPECT_EQ(batch.call_begin[2], static_cast<int32_t>(batch.calls.size()));
    EXPECT_EQ(batch.ends.size(), 2u * count);
    for (int i = 0; i < 2 * count; ++i) {
      const Move& move = asked.space.candidates[i % count].move;
      EXPECT_EQ(batch.ends[i].workload, move.workload);
      EXPECT_EQ(batch.ends[i].from, asked.space.ends.row(move.from));
      EXPECT_EQ(batch.ends[i].to, asked.space.ends.row(move.to));
    }
  }
}

TEST(MigrationFeatures, AWorldWithoutCallsIsEncodedAsOneWithoutGains) {
  testing::WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId web = world.Workload("web", 100, 1);
  world.Pod(web, world.Node(kind, 1000, 100));
  world.Node(kind, 1000, 100);
  Asked asked(world.Build(), {}, 0);
  ASSERT_EQ(asked.space.count(), 1);
  ExpectRow(asked.batch.candidates.data(), asked.batch.widths.candidate,
            asked.task.features().candidate, CandidateValues(&asked, asked.space.candidates[0]));
  EXPECT_EQ(asked.batch.candidates[0], 0);
  EXPECT_EQ(asked.space.summary.workload(web).execution_best, 0);
  EXPECT_EQ(asked.space.summary.kind(kind).slowness, 0);
  EXPECT_EQ(asked.space.summary.CallersOnLayer(web, 0), 0);
  EXPECT_EQ(asked.batch.calls.size(), 0u);
}

// Rooms beyond what the tables count: memory of nodes and room for pods are capped before scaling.
TEST(MigrationFeatures, MuchRoomLooksLikeEnough) {
  testing::WorldBuilder world;
  const LayerId layer = world.Layer("all");
  const KindId kind = world.Kind("node", layer), far = world.Kind("far", layer, 2);
  const WorkloadId client = world.Workload("client", 100, 1, false),
                   web = world.Workload("web", 100, 100);
  const NodeId a = world.Node(far, 20'000, 40 * 1024);
  world.Node(kind, 20'000, 40 * 1024);
  world.Pod(client, a);
  world.Pod(web, a);
  world.Endpoint({.workload = client, .groups = {{testing::CallTree{web, 100}}}});
  Asked asked(world.Build(), {}, 0);
  ASSERT_EQ(asked.space.count(), 1);
  const float* row = asked.batch.candidates.data();
  EXPECT_EQ(row[1], 3);   // gain_fine: 100 ms, counted as 30.
  EXPECT_EQ(row[3], 3);   // gain_net likewise.
  EXPECT_EQ(row[42], 1);  // from_free_memory: 40 GiB, counted as 8.
  EXPECT_EQ(row[25], 1);
  EXPECT_EQ(row[27], 1);               // to_left_memory: counted as 4.
  EXPECT_EQ(row[34], 2);               // kind_room: 200 pods, counted as 10.
  EXPECT_EQ(asked.batch.nodes[1], 2);  // free_memory: counted as 16.
}

}  // namespace
}  // namespace rudderfish
