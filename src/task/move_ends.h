// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/evaluator.h"
#include "task/needs.h"

// Where pods of each workload are and where they may go: what the mask of a migration question, its
// alternatives and its features are all read from, found once a question.
//
// Nodes are called by row: their place when sorted by what they are and hold, so that neither the
// order of rows nor sums over them depend on labels, and relabelled nodes give the same bits. Nodes
// with equal keys are equal in all that anyone sees. Allocates nothing once it has held the largest
// state.

namespace rudderfish {

class MoveEnds {
 public:
  // A workload and a node that pods of it are on or may go to.
  struct End {
    WorkloadId workload = 0;
    int32_t row = 0;      // Of the node.
    int32_t pods = 0;     // Of the workload, on the node.
    int32_t movable = 0;  // Those that are not held.
  };
  struct Node {
    Resources free;
    NodeId id = 0;
    KindId kind = 0;
    int target = -1;  // MoveGains::TargetOf its kind; -1 where no pod may be moved to.
  };

  // REQUIRES: `gains` are the model's.
  void List(const Evaluator& model, const MoveGains& gains);

  int node_count() const { return static_cast<int>(rows_.size()); }
  int workload_count() const { return static_cast<int>(hosts_begin_.size()) - 1; }
  std::span<const Node> nodes() const { return rows_; }
  const Node& node(int row) const { return rows_[row]; }
  int row(NodeId node) const { return row_of_[node]; }
  uint64_t key(NodeId node) const { return keys_[node]; }

  // Nodes with pods of each workload: by workload, then by row.
  std::span<const End> hosts() const { return {hosts_.data(), hosts_begin_.back()}; }
  std::span<const End> hosts(WorkloadId workload) const {
    return {hosts_.data() + hosts_begin_[workload],
            hosts_begin_[workload + 1] - hosts_begin_[workload]};
  }
  // Nodes that a pod of each workload may be moved to, unless it is there already, less those that
  // the plan has left; in the same order. None for workloads that do not move or have no pod.
  std::span<const End> targets() const { return {targets_.data(), targets_begin_.back()}; }
  std::span<const End> targets(WorkloadId workload) const {
    return {targets_.data() + targets_begin_[workload],
            targets_begin_[workload + 1] - targets_begin_[workload]};
  }

  // Workloads that have pods and may move: the same as long as the world is.
  std::span<const WorkloadId> movers() const { return movers_; }
  const Needs& needs() const { return needs_; }  // [mover]
  // Of what the node has free.
  const Room& room(int row) const { return rooms_[row]; }
  // [mover] of all needs().stride(): -1 where the node accepts one pod more, 0 where not.
  const int32_t* fits(int row) const {
    return fits_.data() + static_cast<size_t>(row) * needs_.stride();
  }

  // Distinct moves (workload, from, to), and pairs (pod, node) that are allowed.
  int64_t moves() const { return moves_; }
  int64_t cells() const { return cells_; }

 private:
  void ListMovers(const Evaluator& model);
  void HashNodes(const Placement& placement);
  void SortRows();
  void FitMovers();
  void ListHosts(const Placement& placement, WorkloadId workload);
  void ListMover(const Placement& placement, int mover);
  void Restrict(const Placement& placement, WorkloadId workload);

  uint64_t world_ = 0;  // Evaluator::world that the movers are of; 0: none.
  int64_t moves_ = 0;
  int64_t cells_ = 0;
  std::vector<WorkloadId> movers_;
  Needs needs_;
  std::vector<uint64_t> keys_;            // [node]
  std::vector<int32_t> row_of_;           // [node]
  std::vector<NodeId> order_;             // [row]
  std::vector<Node> rows_;                // [row]
  std::vector<Room> rooms_;               // [row]
  std::vector<int32_t> fits_;             // [row][mover]
  std::vector<size_t> hosts_begin_{0};    // [workload + 1] into hosts_
  std::vector<size_t> targets_begin_{0};  // [workload + 1] into targets_
  std::vector<End> hosts_, targets_;      // Room for all there can be; used up to the last begin.
};

}  // namespace rudderfish
