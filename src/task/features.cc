// SPDX-License-Identifier: Apache-2.0
#include "task/features.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "task/feature_rows.h"
#include "task/question_summary.h"

namespace rudderfish {
namespace {

// A workload and the node that a pod of it would leave.
struct SourceView {
  const QuestionSummary::Rows& of;  // The workload.
  const NodeSummary& node;
  const KindSummary& kind;
  int pods;       // Of the workload, there,
  int more_pods;  // and how many more than when the walk began.
  Sequel sequel;  // Of leaving it.
};

// A workload and the node that a pod of it would go to.
struct TargetView {
  const QuestionSummary& q;
  const QuestionSummary::Rows& of;  // The workload.
  const NodeSummary& node;
  const KindSummary& kind;
  int pods;           // Of the workload, there,
  int more_pods;      // and how many more than when the walk began.
  float gain_of_all;  // To the node's kind.
  float to_go;        // Pods of the workload not on that kind.
  Sequel sequel;      // Of coming there.
};

// One candidate: what depends on both its nodes.
struct CandidateView {
  float gain;
  float execution;  // Part of the gain that is execution.
  float hop;
  bool same_layer;
  float cost_ms;  // What the move adds to the cost of the moves that the plan takes.
  // Of the question.
  float behind_ms;
  float best_gain;  // At least 0.
  float per_best_gain;

  float Net() const { return gain - cost_ms; }
  float Improves() const { return std::max(0.0f, Net() - behind_ms); }
};

struct NodeView {
  const NodeSummary& n;
  const KindSummary& k;
};

struct WorkloadView {
  const WorkloadSummary& w;
};

using S = const SourceView&;
using T = const TargetView&;
using C = const CandidateView&;
// By view, so that most of a row is copied from those of its ends.
constexpr std::array<Feature<SourceView, TargetView, CandidateView>, 48> kCandidate{{
    {"gain", "ms", 50, [](C v) { return v.gain; }, "predicted fall in latency"},
    {"gain_fine", "ms", 10, [](C v) { return Clip(v.gain, 30); },
     "the same, magnified around zero; at most 30 either way"},
    {"cost", "ms", 5, [](C v) { return v.cost_ms; },
     "cost of the moves that the plan takes after it, less that before"},
    {"gain_net", "ms", 10, [](C v) { return Clip(v.Net(), 30); },
     "gain less that cost; at most 30 either way"},
    {"gain_behind", "ms", 50, [](C v) { return v.gain - v.best_gain; },
     "gain less the best gain of all candidates"},
    {"gain_execution", "ms", 50, [](C v) { return v.execution; },
     "part of the gain that is execution time"},
    {"hop_there", "ms", 250, [](C v) { return v.hop; }, "hop from source to target"},
    {"improves", "ms", 50, [](C v) { return v.Improves(); },
     "by how much the placement after it is better than the best of the walk; 0 if it is not"},
    {"improves_fine", "ms", 5, [](C v) { return std::min(15.0f, v.Improves()); },
     "the same, magnified; at most 15"},
    {"lies_behind", "ms", 50, [](C v) { return std::max(0.0f, v.behind_ms - v.Net()); },
     "by how much it is worse than that; 0 if it is not"},
    {"same_layer", "", 1, [](C v) { return v.same_layer ? 1.0f : 0.0f; },
     "whether it stays in its layer"},
    {"gain_relative", "", 1, [](C v) { return v.gain * v.per_best_gain; },
     "gain as a share of the best one, or of the step cost if that is more"},
    {"gain_of_all", "ms", 250, [](T v) { return v.gain_of_all; },
     "fall if the whole workload ran on the target's kind"},
    {"gain_of_all_net", "ms", 250, [](T v) { return v.gain_of_all - v.q.CostOf(v.to_go); },
     "the same less the cost of the moves it takes"},
    {"gain_of_all_each", "ms", 50, [](T v) { return v.gain_of_all / std::max(1.0f, v.to_go); },
     "the same for each move it takes"},
    {"gain_of_all_best", "ms", 250, [](T v) { return v.of.w->best_all; },
     "the best of it over kinds"},
    {"gain_of_everything", "ms", 250, [](T v) { return v.kind.everything; },
     "fall if every movable workload ran on the target's kind"},
    {"gain_of_everything_each", "ms", 50, [](T v) { return v.kind.everything_each; },
     "the same for each move it takes"},
    {"gain_of_all_each_relative", "", 4,
     [](T v) { return v.gain_of_all / std::max(1.0f, v.to_go) * v.q.per_best_gain; },
     "gain_of_all_each as a share of the best gain, or of the step cost if that is more"},
    {"requests_cpu", "cores", 2, [](T v) { return Cores(v.of.w->requests_millis); },
     "CPU request of the pod"},
    {"requests_memory", "GiB", 2, [](T v) { return Gib(v.of.w->requests_bytes); },
     "memory request of the pod"},
    {"share_on_to", "", 1, [](T v) { return v.of.on_layer[v.kind.layer]; },
     "share of the workload on the target's layer"},
    {"callers_on_to", "", 1, [](T v) { return v.of.callers[v.kind.layer]; },
     "share of its callers on the target's layer"},
    {"callees_on_to", "", 1, [](T v) { return v.of.callees[v.kind.layer]; },
     "share of its callees on the target's layer"},
    {"to_free_cpu", "cores", 4, [](T v) { return Cores(v.node.free_millis); },
     "free CPU of the target"},
    {"to_free_memory", "GiB", 8, [](T v) { return std::min(8.0f, Gib(v.node.free_bytes)); },
     "free memory of the target, at most 8"},
    {"to_left_cpu", "cores", 2,
     [](T v) { return Cores(v.node.free_millis - v.of.w->requests_millis); },
     "CPU left on the target after the move"},
    {"to_left_memory", "GiB", 4,
     [](T v) { return std::min(4.0f, Gib(v.node.free_bytes - v.of.w->requests_bytes)); },
     "memory left on the target after the move, at most 4"},
    {"pods_on_to", "pods", 3, [](T v) { return static_cast<float>(v.pods); },
     "pods of the workload on the target"},
    {"more_pods_on_to", "pods", 3, [](T v) { return static_cast<float>(v.more_pods); },
     "the same, less those when the walk began"},
    {"all_pods_on_to", "pods", 8, [](T v) { return v.node.pods; }, "pods on the target"},
    {"blocks", "ms", 50, [](T v) { return v.sequel.gain; },
     "best gain of a move to the target that has no more room afterwards"},
    {"blocks_count", "workloads", 4, [](T v) { return v.sequel.workloads; },
     "workloads that then fit the target no more"},
    {"layer_room", "", 1, [](T v) { return v.of.layer_room[v.kind.layer]; },
     "room on the target's layer for the workload's pods elsewhere, as a share of them, at most 2"},
    {"kind_room", "pods", 5, [](T v) { return std::min(10.0f, v.of.kind_room[v.node.kind]); },
     "pods of the workload that fit the target's kind of node, at most 10"},
    {"workload_best_gain", "ms", 50, [](T v) { return v.of.w->best_gain; },
     "best gain of a move of this workload"},
    {"others_best_gain", "ms", 50, [](T v) { return v.of.others_best_gain; },
     "best gain of a move of another workload"},
    {"gain_of_everything_from", "ms", 50, [](S v) { return v.kind.everything_each; },
     "gain_of_everything_each of the source's kind"},
    {"share_on_from", "", 1, [](S v) { return v.of.on_layer[v.kind.layer]; },
     "share of the workload on the source's layer"},
    {"callers_on_from", "", 1, [](S v) { return v.of.callers[v.kind.layer]; },
     "share of its callers on the source's layer"},
    {"callees_on_from", "", 1, [](S v) { return v.of.callees[v.kind.layer]; },
     "share of its callees on the source's layer"},
    {"from_free_cpu", "cores", 4, [](S v) { return Cores(v.node.free_millis); },
     "free CPU of the source"},
    {"from_free_memory", "GiB", 8, [](S v) { return std::min(8.0f, Gib(v.node.free_bytes)); },
     "free memory of the source, at most 8"},
    {"pods_on_from", "pods", 3, [](S v) { return static_cast<float>(v.pods); },
     "pods of the workload on the source"},
    {"more_pods_on_from", "pods", 3, [](S v) { return static_cast<float>(v.more_pods); },
     "the same, less those when the walk began"},
    {"all_pods_on_from", "pods", 8, [](S v) { return v.node.pods; }, "pods on the source"},
    {"unlocks", "ms", 50, [](S v) { return v.sequel.gain; },
     "best gain of a move to the source that has room only afterwards"},
    {"unlocks_count", "workloads", 4, [](S v) { return v.sequel.workloads; },
     "workloads that then fit the source"},
}};

using N = const NodeView&;
constexpr std::array<Feature<NodeView>, 16> kNode{{
    {"free_cpu", "cores", 4, [](N v) { return Cores(v.n.free_millis); }, "free CPU"},
    {"free_memory", "GiB", 8, [](N v) { return std::min(16.0f, Gib(v.n.free_bytes)); },
     "free memory, at most 16"},
    {"used_cpu", "", 1, [](N v) { return v.n.used_cpu; }, "share of CPU requested"},
    {"slowness", "", 1, [](N v) { return v.k.slowness; },
     "execution time here against the fastest kind, less 1"},
    {"accepts_moves", "", 1, [](N v) { return v.k.accepts_moves; },
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
    {"gain_of_everything", "ms", 250, [](N v) { return v.k.everything; },
     "fall if everything ran on this kind"},
    {"hop_in", "ms", 250, [](N v) { return v.k.hop_in; }, "mean hop from all nodes"},
    {"hop_out", "ms", 250, [](N v) { return v.k.hop_out; }, "mean hop to all nodes"},
    {"room_largest", "", 1, [](N v) { return v.n.room_largest; },
     "whether the largest workload fits"},
    {"more_pods", "pods", 3, [](N v) { return v.n.more_pods; },
     "pods on the node, less those when the walk began"},
    {"one", "", 1, [](N) { return 1.0f; }, "constant"},
}};

using W = const WorkloadView&;
constexpr std::array<Feature<WorkloadView>, 16> kWorkload{{
    {"replica_share", "", 1, [](W v) { return v.w.share; }, "one replica's share"},
    {"requests_cpu", "cores", 2, [](W v) { return Cores(v.w.requests_millis); },
     "CPU request of a pod"},
    {"requests_memory", "GiB", 2, [](W v) { return Gib(v.w.requests_bytes); },
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
    {"displaced", "pods", 3, [](W v) { return v.w.displaced; }, "pods that the walk has moved"},
    {"calls", "calls", 4, [](W v) { return v.w.calls; }, "calls it takes, mean over endpoints"},
}};

using Q = const QuestionSummary&;
constexpr std::array<Feature<QuestionSummary>, 19> kContext{{
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
    {"behind", "ms", 100, [](Q q) { return q.behind_ms; },
     "how much worse the objective is here than at its best in the walk"},
    {"at_best", "", 1, [](Q q) { return q.since_best == 0 ? 1.0f : 0.0f; },
     "whether this is the best placement of the walk"},
    {"since_best", "steps", 5, [](Q q) { return q.since_best; }, "steps since it was there"},
    {"displaced", "pods", 10, [](Q q) { return q.displaced; },
     "pods that are not where they were when the walk began"},
    {"won", "ms", 250, [](Q q) { return q.won_ms; }, "fall of latency since then"},
    {"one", "", 1, [](Q) { return 1.0f; }, "constant"},
}};

// The parts of candidates' rows that depend on one of their ends: a candidate's row is the sum of
// its two ends' and of what depends on both.
class EndRowsOf {
 public:
  static constexpr int kWidth = kMigrationWidths.candidate;

  EndRowsOf(const QuestionSummary& q, EndRows* store) : q_(q), store_(*store) {}

  // Makes the rows of all ends: candidates name them by position.
  void FillAll() {
    const auto sources = q_.ends().hosts(), targets = q_.ends().targets();
    Reserve(sources.size(), targets.size());
    for (size_t i = 0; i < sources.size(); ++i) {
      if (q_.workload(sources[i].workload).mover != kNone) FillSource(sources[i], i);
    }
    for (size_t i = 0; i < targets.size(); ++i) FillTarget(targets[i], i);
  }

  // Makes the rows of the candidates' ends, which are few of all there are, and leaves in
  // source_slot and target_slot where.
  void FillUsed(std::span<const Candidate> candidates) {
    const auto sources = q_.ends().hosts(), targets = q_.ends().targets();
    Reserve(std::min(sources.size(), candidates.size()),
            std::min(targets.size(), candidates.size()));
    store_.source_slot.assign(sources.size(), kNone);
    store_.target_slot.assign(targets.size(), kNone);
    int32_t source_count = 0, target_count = 0;
    for (const Candidate& c : candidates) {
      int32_t& source = store_.source_slot[c.source];
      if (source == kNone) FillSource(sources[c.source], source = source_count++);
      int32_t& target = store_.target_slot[c.target];
      if (target == kNone) FillTarget(targets[c.target], target = target_count++);
    }
  }

 private:
  void Reserve(size_t sources, size_t targets) {
    if (store_.source_fact.size() < sources) {
      store_.source.resize(sources * kWidth);
      store_.source_fact.resize(sources);
    }
    if (store_.target_fact.size() < targets) {
      store_.target.resize(targets * kWidth);
      store_.target_fact.resize(targets);
    }
  }

  [[gnu::always_inline]] void FillSource(const MoveEnds::End& end, size_t slot) {
    const QuestionSummary::Rows& of = q_.rows(end.workload);
    const NodeSummary& node = q_.node(end.row);
    const SourceView view{.of = of,
                          .node = node,
                          .kind = q_.kind(node.kind),
                          .pods = end.pods,
                          .more_pods = q_.MorePods(end.workload, end.row),
                          .sequel = q_.UnlockedBy(end.workload, end.row)};
    store_.source_fact[slot] = {.row = end.row,
                                .kind = node.kind,
                                .layer = view.kind.layer,
                                .execution = of.execution[node.kind] * of.w->share,
                                .more_pods = view.more_pods};
    WritePart<kCandidate, kWidth>(view, store_.source.data() + slot * kWidth);
  }

  [[gnu::always_inline]] void FillTarget(const MoveEnds::End& end, size_t slot) {
    const QuestionSummary::Rows& of = q_.rows(end.workload);
    const NodeSummary& node = q_.node(end.row);
    const TargetView view{.q = q_,
                          .of = of,
                          .node = node,
                          .kind = q_.kind(node.kind),
                          .pods = end.pods,
                          .more_pods = q_.MorePods(end.workload, end.row),
                          .gain_of_all = of.gain_of_all[q_.ends().node(end.row).target],
                          .to_go = static_cast<float>(of.w->replicas - of.on_kind[node.kind]),
                          .sequel = q_.BlockedBy(end.workload, end.row)};
    store_.target_fact[slot] = {.row = end.row,
                                .kind = node.kind,
                                .layer = view.kind.layer,
                                .execution = of.execution[node.kind] * of.w->share,
                                .more_pods = view.more_pods};
    WritePart<kCandidate, kWidth>(view, store_.target.data() + slot * kWidth);
  }

  const QuestionSummary& q_;
  EndRows& store_;
};

void WriteCandidates(const QuestionSummary& q, ActionSpace* space, float* row,
                     CandidateEnds* joins) {
  constexpr int kWidth = EndRowsOf::kWidth;
  EndRows& ends = space->end_rows;
  EndRowsOf rows(q, &ends);
  const bool all = space->exhaustive;
  if (all) {
    rows.FillAll();
  } else {
    rows.FillUsed(space->candidates);
  }
  const EndRows::Fact *sources = ends.source_fact.data(), *targets = ends.target_fact.data();
  const float *source_rows = ends.source.data(), *target_rows = ends.target.data();
  const float behind_ms = q.behind_ms, best_gain = std::max(0.0f, q.best_gain),
              per_best_gain = q.per_best_gain;
  // A pod that goes to where one is missing, or from where one is too many, is one displaced less.
  const float cost_ms[] = {-q.last_cost_ms, 0, q.step_cost_ms};
  for (const Candidate& c : space->candidates) {
    const size_t source = all ? c.source : ends.source_slot[c.source];
    const size_t target = all ? c.target : ends.target_slot[c.target];
    const EndRows::Fact &from = sources[source], &to = targets[target];
    *joins++ = {c.move.workload, from.row, to.row};
    const CandidateView view{.gain = c.gain_ms,
                             .execution = from.execution - to.execution,
                             .hop = q.Hop(from.kind, to.kind),
                             .same_layer = from.layer == to.layer,
                             .cost_ms = cost_ms[(from.more_pods <= 0) + (to.more_pods >= 0)],
                             .behind_ms = behind_ms,
                             .best_gain = best_gain,
                             .per_best_gain = per_best_gain};
    JoinRows<kCandidate, kWidth, SourceView, TargetView>(view, source_rows + source * kWidth,
                                                         target_rows + target * kWidth, row);
    row += kWidth;
  }
}

}  // namespace

const FeatureTable& MigrationFeatures::Model() {
  static const FeatureTable table{Describe(kCandidate), Describe(kNode), Describe(kWorkload),
                                  Describe(kContext)};
  return table;
}

void MigrationFeatures::Write(Evaluator* model, const StepCosts& costs, const Question& question,
                              ActionSpace* space, GraphBatch* batch) {
  const GraphWidths& widths = batch->widths;
  CHECK(widths == kMigrationWidths);
  QuestionSummary& q = space->summary;
  q.Update(model, costs, question, space->ends, space->candidates);
  WriteCandidates(q, space, AddRows(space->count(), widths.candidate, &batch->candidates),
                  AddEnds(space->count(), batch));
  float* row = AddRows(q.node_count(), widths.node, &batch->nodes);
  for (int i = 0; i < q.node_count(); ++i, row += widths.node) {
    WriteRow<kNode, kMigrationWidths.node>(NodeView{q.node(i), q.kind(q.node(i).kind)}, row);
  }
  row = AddRows(q.workload_count(), widths.workload, &batch->workloads);
  for (WorkloadId w = 0; w < q.workload_count(); ++w, row += widths.workload) {
    WriteRow<kWorkload, kMigrationWidths.workload>(WorkloadView{q.workload(w)}, row);
  }
  WriteRow<kContext, kMigrationWidths.context>(q, AddRows(1, widths.context, &batch->context));
  CloseSample(q, batch);
}

}  // namespace rudderfish
