// SPDX-License-Identifier: Apache-2.0
#include "model/placement_cursor.h"

#include "base/check.h"
#include "model/evaluator.h"

namespace rudderfish {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): cells get unrelated hashes, and sums of
// them stay so.
uint64_t PlacementCursor::CellHash(WorkloadId workload, NodeId node) {
  uint64_t x =
      (static_cast<uint64_t>(workload) << 32 | static_cast<uint32_t>(node)) + 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

void PlacementCursor::Reset(const Evaluator& evaluator) {
  const Placement& placement = evaluator.placement();
  const Catalog& catalog = *evaluator.state().catalog;
  const int workloads = placement.workload_count();
  nodes_ = placement.node_count();
  kinds_ = placement.kind_count();
  words_ = (nodes_ + 63) / 64;
  on_node_.resize(static_cast<size_t>(workloads) * nodes_);
  replicas_.resize(workloads);
  requests_.resize(workloads);
  kind_.resize(nodes_);
  free_.resize(nodes_);
  kind_accepts_.resize(kinds_);
  for (KindId kind = 0; kind < kinds_; ++kind) {
    kind_accepts_[kind] = catalog.layers[catalog.kinds[kind].layer].accepts_moves;
  }
  of_kind_.assign(static_cast<size_t>(kinds_) * words_, 0);
  for (NodeId node = 0; node < nodes_; ++node) {
    kind_[node] = placement.kind(node);
    free_[node] = placement.free(node);
    of_kind_[kind_[node] * words_ + node / 64] |= uint64_t{1} << node % 64;
  }
  hosts_.assign(static_cast<size_t>(workloads) * words_, 0);
  targets_.assign(static_cast<size_t>(workloads) * words_, 0);
  left_.assign(static_cast<size_t>(workloads) * words_, 0);
  movable_.clear();
  hash_ = 0;
  kind_hash_ = 0;
  for (WorkloadId w = 0; w < workloads; ++w) {
    replicas_[w] = placement.replicas(w);
    requests_[w] = placement.requests(w);
    const bool movable = catalog.workloads[w].movable && replicas_[w] > 0;
    if (movable) movable_.push_back(w);
    for (NodeId node = 0; node < nodes_; ++node) {
      const int here = placement.movable_on_node(w, node);
      on_node_[static_cast<size_t>(w) * nodes_ + node] = static_cast<uint16_t>(here);
      hash_ += here * CellHash(w, node);
      kind_hash_ += here * CellHash(w, kind_[node]);
      SetHost(w, node);
      if (placement.has_left(w, node)) left_[w * words_ + node / 64] |= uint64_t{1} << node % 64;
      if (movable) SetTarget(w, node);
    }
  }
  by_kind_.Reset(evaluator);
}

void PlacementCursor::Apply(const Move& move) {
  uint16_t& from = on_node_[static_cast<size_t>(move.workload) * nodes_ + move.from];
  CHECK_GT(from, 0);
  hash_ = HashAfter(move);
  kind_hash_ = KindHashAfter(move);
  --from;
  ++on_node_[static_cast<size_t>(move.workload) * nodes_ + move.to];
  free_[move.from] += requests_[move.workload];
  free_[move.to] -= requests_[move.workload];
  SetHost(move.workload, move.from);
  SetHost(move.workload, move.to);
  for (WorkloadId w : movable_) {
    SetTarget(w, move.from);
    SetTarget(w, move.to);
  }
  if (kind_[move.from] != kind_[move.to])
    by_kind_.Apply(move.workload, kind_[move.from], kind_[move.to]);
}

void PlacementCursor::SetHost(WorkloadId workload, NodeId node) {
  uint64_t& word = hosts_[workload * words_ + node / 64];
  const uint64_t bit = uint64_t{1} << node % 64;
  word = on_node(workload, node) > 0 ? word | bit : word & ~bit;
}

void PlacementCursor::SetTarget(WorkloadId workload, NodeId node) {
  uint64_t& word = targets_[workload * words_ + node / 64];
  const uint64_t bit = uint64_t{1} << node % 64;
  const bool fits = free_[node].Fits(requests_[workload]) & (kind_accepts_[kind_[node]] != 0) &
                    ((left_[workload * words_ + node / 64] & bit) == 0);
  word = fits ? word | bit : word & ~bit;
}

}  // namespace rudderfish
