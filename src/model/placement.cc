// SPDX-License-Identifier: Apache-2.0
#include "model/placement.h"

#include "base/check.h"

namespace rudderfish {
namespace {

// What a pod of the workload adds to its node's key: odd, and unlike those of others.
uint64_t PodKey(WorkloadId workload) {
  uint64_t key = (static_cast<uint64_t>(workload) + 1) * 0x9E3779B97F4A7C15ull;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
  return (key ^ (key >> 27)) | 1;
}

}  // namespace

void Placement::Reset(const State& state) {
  node_count_ = state.nodes.size();
  kind_count_ = state.catalog->kind_count();
  workload_count_ = state.catalog->workload_count();
  on_node_.assign(static_cast<size_t>(workload_count_) * node_count_, 0);
  on_kind_.assign(static_cast<size_t>(workload_count_) * kind_count_, 0);
  replicas_.assign(workload_count_, 0);
  requests_.resize(workload_count_);
  for (WorkloadId w = 0; w < workload_count_; ++w)
    requests_[w] = state.catalog->workloads[w].requests;
  kind_ = state.nodes.kind;
  free_ = state.nodes.free;
  pods_key_.assign(node_count_, 0);
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const NodeId node = state.pods.node[pod];
    if (node == kNone) continue;
    const WorkloadId workload = state.pods.workload[pod];
    ++on_node_[workload * node_count_ + node];
    ++on_kind_[workload * kind_count_ + kind_[node]];
    ++replicas_[workload];
    pods_key_[node] += PodKey(workload);
  }
  held_.clear();
  for (PodId pod = 0; pod < static_cast<PodId>(state.pods.held.size()); ++pod) {
    if (state.pods.held[pod] == 0 || state.pods.node[pod] == kNone) continue;
    if (held_.empty()) held_.assign(on_node_.size(), 0);
    ++held_[state.pods.workload[pod] * node_count_ + state.pods.node[pod]];
  }
  left_.assign(on_node_.size(), 0);
  left_by_.assign(workload_count_, 0);
  imagined_ = false;
}

void Placement::Leave(std::span<const LeftCell> cells) {
  for (const LeftCell& cell : cells) {
    ++left_[cell.workload * node_count_ + cell.node];
    ++left_by_[cell.workload];
  }
}

bool Placement::operator==(const Placement& other) const {
  return node_count_ == other.node_count_ && kind_count_ == other.kind_count_ &&
         workload_count_ == other.workload_count_ && on_node_ == other.on_node_ &&
         held_ == other.held_ && on_kind_ == other.on_kind_ && replicas_ == other.replicas_ &&
         kind_ == other.kind_ && free_ == other.free_ && pods_key_ == other.pods_key_ &&
         requests_ == other.requests_;
}

void Placement::Apply(const Move& move) {
  Shift(move);
  if (imagined_) return;
  ++left_[move.workload * node_count_ + move.from];
  ++left_by_[move.workload];
}

void Placement::Revert(const Move& move) {
  Shift({move.workload, move.to, move.from});
  if (imagined_) return;
  --left_[move.workload * node_count_ + move.from];
  --left_by_[move.workload];
}

void Placement::Shift(const Move& move) {
  uint16_t& from = on_node_[move.workload * node_count_ + move.from];
  CHECK_GT(from, 0);
  --from;
  ++on_node_[move.workload * node_count_ + move.to];
  --on_kind_[move.workload * kind_count_ + kind_[move.from]];
  ++on_kind_[move.workload * kind_count_ + kind_[move.to]];
  free_[move.from] += requests_[move.workload];
  free_[move.to] -= requests_[move.workload];
  const uint64_t key = PodKey(move.workload);
  pods_key_[move.from] -= key;
  pods_key_[move.to] += key;
}

}  // namespace rudderfish
