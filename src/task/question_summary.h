// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/evaluator.h"
#include "task/action_space.h"
#include "task/features.h"

// What the features of a migration question are read from: sums and maxima over one state, computed
// once a question. Times are in ms of the objective (mean over endpoints); room counts whole pods.

namespace rudderfish {

struct WorkloadSummary {
  Resources requests;
  int replicas = 0;
  bool movable = false;
  float share = 0;           // 1 / replicas
  float best_gain = 0;       // Of its candidates.
  float best_blocked = 0;    // Of its moves, whether there is room or not.
  float best_all = 0;        // Largest GainOfAll,
  KindId best_kind = kNone;  // and where.
  float execution_now = 0;
  float execution_best = 0;
  float hop_in = 0;
  float hop_out = 0;
  float spread = 0;
  float share_on_best = 0;
  float room_on_best = 0;
  float calls = 0;
};

struct NodeSummary {
  Resources free;
  LayerId layer = 0;
  int row = 0;  // Its row in the batch.
  float used_cpu = 0;
  float slowness = 0;
  float accepts_moves = 0;
  float pods = 0;
  float best_in = 0;
  float best_blocked = 0;
  float best_out = 0;
  float fits = 0;
  float everything = 0;
  float hop_in = 0;
  float hop_out = 0;
  float room_largest = 0;
};

// What a move does to the room of others, at today's gains.
struct Sequel {
  float unlocked_gain = 0;
  float blocked_gain = 0;
  float unlocked = 0;
  float blocked = 0;
};

class QuestionSummary {
 public:
  // `space` must have been filled for the evaluator's state; its scratch is used and kept.
  QuestionSummary(Evaluator* model, const StepCosts& costs, int step, ActionSpace* space);

  int node_count() const { return nodes_; }
  int workload_count() const { return workloads_; }
  NodeId node_at(int row) const { return ends_->node(row).id; }
  int row(NodeId node) const { return node_[node].row; }
  LayerId layer(NodeId node) const { return node_[node].layer; }
  const NodeSummary& node(NodeId node) const { return node_[node]; }
  const WorkloadSummary& workload(WorkloadId w) const { return workload_[w]; }
  int OnNode(WorkloadId w, NodeId node) const { return placement->on_node(w, node); }
  float Hop(KindId from, KindId to) const {
    return static_cast<float>(model->HopMsBetween(from, to));
  }
  float ExecutionOn(WorkloadId w, KindId kind) const { return execution_[w * kinds_ + kind]; }
  float ShareOnLayer(WorkloadId w, LayerId layer) const {
    return layer < layers_ ? on_layer_[w * layers_ + layer] : 0;
  }
  float CallersOnLayer(WorkloadId w, LayerId layer) const { return callers_[w * layers_ + layer]; }
  float CalleesOnLayer(WorkloadId w, LayerId layer) const { return callees_[w * layers_ + layer]; }
  float KindRoom(WorkloadId w, KindId kind) const { return room_[w * kinds_ + kind]; }
  // Room on a layer for the workload's pods elsewhere, as a share of them, at most 2.
  float LayerRoom(WorkloadId w, LayerId layer) const { return layer_room_[w * layers_ + layer]; }
  float BestGainOfOthers(WorkloadId w) const {
    return w == best_workload_ ? second_gain_ : std::max(0.0f, best_gain);
  }
  Sequel SequelOf(const Move& move) const;
  // Cost of the next `moves` moves of the plan.
  float CostOf(float moves) const {
    return moves * (step_cost_ms + 0.5f * growth_ms * (moves - 1));
  }
  // Fall per move if every movable pod went to the kind.
  float EverythingEach(KindId kind) const { return everything_each_[kind]; }

  const Evaluator* model;
  const Placement* placement;
  const MoveGains* gains;
  float step_cost_ms = 0, growth_ms = 0;
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

 private:
  void Allocate(ActionSpace* space);
  void SummariseCalls();
  void SummariseEverything();
  void SummariseCandidates(const ActionSpace& space);
  void SummariseRoom();
  void SummariseWorkloads();
  void SummariseNodes();
  void SummariseContext(const ActionSpace& space);

  int nodes_ = 0, workloads_ = 0, kinds_ = 0, layers_ = 0;
  WorkloadId best_workload_ = kNone;
  float second_gain_ = 0;
  const MoveEnds* ends_ = nullptr;
  // Views into ActionSpace::scratch.
  NodeSummary* node_ = nullptr;          // [node]
  WorkloadSummary* workload_ = nullptr;  // [workload]
  float* execution_ = nullptr;           // [workload][kind]
  float* room_ = nullptr;                // [workload][kind]
  float* best_in_ = nullptr;             // [workload][kind] best gain of moving one pod to the kind
  float* best_out_ = nullptr;         // [workload][kind] best gain of moving one pod from the kind
  float* on_layer_ = nullptr;         // [workload][layer]
  float* callers_ = nullptr;          // [workload][layer]
  float* callees_ = nullptr;          // [workload][layer]
  float* layer_room_ = nullptr;       // [workload][layer]
  uint8_t* fits_ = nullptr;           // [node][workload]
  float* kind_nodes_ = nullptr;       // [kind] nodes of the kind
  float* everything_each_ = nullptr;  // [kind]
};

}  // namespace rudderfish
