// SPDX-License-Identifier: Apache-2.0
#include "task/move_ends.h"

#include <algorithm>
#include <numeric>

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
  if (world_ != model.world()) {
    ListMovers(model);
    world_ = model.world();
  }
  HashNodes(placement);
  SortRows();
  const int nodes = placement.node_count();
  const int workloads = placement.workload_count();
  rows_.resize(nodes);
  rooms_.resize(nodes);
  for (int row = 0; row < nodes; ++row) {
    const NodeId id = order_[row];
    const KindId kind = placement.kind(id);
    rows_[row] = {placement.free(id), id, kind, gains.TargetOf(kind)};
    rooms_[row] = RoomOf(placement.free(id));
  }
  FitMovers();
  const size_t ends_max = static_cast<size_t>(workloads) * nodes;
  hosts_.resize(ends_max);
  targets_.resize(ends_max);
  hosts_begin_.resize(workloads + 1);
  targets_begin_.resize(workloads + 1);
  moves_ = cells_ = 0;
  int mover = 0;
  for (WorkloadId w = 0; w < workloads; ++w) {
    if (mover < static_cast<int>(movers_.size()) && movers_[mover] == w) {
      ListMover(placement, mover++);
    } else {
      ListHosts(placement, w);
    }
    if (placement.restricts(w)) Restrict(placement, w);
  }
}

void MoveEnds::ListMovers(const Evaluator& model) {
  const Placement& placement = model.placement();
  movers_.clear();
  needs_.Clear();
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    if (!model.state().catalog->workloads[w].movable || placement.replicas(w) == 0) continue;
    movers_.push_back(w);
    needs_.Add(placement.requests(w));
  }
}

void MoveEnds::HashNodes(const Placement& placement) {
  const int nodes = placement.node_count();
  keys_.resize(nodes);
  for (NodeId node = 0; node < nodes; ++node) {
    const Resources& free = placement.free(node);
    const uint64_t key = Mix(Mix(0x52756464, placement.kind(node)), free.cpu_millis);
    keys_[node] = Mix(Mix(key, free.memory_bytes), placement.pods_key(node));
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

void MoveEnds::FitMovers() {
  const int stride = needs_.stride();
  fits_.resize(rows_.size() * stride);
  int32_t* fits = fits_.data();
  for (size_t row = 0; row < rows_.size(); ++row) {
    const MaskQuad accepts = MaskQuad{} - static_cast<int>(rows_[row].target >= 0);
    for (int mover = 0; mover < stride; mover += kQuad, fits += kQuad) {
      StoreMask(needs_.Fitting(rooms_[row], mover) & accepts, fits);
    }
  }
}

void MoveEnds::ListHosts(const Placement& placement, WorkloadId w) {
  End* host = hosts_.data() + hosts_begin_[w];
  const End* const first = host;
  const uint16_t* pods = placement.on_nodes(w);
  for (int row = 0; row < node_count(); ++row) {
    const int here = pods[rows_[row].id];
    Store(MaskQuad{w, row, here, here}, host);
    host += here > 0;
  }
  hosts_begin_[w + 1] = hosts_begin_[w] + (host - first);
  targets_begin_[w + 1] = targets_begin_[w];
}

// Without branches: what fits where is as good as random. What does not belong is written over.
void MoveEnds::ListMover(const Placement& placement, int mover) {
  const WorkloadId w = movers_[mover];
  End* host = hosts_.data() + hosts_begin_[w];
  End* target = targets_.data() + targets_begin_[w];
  const End *const first_host = host, *const first_target = target;
  const uint16_t* pods = placement.on_nodes(w);
  const int stride = needs_.stride();
  const int32_t* fits = fits_.data() + mover;
  int own = 0, own_pods = 0;
  MaskQuad place{w, 0, 0, 0};
  for (const Node& node : rows_) {
    const int here = pods[node.id];
    const MaskQuad end = place + MaskQuad{0, 0, here, here};
    Store(end, host);
    Store(end, target);
    host += here > 0;
    target -= *fits;
    own += *fits & static_cast<int>(here > 0);
    own_pods += *fits & here;
    fits += stride;
    place += MaskQuad{0, 1, 0, 0};
  }
  const auto host_count = host - first_host, target_count = target - first_target;
  hosts_begin_[w + 1] = hosts_begin_[w] + host_count;
  targets_begin_[w + 1] = targets_begin_[w] + target_count;
  if (placement.restricts(w)) return;
  moves_ += host_count * target_count - own;
  cells_ += static_cast<int64_t>(placement.replicas(w)) * target_count - own_pods;
}

// Takes pods that are held out of what may be moved, and nodes that the plan has left out of where
// they may go, and counts the rest.
void MoveEnds::Restrict(const Placement& placement, WorkloadId w) {
  size_t kept = targets_begin_[w];
  for (size_t i = kept; i < targets_begin_[w + 1]; ++i) {
    if (!placement.has_left(w, rows_[targets_[i].row].id)) targets_[kept++] = targets_[i];
  }
  targets_begin_[w + 1] = kept;
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
