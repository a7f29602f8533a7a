// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/graph_batch.h"
#include "base/quad.h"
#include "model/evaluator.h"
#include "task/candidate.h"
#include "task/move_ends.h"
#include "task/question_parts.h"
#include "task/walk.h"

// What the features of a migration question are read from: sums and maxima over one state, computed
// once a question; what stays the same until the evaluator is reset, once a world. Times are in ms
// of the objective (mean over endpoints); room counts whole pods. Allocates nothing once it has
// held the largest state.

namespace rudderfish {

class QuestionSummary {
 public:
  // `ends` and `candidates` are of the evaluator's state, and outlive the question.
  void Update(Evaluator* evaluator, const StepCosts& costs, const Question& question,
              const MoveEnds& ends, std::span<const Candidate> candidates);

  int node_count() const { return nodes_; }
  int workload_count() const { return workloads_; }
  const MoveEnds& ends() const { return *ends_; }
  // Nodes by row (task/move_ends.h).
  const NodeSummary& node(int row) const { return node_[row]; }
  const KindSummary& kind(KindId kind) const { return kind_[kind]; }
  const WorkloadSummary& workload(WorkloadId w) const { return workload_[w]; }
  LayerId layer(int row) const { return kind_[node_[row].kind].layer; }
  // Who calls whom; the same for all questions of a world.
  const std::vector<GraphEdge>& calls() const { return calls_; }
  float Hop(KindId from, KindId to) const { return hop_[from * kinds_ + to]; }
  float ExecutionOn(WorkloadId w, KindId kind) const { return execution_[w * kinds_ + kind]; }
  float ShareOnLayer(WorkloadId w, LayerId layer) const {
    return layer < layers_ ? on_layer_[w * layer_stride_ + layer] : 0;
  }
  float CallersOnLayer(WorkloadId w, LayerId layer) const {
    return callers_[w * layer_stride_ + layer];
  }
  float CalleesOnLayer(WorkloadId w, LayerId layer) const {
    return callees_[w * layer_stride_ + layer];
  }
  float KindRoom(WorkloadId w, KindId kind) const { return room_[w * kinds_ + kind]; }
  // Room on a layer for the workload's pods elsewhere, as a share of them, at most 2.
  float LayerRoom(WorkloadId w, LayerId layer) const {
    return layer_room_[w * layer_stride_ + layer];
  }
  float BestGainOfOthers(WorkloadId w) const {
    return w == best_workload_ ? second_gain_ : std::max(0.0f, best_gain);
  }
  // What is known of a workload, by layer, by kind or by target.
  struct Rows {
    const WorkloadSummary* w;
    const float *on_layer, *callers, *callees, *layer_room;
    const float *kind_room, *execution;
    const int32_t* on_kind;
    const float* gain_of_all;
    float others_best_gain;
  };
  const Rows& rows(WorkloadId w) const { return rows_[w]; }
  // Who fits the node only when a pod of the workload has left it, or no more when one has come.
  Sequel UnlockedBy(WorkloadId w, int from_row) const {
    const Room more = ends_->room(from_row) + workload_[w].need;
    const int32_t* fits = ends_->fits(from_row);
    // No workload waits for room on a node that accepts no moves.
    const MaskQuad accepts = MaskQuad{} - static_cast<int>(ends_->node(from_row).target >= 0);
    return Best(node_[from_row].kind, [&](int i) {
      return ends_->needs().Fitting(more, i) & ~LoadMask(fits + i) & accepts;
    });
  }
  Sequel BlockedBy(WorkloadId w, int to_row) const {
    const Room less = ends_->room(to_row) - workload_[w].need;
    const int32_t* fits = ends_->fits(to_row);
    return Best(node_[to_row].kind,
                [&](int i) { return LoadMask(fits + i) & ~ends_->needs().Fitting(less, i); });
  }
  // Pods of the workload on the node, less those when the walk began.
  int MorePods(WorkloadId w, int row) const {
    if (walk_ == nullptr) return 0;
    const NodeId node = ends_->node(row).id;
    return placement->on_node(w, node) - walk_->PodsAtStart(w, node);
  }
  // Cost of the next `moves` moves of the plan.
  float CostOf(float moves) const {
    return moves * (step_cost_ms + 0.5f * growth_ms * (moves - 1));
  }

  const Evaluator* model = nullptr;
  const Placement* placement = nullptr;
  const MoveGains* gains = nullptr;
  float step_cost_ms = 0, growth_ms = 0, last_cost_ms = 0;
  int step = 0;
  float latency_ms = 0, execution_ms = 0, network_ms = 0;
  float best_gain = 0;
  float per_best_gain = 0;  // 1 / max(best_gain, step_cost_ms)
  float best_everything = 0, best_everything_each = 0;
  float sum_best_all = 0;
  float hop_mean = 0, hop_max = 0;
  float paying = 0;
  float free_cpu = 0;
  float client_cloud_ms = 0;
  // Of the walk.
  float behind_ms = 0;   // Objective here, less the best so far.
  float since_best = 0;  // Steps.
  float displaced = 0;
  float won_ms = 0;  // Fall of latency since it began.

 private:
  // Of some of the movers on nodes of the kind: `some(i)` says which of [i, i + kQuad).
  template <class Some>
  Sequel Best(KindId kind, Some&& some) const {
    const float* best_in = best_in_.data() + kind * mover_stride_;
    Quad gain{}, count{};
    for (int i = 0; i < mover_stride_; i += kQuad) {
      const MaskQuad chosen = some(i);
      count += chosen ? AllOf(1) : Quad{};
      gain = Max(gain, chosen ? LoadQuad(best_in + i) : Quad{});
    }
    return {.gain = LargestOf(gain), .workloads = SumOf(count)};
  }

  // What a call counts among those that its callee takes, and among those that its caller makes.
  struct Partners {
    float of_callers = 0;
    float of_callees = 0;
  };

  // Of the world.
  void SummariseWorld();
  void SummariseWorkloadsOfWorld();
  void SummariseCallsOfWorld();
  void SummariseKindsOfWorld();
  void BarMovesWithinKinds();
  // Of the question.
  void SummariseCalls();
  void SummariseLayers();
  void SummariseCandidates(std::span<const Candidate> candidates);
  void SummariseMoves();
  void SummariseMoves(WorkloadId w);
  void CountRoom();
  void SummariseRoom(WorkloadId w);
  void SummariseEverything();
  void SummariseRows();
  void SummariseNodes();
  void SummariseEntries(int row);
  void PointToRows();
  void SummariseContext();
  void SummariseWalk();

  uint64_t world_ = 0;  // Evaluator::world the members "of the world" are of; 0: none.
  int nodes_ = 0, workloads_ = 0, kinds_ = 0, layers_ = 0;
  int layer_stride_ = 0, mover_stride_ = 0;  // Of rows, filled up to quads.
  const MoveEnds* ends_ = nullptr;
  const Walk* walk_ = nullptr;
  WorkloadId best_workload_ = kNone;
  float second_gain_ = 0;

  // Of the world.
  Resources largest_;               // Of the movable workloads' requests.
  float per_movable_ = 0;           // 1 / movable workloads
  float per_accepting_cpu_ = 0;     // 1 / CPU of the nodes that accept moves
  std::vector<float> per_cpu_;      // [node id] 1 / its CPU
  std::vector<float> hop_;          // [kind][kind]
  std::vector<float> execution_;    // [workload][kind]
  std::vector<GraphEdge> calls_;    // [call with a caller]
  std::vector<Partners> partners_;  // [call with a caller]
  std::vector<float>
      is_layer_;            // [kind][layer] 1 on the kind's layer: sums over kinds, branch-free
  std::vector<float> bar_;  // [kind][target] no gain is more; little where the kinds are the same

  std::vector<KindSummary> kind_;
  std::vector<NodeSummary> node_;  // [row]
  std::vector<WorkloadSummary> workload_;
  std::vector<Rows> rows_;         // [workload]
  std::vector<float> room_;        // [workload][kind]
  std::vector<float> best_in_;     // [kind][mover] best gain of moving one pod to the kind
  std::vector<float> best_out_;    // [workload][kind] best gain of moving one pod from the kind
  std::vector<float> on_layer_;    // [workload][layer]
  std::vector<float> callers_;     // [workload][layer]
  std::vector<float> callees_;     // [workload][layer]
  std::vector<float> layer_room_;  // [workload][layer]
};

}  // namespace rudderfish
