// SPDX-License-Identifier: Apache-2.0
#include "task/move_ends.h"

#include <algorithm>
#include <numeric>

#include "base/quad.h"

namespace rudderfish {
namespace {

// Up to here comparing every pair, without a branch to guess, beats sorting.
constexpr int kRankNodesMax = 48;

// An end as four numbers, which one store writes.
static_assert(sizeof(MoveEnds::End) == sizeof(MaskQuad));
void Store(const MaskQuad& numbers, MoveEnds::End* end) {
  *reinterpret_cast<MaskQuad*>(end) = numbers;
}

uint64_t Mix(uint64_t key, uint64_t value) {
  key = (key ^ value) * 0x9E3779B97F4A7C15ull;
  return key ^ (key >> 29);
}

}  // namespace

void MoveEnds::List(const Evaluator& model, const MoveGains& gains) {
  const Placement& placement = model.placement();
  HashNodes(placement);
  SortRows();
  const int nodes = placement.node_count();
  const int workloads = placement.workload_count();
  rows_.resize(nodes);
  for (int row = 0; row < nodes; ++row) {
    const NodeId id = order_[row];
    const KindId kind = placement.kind(id);
    rows_[row] = {placement.free(id), id, kind, gains.TargetOf(kind)};
  }
  const size_t ends_max = static_cast<size_t>(workloads) * nodes;
  hosts_.resize(ends_max);
  targets_.resize(ends_max);
  hosts_begin_.resize(workloads + 1);
  targets_begin_.resize(workloads + 1);
  moves_ = cells_ = 0;
  for (WorkloadId w = 0; w < workloads; ++w) ListWorkload(model, w);
}

// A node's pods are hashed as a sum over workloads: nothing to guess, and no order to keep.
void MoveEnds::HashNodes(const Placement& placement) {
  const int nodes = placement.node_count();
  keys_.assign(nodes, 0);
  uint64_t* keys = keys_.data();
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    const uint64_t factor = Mix(0x656E6473, w) | 1;
    const uint16_t* pods = placement.on_nodes(w);
    for (NodeId node = 0; node < nodes; ++node) keys[node] += factor * pods[node];
  }
  for (NodeId node = 0; node < nodes; ++node) {
    const Resources& free = placement.free(node);
    const uint64_t key = Mix(Mix(0x52756464, placement.kind(node)), free.cpu_millis);
    keys[node] = Mix(Mix(key, free.memory_bytes), keys[node]);
  }
}

void MoveEnds::SortRows() {
  const int nodes = static_cast<int>(keys_.size());
  order_.resize(nodes);
  row_of_.resize(nodes);
  if (nodes > kRankNodesMax) {
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](NodeId a, NodeId b) {
      return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : a < b;
    });
    for (int row = 0; row < nodes; ++row) row_of_[order_[row]] = row;
    return;
  }
  for (NodeId node = 0; node < nodes; ++node) {
    const uint64_t key = keys_[node];
    int row = 0;
    for (NodeId other = 0; other < node; ++other) row += keys_[other] <= key;
    for (NodeId other = node + 1; other < nodes; ++other) row += keys_[other] < key;
    order_[row] = node;
    row_of_[node] = row;
  }
}

void MoveEnds::ListWorkload(const Evaluator& model, WorkloadId w) {
  const Placement& placement = model.placement();
  const bool moves = model.state().catalog->workloads[w].movable && placement.replicas(w) > 0;
  End* host = hosts_.data() + hosts_begin_[w];
  End* target = targets_.data() + targets_begin_[w];
  const Resources requests = placement.requests(w);
  const uint16_t* pods = placement.on_nodes(w);
  const Node* node = rows_.data();
  const int nodes = node_count();
  MaskQuad place{w, 0, 0, 0};
  const MaskQuad next_row{0, 1, 0, 0};
  const End *const first_host = host, *const first_target = target;
  if (!moves) {
    for (int row = 0; row < nodes; ++row, ++node, place += next_row) {
      const int here = pods[node->id];
      Store(place + MaskQuad{0, 0, here, here}, host);
      host += here > 0;
    }
    hosts_begin_[w + 1] = hosts_begin_[w] + (host - first_host);
    targets_begin_[w + 1] = targets_begin_[w];
    if (placement.holds_any()) LeaveHeld(placement, w);
    return;
  }
  int own = 0, own_pods = 0;
  // Without branches: what fits where is as good as random. What does not belong is written over.
  for (int row = 0; row < nodes; ++row, ++node, place += next_row) {
    const int here = pods[node->id];
    const int is_host = here > 0;
    const int fits = (node->target >= 0) & node->free.Fits(requests);
    const MaskQuad end = place + MaskQuad{0, 0, here, here};
    Store(end, host);
    host += is_host;
    Store(end, target);
    target += fits;
    own += fits & is_host;
    own_pods += here & -fits;
  }
  const auto host_count = host - first_host, target_count = target - first_target;
  hosts_begin_[w + 1] = hosts_begin_[w] + host_count;
  targets_begin_[w + 1] = targets_begin_[w] + target_count;
  if (placement.holds_any()) {
    LeaveHeld(placement, w);
    return;
  }
  moves_ += host_count * target_count - own;
  cells_ += static_cast<int64_t>(placement.replicas(w)) * target_count - own_pods;
}

// Takes pods that are held out of what may be moved, and counts the rest.
void MoveEnds::LeaveHeld(const Placement& placement, WorkloadId w) {
  const auto movable = [&](const End& end) {
    return placement.movable_on_node(w, rows_[end.row].id);
  };
  const auto count = static_cast<int64_t>(targets(w).size());
  for (size_t i = hosts_begin_[w]; i < hosts_begin_[w + 1]; ++i) {
    hosts_[i].movable = movable(hosts_[i]);
    moves_ += hosts_[i].movable > 0 ? count : 0;
    cells_ += hosts_[i].movable * count;
  }
  for (size_t i = targets_begin_[w]; i < targets_begin_[w + 1]; ++i) {
    targets_[i].movable = movable(targets_[i]);
    moves_ -= targets_[i].movable > 0;
    cells_ -= targets_[i].movable;
  }
}

}  // namespace rudderfish
