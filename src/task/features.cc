// SPDX-License-Identifier: Apache-2.0
#include "task/features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "task/question_summary.h"

namespace rudderfish {
namespace {

template <class View>
struct Feature {
  std::string_view name;
  std::string_view unit;
  float scale;
  float (*get)(const View&);
  std::string_view meaning;
};

// One candidate, with what it joins.
struct CandidateView {
  const QuestionSummary& q;
  const Candidate& c;
  const WorkloadSummary& w;
  KindId from_kind, to_kind;
  LayerId from_layer, to_layer;
  Resources from_free, to_free;
  const Resources& requests;
  float share;        // 1 / replicas
  float gain_of_all;  // To the target's kind.
  float to_go;        // Pods of the workload not on the target's kind.
  float execution;    // Part of the gain that is execution.
  Sequel sequel;
};

struct NodeView {
  const QuestionSummary& q;
  const NodeSummary& n;
};

struct WorkloadView {
  const QuestionSummary& q;
  const WorkloadSummary& w;
};

float Gib(int64_t bytes) {
  return static_cast<float>(bytes) * static_cast<float>(1 / kBytesPerGib);
}
float Cores(int64_t millis) { return static_cast<float>(millis) * 1e-3f; }
float Clip(float x, float limit) { return std::min(std::max(x, -limit), limit); }

using C = const CandidateView&;
constexpr std::array<Feature<CandidateView>, 48> kCandidate{{
    {"gain", "ms", 50, [](C v) { return v.c.gain_ms; }, "predicted fall in latency"},
    {"gain_fine", "ms", 10, [](C v) { return Clip(v.c.gain_ms, 30); },
     "the same, magnified around zero"},
    {"gain_pays", "", 1, [](C v) { return v.c.gain_ms > v.q.step_cost_ms ? 1.0f : 0.0f; },
     "whether the gain exceeds the cost of a step"},
    {"gain_net", "ms", 10, [](C v) { return Clip(v.c.gain_ms - v.q.step_cost_ms, 30); },
     "gain less step cost"},
    {"gain_behind", "ms", 50, [](C v) { return v.c.gain_ms - std::max(0.0f, v.q.best_gain); },
     "gain less the best gain of all candidates"},
    {"gain_execution", "ms", 50, [](C v) { return v.execution; },
     "part of the gain that is execution time"},
    {"gain_network", "ms", 50, [](C v) { return v.c.gain_ms - v.execution; }, "the rest: hops"},
    {"gain_of_all", "ms", 250, [](C v) { return v.gain_of_all; },
     "fall if the whole workload ran on the target's kind"},
    {"gain_of_all_net", "ms", 250, [](C v) { return v.gain_of_all - v.q.CostOf(v.to_go); },
     "the same less the cost of the moves it takes"},
    {"gain_of_all_each", "ms", 50, [](C v) { return v.gain_of_all / std::max(1.0f, v.to_go); },
     "the same for each move it takes"},
    {"gain_of_all_best", "ms", 250, [](C v) { return v.w.best_all; }, "the best of it over kinds"},
    {"gain_of_all_behind", "ms", 250,
     [](C v) { return v.gain_of_all - std::max(0.0f, v.w.best_all); },
     "how far the target's kind is from the best one"},
    {"gain_of_everything", "ms", 250, [](C v) { return v.q.gains->GainOfEverything(v.to_kind); },
     "fall if every movable workload ran on the target's kind"},
    {"gain_of_everything_each", "ms", 50, [](C v) { return v.q.EverythingEach(v.to_kind); },
     "the same for each move it takes"},
    {"gain_of_everything_from", "ms", 50, [](C v) { return v.q.EverythingEach(v.from_kind); },
     "the same for the source's kind"},
    {"gain_of_all_each_relative", "", 4,
     [](C v) { return v.gain_of_all / std::max(1.0f, v.to_go) * v.q.per_best_gain; },
     "gain_of_all_each as a share of the same"},
    {"hop_there", "ms", 250, [](C v) { return v.q.Hop(v.from_kind, v.to_kind); },
     "hop from source to target"},
    {"replica_share", "", 1, [](C v) { return v.share; }, "one replica's share of the workload"},
    {"requests_cpu", "cores", 2, [](C v) { return Cores(v.requests.cpu_millis); },
     "CPU request of the pod"},
    {"requests_memory", "GiB", 2, [](C v) { return Gib(v.requests.memory_bytes); },
     "memory request of the pod"},
    {"share_on_from", "", 1, [](C v) { return v.q.ShareOnLayer(v.c.move.workload, v.from_layer); },
     "share of the workload on the source's layer"},
    {"share_on_to", "", 1, [](C v) { return v.q.ShareOnLayer(v.c.move.workload, v.to_layer); },
     "share of the workload on the target's layer"},
    {"callers_on_from", "", 1,
     [](C v) { return v.q.CallersOnLayer(v.c.move.workload, v.from_layer); },
     "share of its callers on the source's layer"},
    {"callers_on_to", "", 1, [](C v) { return v.q.CallersOnLayer(v.c.move.workload, v.to_layer); },
     "share of its callers on the target's layer"},
    {"callees_on_from", "", 1,
     [](C v) { return v.q.CalleesOnLayer(v.c.move.workload, v.from_layer); },
     "share of its callees on the source's layer"},
    {"callees_on_to", "", 1, [](C v) { return v.q.CalleesOnLayer(v.c.move.workload, v.to_layer); },
     "share of its callees on the target's layer"},
    {"from_free_cpu", "cores", 4, [](C v) { return Cores(v.from_free.cpu_millis); },
     "free CPU of the source"},
    {"from_free_memory", "GiB", 8,
     [](C v) { return std::min(8.0f, Gib(v.from_free.memory_bytes)); },
     "free memory of the source"},
    {"to_free_cpu", "cores", 4, [](C v) { return Cores(v.to_free.cpu_millis); },
     "free CPU of the target"},
    {"to_free_memory", "GiB", 8, [](C v) { return std::min(8.0f, Gib(v.to_free.memory_bytes)); },
     "free memory of the target"},
    {"to_left_cpu", "cores", 2,
     [](C v) { return Cores(v.to_free.cpu_millis - v.requests.cpu_millis); },
     "CPU left on the target after the move"},
    {"to_left_memory", "GiB", 4,
     [](C v) { return std::min(4.0f, Gib(v.to_free.memory_bytes - v.requests.memory_bytes)); },
     "memory left on the target after the move"},
    {"pods_on_from", "pods", 3, [](C v) { return static_cast<float>(v.c.pods); },
     "pods of the workload on the source"},
    {"pods_on_to", "pods", 3,
     [](C v) { return static_cast<float>(v.q.OnNode(v.c.move.workload, v.c.move.to)); },
     "pods of the workload on the target"},
    {"all_pods_on_from", "pods", 8, [](C v) { return v.q.node(v.c.move.from).pods; },
     "pods on the source"},
    {"all_pods_on_to", "pods", 8, [](C v) { return v.q.node(v.c.move.to).pods; },
     "pods on the target"},
    {"unlocks", "ms", 50, [](C v) { return v.sequel.unlocked_gain; },
     "best gain of a move to the source that has room only afterwards"},
    {"blocks", "ms", 50, [](C v) { return v.sequel.blocked_gain; },
     "best gain of a move to the target that has no more room afterwards"},
    {"unlocks_count", "workloads", 4, [](C v) { return v.sequel.unlocked; },
     "workloads that then fit the source"},
    {"blocks_count", "workloads", 4, [](C v) { return v.sequel.blocked; },
     "workloads that then fit the target no more"},
    {"gain_and_next", "ms", 50, [](C v) { return v.c.gain_ms + v.sequel.unlocked_gain; },
     "gain with what it unlocks"},
    {"gain_and_next_behind", "ms", 50,
     [](C v) { return v.c.gain_ms + v.sequel.unlocked_gain - std::max(0.0f, v.q.best_gain); },
     "the same less the best gain"},
    {"layer_room", "", 1, [](C v) { return v.q.LayerRoom(v.c.move.workload, v.to_layer); },
     "room on the target's layer for the workload's pods elsewhere, as a share of them, at most 2"},
    {"kind_room", "pods", 5,
     [](C v) { return std::min(10.0f, v.q.KindRoom(v.c.move.workload, v.to_kind)); },
     "pods of the workload that fit the target's kind of node"},
    {"workload_best_gain", "ms", 50, [](C v) { return v.w.best_gain; },
     "best gain of a move of this workload"},
    {"others_best_gain", "ms", 50, [](C v) { return v.q.BestGainOfOthers(v.c.move.workload); },
     "best gain of a move of another workload"},
    {"same_layer", "", 1, [](C v) { return v.from_layer == v.to_layer ? 1.0f : 0.0f; },
     "whether it stays in its layer"},
    {"gain_relative", "", 1, [](C v) { return v.c.gain_ms * v.q.per_best_gain; },
     "gain as a share of the best one, or of the step cost if that is more"},
}};

using N = const NodeView&;
constexpr std::array<Feature<NodeView>, 15> kNode{{
    {"free_cpu", "cores", 4, [](N v) { return Cores(v.n.free.cpu_millis); }, "free CPU"},
    {"free_memory", "GiB", 8, [](N v) { return std::min(16.0f, Gib(v.n.free.memory_bytes)); },
     "free memory"},
    {"used_cpu", "", 1, [](N v) { return v.n.used_cpu; }, "share of CPU requested"},
    {"slowness", "", 1, [](N v) { return v.n.slowness; },
     "execution time here against the fastest kind, less 1"},
    {"accepts_moves", "", 1, [](N v) { return v.n.accepts_moves; },
     "whether pods may be moved here"},
    {"pods", "pods", 8, [](N v) { return v.n.pods; }, "pods on the node"},
    {"best_gain_in", "ms", 50, [](N v) { return v.n.best_in; },
     "best gain of a move to this kind that fits"},
    {"best_gain_blocked", "ms", 50, [](N v) { return v.n.best_blocked; },
     "best gain of a move to this kind that does not"},
    {"best_gain_out", "ms", 50, [](N v) { return v.n.best_out; },
     "best gain of moving a pod of this node, room or not"},
    {"fits", "", 1, [](N v) { return v.n.fits; },
     "share of movable workloads with a pod's room here"},
    {"gain_of_everything", "ms", 250, [](N v) { return v.n.everything; },
     "fall if everything ran on this kind"},
    {"hop_in", "ms", 250, [](N v) { return v.n.hop_in; }, "mean hop from the other nodes"},
    {"hop_out", "ms", 250, [](N v) { return v.n.hop_out; }, "mean hop to the other nodes"},
    {"room_largest", "", 1, [](N v) { return v.n.room_largest; },
     "whether the largest workload fits"},
    {"one", "", 1, [](N) { return 1.0f; }, "constant"},
}};

using W = const WorkloadView&;
constexpr std::array<Feature<WorkloadView>, 15> kWorkload{{
    {"replica_share", "", 1, [](W v) { return v.w.share; }, "one replica's share"},
    {"requests_cpu", "cores", 2, [](W v) { return Cores(v.w.requests.cpu_millis); },
     "CPU request of a pod"},
    {"requests_memory", "GiB", 2, [](W v) { return Gib(v.w.requests.memory_bytes); },
     "memory request of a pod"},
    {"movable", "", 1, [](W v) { return v.w.movable ? 1.0f : 0.0f; }, "whether its pods may move"},
    {"best_gain", "ms", 50, [](W v) { return v.w.best_gain; }, "best gain of a move that fits"},
    {"best_gain_all", "ms", 250, [](W v) { return v.w.best_all; },
     "best fall if all its pods were on one kind"},
    {"execution", "ms", 50, [](W v) { return v.w.execution_now; },
     "execution time of its calls now"},
    {"execution_best", "ms", 50, [](W v) { return v.w.execution_best; },
     "the same on the fastest kind"},
    {"hop_in", "ms", 250, [](W v) { return v.w.hop_in; }, "hops of the calls it takes"},
    {"hop_out", "ms", 250, [](W v) { return v.w.hop_out; }, "hops of the calls it makes"},
    {"spread", "", 1, [](W v) { return v.w.spread; },
     "nodes it runs on, as a share of its replicas"},
    {"share_on_best", "", 1, [](W v) { return v.w.share_on_best; },
     "share of its pods on its best kind"},
    {"room_on_best", "", 1, [](W v) { return v.w.room_on_best; },
     "room there for the others, as a share, at most 2"},
    {"best_gain_blocked", "ms", 50, [](W v) { return v.w.best_blocked; },
     "best gain of its moves, room or not"},
    {"calls", "calls", 4, [](W v) { return v.w.calls; }, "calls it takes, mean over endpoints"},
}};

using Q = const QuestionSummary&;
constexpr std::array<Feature<QuestionSummary>, 14> kContext{{
    {"latency", "ms", 250, [](Q q) { return q.latency_ms; }, "latency now"},
    {"execution", "ms", 100, [](Q q) { return q.execution_ms; }, "of it execution"},
    {"network", "ms", 250, [](Q q) { return q.network_ms; }, "of it hops"},
    {"step_cost", "ms", 5, [](Q q) { return q.step_cost_ms; }, "what the next move must gain"},
    {"best_gain", "ms", 50, [](Q q) { return q.best_gain; }, "best gain of all candidates"},
    {"best_pays", "", 1, [](Q q) { return q.best_gain > q.step_cost_ms ? 1.0f : 0.0f; },
     "whether it pays"},
    {"best_everything", "ms", 250, [](Q q) { return q.best_everything; },
     "fall if everything ran on the best kind"},
    {"best_everything_each", "ms", 50, [](Q q) { return q.best_everything_each; },
     "the same for each move it takes"},
    {"sum_gain_of_all", "ms", 250, [](Q q) { return q.sum_best_all; },
     "sum over workloads of best_gain_all"},
    {"hop_mean", "ms", 250, [](Q q) { return q.hop_mean; },
     "mean hop between nodes of different kinds"},
    {"hop_max", "ms", 250, [](Q q) { return q.hop_max; }, "largest hop"},
    {"paying", "", 1, [](Q q) { return q.paying; },
     "share of the candidates whose gain exceeds the cost of a step"},
    {"free_cpu", "", 1, [](Q q) { return q.free_cpu; },
     "share of CPU that is free where pods may move"},
    {"one", "", 1, [](Q) { return 1.0f; }, "constant"},
}};

// What REACH's agent observes (newest generation): free CPU and memory and layer of nodes, where
// each pod is, the latency from client to cloud, the step. Its network knows pods and nodes by
// position; ours is told which workload.
struct ReachView {
  const QuestionSummary& q;
  const Candidate* c = nullptr;
  NodeId node = kNone;
  WorkloadId workload = kNone;
};
using R = const ReachView&;
template <int kLayer>
float FromLayer(R v) {
  return v.q.layer(v.c->move.from) == kLayer ? 1.0f : 0.0f;
}
template <int kLayer>
float ToLayer(R v) {
  return v.q.layer(v.c->move.to) == kLayer ? 1.0f : 0.0f;
}
template <int kWorkload>
float IsWorkload(R v) {
  return v.c->move.workload == kWorkload ? 1.0f : 0.0f;
}
constexpr std::array<Feature<ReachView>, 17> kReachCandidate{{
    {"from_free_cpu", "cores", 4,
     [](R v) { return Cores(v.q.node(v.c->move.from).free.cpu_millis); }, "free CPU of the source"},
    {"from_free_memory", "GiB", 8,
     [](R v) { return Gib(v.q.node(v.c->move.from).free.memory_bytes); },
     "free memory of the source"},
    {"to_free_cpu", "cores", 4, [](R v) { return Cores(v.q.node(v.c->move.to).free.cpu_millis); },
     "free CPU of the target"},
    {"to_free_memory", "GiB", 8, [](R v) { return Gib(v.q.node(v.c->move.to).free.memory_bytes); },
     "free memory of the target"},
    {"from_layer_0", "", 1, FromLayer<0>, "whether the source is in the first layer"},
    {"from_layer_1", "", 1, FromLayer<1>, "in the second"},
    {"from_layer_2", "", 1, FromLayer<2>, "in the third"},
    {"to_layer_0", "", 1, ToLayer<0>, "whether the target is in the first layer"},
    {"to_layer_1", "", 1, ToLayer<1>, "in the second"},
    {"to_layer_2", "", 1, ToLayer<2>, "in the third"},
    {"workload_0", "", 1, IsWorkload<0>, "whether the pod is of the first workload"},
    {"workload_1", "", 1, IsWorkload<1>, "of the second"},
    {"workload_2", "", 1, IsWorkload<2>, "of the third"},
    {"workload_3", "", 1, IsWorkload<3>, "of the fourth"},
    {"workload_4", "", 1, IsWorkload<4>, "of the fifth"},
    {"pods_on_from", "pods", 3, [](R v) { return static_cast<float>(v.c->pods); },
     "pods of the workload on the source"},
    {"pods_on_to", "pods", 3,
     [](R v) { return static_cast<float>(v.q.OnNode(v.c->move.workload, v.c->move.to)); },
     "on the target"},
}};
constexpr std::array<Feature<ReachView>, 5> kReachNode{{
    {"free_cpu", "cores", 4, [](R v) { return Cores(v.q.node(v.node).free.cpu_millis); },
     "free CPU"},
    {"free_memory", "GiB", 8, [](R v) { return Gib(v.q.node(v.node).free.memory_bytes); },
     "free memory"},
    {"layer_0", "", 1, [](R v) { return v.q.layer(v.node) == 0 ? 1.0f : 0.0f; }, "first layer"},
    {"layer_1", "", 1, [](R v) { return v.q.layer(v.node) == 1 ? 1.0f : 0.0f; }, "second layer"},
    {"layer_2", "", 1, [](R v) { return v.q.layer(v.node) == 2 ? 1.0f : 0.0f; }, "third layer"},
}};
constexpr std::array<Feature<ReachView>, 4> kReachWorkload{{
    {"replicas", "pods", 5,
     [](R v) { return static_cast<float>(v.q.workload(v.workload).replicas); }, "replicas"},
    {"share_layer_0", "", 1, [](R v) { return v.q.ShareOnLayer(v.workload, 0); },
     "share on the first layer"},
    {"share_layer_1", "", 1, [](R v) { return v.q.ShareOnLayer(v.workload, 1); }, "on the second"},
    {"share_layer_2", "", 1, [](R v) { return v.q.ShareOnLayer(v.workload, 2); }, "on the third"},
}};
constexpr std::array<Feature<ReachView>, 3> kReachContext{{
    {"client_cloud_latency", "ms", 250, [](R v) { return v.q.client_cloud_ms; },
     "latency from the last layer to the first"},
    {"step", "steps", 10, [](R v) { return static_cast<float>(v.q.step); },
     "decisions already taken"},
    {"one", "", 1, [](R) { return 1.0f; }, "constant"},
}};

// Writes one row, each feature read in line: the table is known to the compiler.
template <const auto& kTable, class View, size_t... kIndex>
void WriteRow(const View& view, float* row, std::index_sequence<kIndex...>) {
  ((row[kIndex] = kTable[kIndex].get(view) * (1.0f / kTable[kIndex].scale)), ...);
}

// Values far outside of what training saw would carry a network anywhere.
constexpr float kFeatureLimit = 8;

template <const auto& kTable, class View>
float* FillRow(const View& view, int width, float* row) {
  constexpr size_t kCount = std::tuple_size_v<std::remove_cvref_t<decltype(kTable)>>;
  WriteRow<kTable>(view, row, std::make_index_sequence<kCount>{});
  for (size_t i = 0; i < kCount; ++i) row[i] = Clip(row[i], kFeatureLimit);
  return row + width;  // The rest of the row is 0.
}

// Room for `count` more rows of zeros.
float* AddRows(int count, int width, std::vector<float>* rows) {
  const size_t at = rows->size();
  rows->resize(at + static_cast<size_t>(count) * width);
  return rows->data() + at;
}

template <class View, size_t kCount>
std::vector<FeatureDescription> Describe(const std::array<Feature<View>, kCount>& table) {
  std::vector<FeatureDescription> descriptions;
  for (const auto& f : table) descriptions.push_back({f.name, f.unit, f.scale, f.meaning});
  return descriptions;
}

// Rows and edges that do not depend on the preset: who joins what.
void AppendGraph(const QuestionSummary& q, const ActionSpace& space, GraphBatch* batch) {
  for (const Candidate& c : space.candidates) {
    batch->ends.push_back({c.move.workload, q.row(c.move.from), q.row(c.move.to)});
  }
  for (WorkloadId w = 0; w < q.workload_count(); ++w) {
    for (int row = 0; row < q.node_count(); ++row) {
      const int here = q.OnNode(w, q.node_at(row));
      if (here > 0)
        batch->placements.push_back({row, w, static_cast<float>(here) * q.workload(w).share});
    }
  }
  const CallGraph& calls = q.model->calls();
  const float weight = 1.0f / std::max<size_t>(1, calls.endpoints.size());
  for (CallId call = 0; call < calls.call_count(); ++call) {
    const WorkloadId caller = q.model->CallerOf(call);
    if (caller != kNone) batch->calls.push_back({caller, calls.calls[call].workload, weight});
  }
}

void CloseSample(const QuestionSummary& q, GraphBatch* batch) {
  batch->candidate_begin.push_back(static_cast<int32_t>(batch->ends.size()));
  batch->node_begin.push_back(batch->node_begin.back() + q.node_count());
  batch->workload_begin.push_back(batch->workload_begin.back() + q.workload_count());
  batch->placement_begin.push_back(static_cast<int32_t>(batch->placements.size()));
  batch->call_begin.push_back(static_cast<int32_t>(batch->calls.size()));
  ++batch->samples;
}

}  // namespace

const FeatureTable& MigrationFeatures::Model() {
  static const FeatureTable table{Describe(kCandidate), Describe(kNode), Describe(kWorkload),
                                  Describe(kContext)};
  return table;
}

const FeatureTable& MigrationFeatures::ReachAgent() {
  static const FeatureTable table{Describe(kReachCandidate), Describe(kReachNode),
                                  Describe(kReachWorkload), Describe(kReachContext)};
  return table;
}

void MigrationFeatures::Write(Evaluator* model, const StepCosts& costs, int step,
                              ActionSpace* space, GraphBatch* batch) {
  const GraphWidths& widths = batch->widths;
  CHECK(widths == kMigrationWidths);
  const QuestionSummary q(model, costs, step, space);
  float* row = AddRows(space->count(), widths.candidate, &batch->candidates);
  for (const Candidate& c : space->candidates) {
    const Move& move = c.move;
    const WorkloadSummary& w = q.workload(move.workload);
    const KindId from_kind = q.placement->kind(move.from);
    const KindId to_kind = q.placement->kind(move.to);
    const CandidateView view{
        .q = q,
        .c = c,
        .w = w,
        .from_kind = from_kind,
        .to_kind = to_kind,
        .from_layer = q.layer(move.from),
        .to_layer = q.layer(move.to),
        .from_free = q.placement->free(move.from),
        .to_free = q.placement->free(move.to),
        .requests = w.requests,
        .share = w.share,
        .gain_of_all = q.gains->GainOfAll(move.workload, to_kind),
        .to_go = static_cast<float>(w.replicas - q.placement->on_kind(move.workload, to_kind)),
        .execution =
            (q.ExecutionOn(move.workload, from_kind) - q.ExecutionOn(move.workload, to_kind)) *
            w.share,
        .sequel = q.SequelOf(move)};
    row = FillRow<kCandidate>(view, widths.candidate, row);
  }
  row = AddRows(q.node_count(), widths.node, &batch->nodes);
  for (int i = 0; i < q.node_count(); ++i) {
    row = FillRow<kNode>(NodeView{q, q.node(q.node_at(i))}, widths.node, row);
  }
  row = AddRows(q.workload_count(), widths.workload, &batch->workloads);
  for (WorkloadId w = 0; w < q.workload_count(); ++w) {
    row = FillRow<kWorkload>(WorkloadView{q, q.workload(w)}, widths.workload, row);
  }
  FillRow<kContext>(q, widths.context, AddRows(1, widths.context, &batch->context));
  AppendGraph(q, *space, batch);
  CloseSample(q, batch);
}

void MigrationFeatures::WriteReachAgent(Evaluator* model, int step, ActionSpace* space,
                                        GraphBatch* batch) {
  const GraphWidths& widths = batch->widths;
  CHECK(widths == kMigrationWidths);
  const QuestionSummary q(model, {}, step, space);
  float* row = AddRows(space->count(), widths.candidate, &batch->candidates);
  for (const Candidate& c : space->candidates) {
    row = FillRow<kReachCandidate>(ReachView{.q = q, .c = &c}, widths.candidate, row);
  }
  row = AddRows(q.node_count(), widths.node, &batch->nodes);
  for (int i = 0; i < q.node_count(); ++i) {
    row = FillRow<kReachNode>(ReachView{.q = q, .node = q.node_at(i)}, widths.node, row);
  }
  row = AddRows(q.workload_count(), widths.workload, &batch->workloads);
  for (WorkloadId w = 0; w < q.workload_count(); ++w) {
    row = FillRow<kReachWorkload>(ReachView{.q = q, .workload = w}, widths.workload, row);
  }
  FillRow<kReachContext>(ReachView{.q = q}, widths.context,
                         AddRows(1, widths.context, &batch->context));
  AppendGraph(q, *space, batch);
  CloseSample(q, batch);
}

}  // namespace rudderfish
