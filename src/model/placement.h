// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/state.h"

// Who runs where, by equivalence class: how many pods of each workload run on each node and on each
// kind of node, and what is free. It holds all that moving pods changes and all that the laws of
// latency look at, in integers: a move and its inverse restore it to the bit. A plain value, cheap
// to copy; search copies it by the thousand.

namespace rudderfish {

// Move one pod of a workload. Which of its equal pods is the task's business.
struct Move {
  WorkloadId workload = 0;
  NodeId from = 0;
  NodeId to = 0;

  bool operator==(const Move&) const = default;
};

// Pods of the workload have left the node.
struct LeftCell {
  WorkloadId workload = 0;
  NodeId node = 0;

  bool operator==(const LeftCell&) const = default;
};

class Placement {
 public:
  // The beginning of a plan: nothing is left.
  void Reset(const State& state);

  // What the plan that is under way has left before.
  void Leave(std::span<const LeftCell> cells);

  // The moves from here on are imagined: what they leave may be entered again (task/walk.h), what
  // the plan has left may not. REQUIRES: none of the moves before is reverted.
  void ImagineMoves() { imagined_ = true; }

  // REQUIRES: a pod of the workload runs on `from`. There need not be room on `to`. Pods that are
  // held stay: it is another one that goes.
  void Apply(const Move& move);

  // Takes the last Apply of this move back, to the bit.
  void Revert(const Move& move);

  int node_count() const { return node_count_; }
  int kind_count() const { return kind_count_; }
  int workload_count() const { return workload_count_; }

  int on_node(WorkloadId workload, NodeId node) const {
    return on_node_[workload * node_count_ + node];
  }
  // Pods of the workload on each node.
  const uint16_t* on_nodes(WorkloadId workload) const {
    return on_node_.data() + static_cast<size_t>(workload) * node_count_;
  }
  // Those of them that may be moved now: the others are held (cluster/state.h).
  int movable_on_node(WorkloadId workload, NodeId node) const {
    const int held = held_.empty() ? 0 : held_[workload * node_count_ + node];
    return on_node(workload, node) - held;
  }
  // Whether pods of the workload have left the node in the plan under way: since Reset, or before
  // by Leave. None moves back there:
  // each move takes a cell out of the plan, so that no plan goes in a circle, by any policy. A pod
  // that Kubernetes has moved is another pod with another name; therefore the workload's pods count
  // as one.
  bool has_left(WorkloadId workload, NodeId node) const {
    return left_[workload * node_count_ + node] > 0;
  }
  // Whether pods of the workload are held, or there is a node that some have left.
  bool restricts(WorkloadId workload) const { return !held_.empty() || left_by_[workload] > 0; }

  int on_kind(WorkloadId workload, KindId kind) const {
    return on_kind_[workload * kind_count_ + kind];
  }
  // Pods of the workload on each kind of node.
  const int32_t* on_kinds(WorkloadId workload) const {
    return on_kind_.data() + static_cast<size_t>(workload) * kind_count_;
  }
  int replicas(WorkloadId workload) const { return replicas_[workload]; }
  KindId kind(NodeId node) const { return kind_[node]; }
  const Resources& free(NodeId node) const { return free_[node]; }
  // A hash of the pods on the node: a sum over them, so that it follows moves and knows no order.
  uint64_t pods_key(NodeId node) const { return pods_key_[node]; }
  const Resources& requests(WorkloadId workload) const { return requests_[workload]; }
  bool Fits(WorkloadId workload, NodeId node) const {
    return free_[node].Fits(requests_[workload]);
  }

  // Who runs where and what is free, whatever a plan has left.
  bool operator==(const Placement& other) const;

 private:
  void Shift(const Move& move);  // Where pods are, and nothing of the plan.

  int node_count_ = 0;
  int kind_count_ = 0;
  int workload_count_ = 0;
  std::vector<uint16_t> on_node_;    // [workload][node]
  std::vector<uint16_t> held_;       // [workload][node]; empty: no pod is held
  std::vector<uint16_t> left_;       // [workload][node] moves of the plan from there
  std::vector<int32_t> left_by_;     // [workload] sums of these
  bool imagined_ = false;            // Moves leave nothing.
  std::vector<int32_t> on_kind_;     // [workload][kind]
  std::vector<int32_t> replicas_;    // [workload], bound pods only
  std::vector<KindId> kind_;         // [node]
  std::vector<Resources> free_;      // [node]
  std::vector<uint64_t> pods_key_;   // [node]
  std::vector<Resources> requests_;  // [workload]
};

}  // namespace rudderfish
