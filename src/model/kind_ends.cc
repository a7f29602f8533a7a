// SPDX-License-Identifier: Apache-2.0
#include "model/kind_ends.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace rudderfish {

bool KindEnds::List(std::span<const double> step_costs_ms, double bar_ms, int64_t most,
                    PlacementCursor* cursor) {
  cursor_ = cursor;
  movable_ = cursor->movable();
  step_costs_ms_.assign(step_costs_ms.begin(), step_costs_ms.end());
  bar_ms_ = bar_ms;
  kinds_ = cursor->kind_count();
  home_ = 0;
  while (home_ < kinds_ && !cursor->KindAccepts(home_)) ++home_;
  ends_.clear();
  latency_ms_.clear();
  listed_.clear();
  listed_ms_.clear();
  if (home_ == kinds_) return true;  // Nothing can be moved anywhere.
  start_.clear();
  room_.assign(kinds_, {});
  node_room_.resize(cursor->node_count());
  for (WorkloadId w : movable_) {
    for (KindId kind = 0; kind < kinds_; ++kind) {
      start_.push_back(static_cast<uint16_t>(cursor->by_kind().count(w, kind)));
    }
  }
  for (NodeId node = 0; node < cursor->node_count(); ++node) {
    node_room_[node] = cursor->free(node);
    for (WorkloadId w : movable_) {
      for (int i = 0; i < cursor->on_node(w, node); ++i) node_room_[node] += cursor->requests(w);
    }
    room_[cursor->kind(node)] += node_room_[node];
  }
  items_.resize(movable_.size());
  std::iota(items_.begin(), items_.end(), 0);
  std::sort(items_.begin(), items_.end(), [&](size_t a, size_t b) {
    const Resources& first = cursor_->requests(movable_[a]);
    const Resources& second = cursor_->requests(movable_[b]);
    return first.cpu_millis != second.cpu_millis ? first.cpu_millis > second.cpu_millis : a < b;
  });
  if (!CountEnds(most)) return false;
  Enumerate(0);

  const size_t width = movable_.size() * kinds_;
  std::vector<int64_t> order(listed_ms_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return listed_ms_[a] < listed_ms_[b]; });
  for (int64_t from : order) {
    ends_.insert(ends_.end(), listed_.begin() + from * width, listed_.begin() + (from + 1) * width);
    latency_ms_.push_back(listed_ms_[from]);
  }
  return true;
}

bool KindEnds::MayEndOn(WorkloadId w, KindId kind) const {
  return cursor_->KindAccepts(kind) || cursor_->by_kind().count(w, kind) > 0;
}

bool KindEnds::CountEnds(int64_t most) const {
  double ends = 1;
  for (WorkloadId w : movable_) {
    int places = 0;
    for (KindId kind = 0; kind < kinds_; ++kind) places += MayEndOn(w, kind);
    const int pods = cursor_->replicas(w);
    for (int i = 1; i < places; ++i)
      ends *= static_cast<double>(pods + i) / i;  // Multisets of `pods` places.
  }
  return ends <= static_cast<double>(most);
}

// Gathers the workload's pods at home, hands them out in every way, and puts them back.
void KindEnds::Enumerate(size_t workload) {
  if (workload == movable_.size()) {
    Consider();
    return;
  }
  const WorkloadId w = movable_[workload];
  KindEvaluator& by_kind = cursor_->by_kind();
  const uint16_t* start = start_.data() + workload * kinds_;
  for (KindId kind = 0; kind < kinds_; ++kind) {
    if (kind == home_) continue;
    for (int i = 0; i < start[kind]; ++i) by_kind.Apply(w, kind, home_);
  }
  Distribute(workload, 0, by_kind.count(w, home_));
  for (KindId kind = 0; kind < kinds_; ++kind) {
    if (kind == home_) continue;
    for (int i = 0; i < start[kind]; ++i) by_kind.Apply(w, home_, kind);
  }
}

void KindEnds::Distribute(size_t workload, KindId kind, int left) {
  if (kind == kinds_) {
    Enumerate(workload + 1);
    return;
  }
  const uint16_t start = start_[workload * kinds_ + kind];
  const int most = kind == home_                ? 0
                   : cursor_->KindAccepts(kind) ? left
                                                : std::min<int>(left, start);
  KindEvaluator& by_kind = cursor_->by_kind();
  for (int pods = 0; pods <= most; ++pods) {
    if (pods > 0) by_kind.Apply(movable_[workload], home_, kind);
    Distribute(workload, kind + 1, left - pods);
  }
  for (int pods = 0; pods < most; ++pods) by_kind.Apply(movable_[workload], kind, home_);
}

void KindEnds::Consider() {
  if (!FitsInTotal()) return;
  KindEvaluator& by_kind = cursor_->by_kind();
  const int most = static_cast<int>(step_costs_ms_.size()) - 1;
  const int moves = Moves(by_kind, start_.data(), most);
  if (moves > most || by_kind.LatencyMs() + step_costs_ms_[moves] >= bar_ms_) return;
  if (!FitsOnNodes()) return;
  for (WorkloadId w : movable_) {
    for (KindId kind = 0; kind < kinds_; ++kind)
      listed_.push_back(static_cast<uint16_t>(by_kind.count(w, kind)));
  }
  listed_ms_.push_back(by_kind.LatencyMs());
}

// Pods that must change their kind between here and there.
int KindEnds::Moves(const KindEvaluator& here, const uint16_t* end, int most) const {
  int moves = 0;
  for (WorkloadId w : movable_) {
    for (KindId kind = 0; kind < kinds_; ++kind) moves += std::max(0, here.count(w, kind) - *end++);
    if (moves > most) break;
  }
  return moves;
}

bool KindEnds::FitsInTotal() const {
  for (KindId kind = 0; kind < kinds_; ++kind) {
    Resources left = room_[kind];
    for (WorkloadId w : movable_) {
      const int pods = cursor_->by_kind().count(w, kind);
      left.cpu_millis -= pods * cursor_->requests(w).cpu_millis;
      left.memory_bytes -= pods * cursor_->requests(w).memory_bytes;
    }
    if (!left.Fits({})) return false;
  }
  return true;
}

bool KindEnds::FitsOnNodes() {
  for (KindId kind = 0; kind < kinds_; ++kind) {
    nodes_.clear();
    ForEachNode(cursor_->OfKind(kind), cursor_->word_count(),
                [&](NodeId node) { nodes_.push_back(node); });
    packing_steps_ = 0;
    if (nodes_.empty()) continue;  // FitsInTotal has seen that nothing is there.
    if (!Pack(kind, 0, 0, cursor_->by_kind().count(movable_[items_[0]], kind))) return false;
  }
  return true;
}

// Whether `left` pods of an item, and all items after it, fit on the nodes from `node` on and on
// all nodes.
bool KindEnds::Pack(KindId kind, size_t item, size_t node, int left) {
  if (++packing_steps_ > kPackingSteps) return true;
  if (left == 0) {
    if (++item == items_.size()) return true;
    return Pack(kind, item, 0, cursor_->by_kind().count(movable_[items_[item]], kind));
  }
  if (node == nodes_.size()) return false;
  const Resources& requests = cursor_->requests(movable_[items_[item]]);
  Resources& room = node_room_[nodes_[node]];
  int taken = 0;
  for (; taken < left && room.Fits(requests); ++taken) room -= requests;
  bool packed = Pack(kind, item, node + 1, left - taken);
  for (; taken > 0 && !packed; --taken) {
    room += requests;
    packed = Pack(kind, item, node + 1, left - taken + 1);
  }
  for (; taken > 0; --taken) room += requests;
  return packed;
}

double KindEnds::Bound(const KindEvaluator& here, int depth, double bar_ms) const {
  double bound_ms = std::numeric_limits<double>::infinity();
  const size_t width = movable_.size() * kinds_;
  const int most = static_cast<int>(step_costs_ms_.size()) - 1 - depth;
  for (size_t i = 0; i < latency_ms_.size(); ++i) {
    // Ends stand by latency: none of the rest is better.
    if (latency_ms_[i] + step_costs_ms_[depth] >= std::min(bar_ms, bound_ms)) break;
    const int moves = Moves(here, ends_.data() + i * width, most);
    if (moves <= most)
      bound_ms = std::min(bound_ms, latency_ms_[i] + step_costs_ms_[depth + moves]);
  }
  return bound_ms < bar_ms ? bound_ms : std::numeric_limits<double>::infinity();
}

}  // namespace rudderfish
