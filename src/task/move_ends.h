// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/evaluator.h"

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
  struct Host {
    int32_t row = 0;
    int32_t pods = 0;  // Of the workload, on this node.
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
  int workload_count() const { return static_cast<int>(hosts_of_.size()); }
  const Node& node(int row) const { return rows_[row]; }
  int row(NodeId node) const { return row_of_[node]; }
  uint64_t key(NodeId node) const { return keys_[node]; }

  // Nodes with pods of the workload, by row.
  std::span<const Host> hosts(WorkloadId workload) const {
    const Range& range = hosts_of_[workload];
    return {hosts_.data() + range.begin, static_cast<size_t>(range.count)};
  }
  // Rows of the nodes that a pod of the workload may be moved to, but for those it is on already.
  // None for workloads that do not move or have no pod.
  std::span<const int32_t> targets(WorkloadId workload) const {
    const Range& range = targets_of_[workload];
    return {targets_.data() + range.begin, static_cast<size_t>(range.count)};
  }

  // Distinct moves (workload, from, to), and pairs (pod, node) that are allowed.
  int64_t moves() const { return moves_; }
  int64_t cells() const { return cells_; }

 private:
  struct Range {
    size_t begin = 0;
    int count = 0;
  };

  void HashNodes(const Placement& placement);
  void SortRows();
  void ListWorkload(const Evaluator& model, WorkloadId workload);

  int64_t moves_ = 0;
  int64_t cells_ = 0;
  std::vector<uint64_t> keys_;     // [node]
  std::vector<int32_t> row_of_;    // [node]
  std::vector<NodeId> order_;      // [row]
  std::vector<Node> rows_;         // [row]
  std::vector<Range> hosts_of_;    // [workload] into hosts_
  std::vector<Range> targets_of_;  // [workload] into targets_
  std::vector<Host> hosts_;
  std::vector<int32_t> targets_;
};

}  // namespace rudderfish
