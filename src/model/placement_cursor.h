// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/kind_evaluator.h"
#include "model/placement.h"

// A placement that a search walks about in: where pods are, what is free, which moves there are,
// all kept up to date in a few dozen nanoseconds a move, with latency and gains by kind of node.
// Applying a move and then its reverse leads back to the bit.
//
// Sets of nodes are bit sets of word_count() words. The hash depends on how many pods of each
// workload run on each node, not on the way there.

namespace rudderfish {

class PlacementCursor {
 public:
  // Takes everything from `evaluator`, to which it keeps no reference.
  void Reset(const Evaluator& evaluator);

  // REQUIRES: a pod of the workload runs on `from`. There need not be room on `to`.
  void Apply(const Move& move);
  void Revert(const Move& move) { Apply({move.workload, move.to, move.from}); }

  KindEvaluator& by_kind() { return by_kind_; }

  // A hash is the sum over pods of the hash of (workload, node).
  static uint64_t CellHash(WorkloadId workload, NodeId node);
  uint64_t hash() const { return hash_; }
  uint64_t HashAfter(const Move& move) const {
    return hash_ - CellHash(move.workload, move.from) + CellHash(move.workload, move.to);
  }

  // The same with kinds for nodes: equal for placements that are equal to latency.
  uint64_t kind_hash() const { return kind_hash_; }
  uint64_t KindHashAfter(const Move& move) const {
    return kind_hash_ - CellHash(move.workload, kind_[move.from]) +
           CellHash(move.workload, kind_[move.to]);
  }

  int node_count() const { return nodes_; }
  int kind_count() const { return kinds_; }
  // Pods that may be moved; those that are held (cluster/state.h) stay where they are, and hashes
  // pass over them.
  int on_node(WorkloadId workload, NodeId node) const { return on_node_[workload * nodes_ + node]; }
  int replicas(WorkloadId workload) const { return replicas_[workload]; }
  KindId kind(NodeId node) const { return kind_[node]; }
  const Resources& free(NodeId node) const { return free_[node]; }
  const Resources& requests(WorkloadId workload) const { return requests_[workload]; }
  bool KindAccepts(KindId kind) const { return kind_accepts_[kind]; }

  // Workloads that may be moved and have a pod.
  std::span<const WorkloadId> movable() const { return movable_; }

  int word_count() const { return words_; }
  // Nodes with a pod that may be moved.
  const uint64_t* Hosts(WorkloadId workload) const { return hosts_.data() + workload * words_; }
  // Nodes that accept moves, have room for one pod more, and were not left before Reset.
  const uint64_t* Targets(WorkloadId workload) const { return targets_.data() + workload * words_; }
  const uint64_t* OfKind(KindId kind) const { return of_kind_.data() + kind * words_; }

 private:
  void SetTarget(WorkloadId workload, NodeId node);
  void SetHost(WorkloadId workload, NodeId node);

  int nodes_ = 0;
  int kinds_ = 0;
  int words_ = 0;
  std::vector<uint16_t> on_node_;  // [workload][node]
  std::vector<int32_t> replicas_;
  std::vector<KindId> kind_;
  std::vector<Resources> free_, requests_;
  std::vector<uint8_t> kind_accepts_;
  std::vector<WorkloadId> movable_;
  std::vector<uint64_t> hosts_, targets_, of_kind_, left_;
  uint64_t hash_ = 0;
  uint64_t kind_hash_ = 0;
  KindEvaluator by_kind_;
};

// Calls visit(node) for every node of a set, ascending.
template <class Visit>
void ForEachNode(const uint64_t* set, int words, Visit visit) {
  for (int word = 0; word < words; ++word) {
    for (uint64_t bits = set[word]; bits != 0; bits &= bits - 1)
      visit(word * 64 + __builtin_ctzll(bits));
  }
}

// For the nodes of both sets.
template <class Visit>
void ForEachNode(const uint64_t* set, const uint64_t* other, int words, Visit visit) {
  for (int word = 0; word < words; ++word) {
    for (uint64_t bits = set[word] & other[word]; bits != 0; bits &= bits - 1) {
      visit(word * 64 + __builtin_ctzll(bits));
    }
  }
}

}  // namespace rudderfish
