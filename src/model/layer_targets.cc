// SPDX-License-Identifier: Apache-2.0
#include "model/layer_targets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rudderfish {

void LayerTargets::List(const Catalog& catalog, const CallGraph& calls,
                        std::span<const double> step_costs_ms, double bar_ms,
                        PlacementCursor* cursor) {
  catalog_ = &catalog;
  cursor_ = cursor;
  step_costs_ms_ = step_costs_ms;
  bar_ms_ = bar_ms;
  workloads_ = catalog.workload_count();
  accepting_.clear();
  for (LayerId layer = 0; layer < catalog.layer_count(); ++layer) {
    const auto here = [&](const NodeKind& kind) { return kind.layer == layer; };
    const bool has_kinds = std::any_of(catalog.kinds.begin(), catalog.kinds.end(), here);
    if (catalog.layers[layer].accepts_moves && has_kinds) accepting_.push_back(layer);
  }
  layers_.clear();
  costs_ms_.clear();
  assignment_.assign(workloads_, kNone);
  const double assignments = std::pow(accepting_.size() + 1.0, cursor->movable().size());
  if (assignments <= kEnumerated) {
    Enumerate(std::llround(assignments));
  } else {
    ListGroups(calls);
  }
  order_.resize(costs_ms_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    return costs_ms_[a] != costs_ms_[b] ? costs_ms_[a] < costs_ms_[b] : a < b;
  });
}

void LayerTargets::Enumerate(int64_t assignments) {
  const int64_t base = static_cast<int64_t>(accepting_.size()) + 1;
  for (int64_t code = 1; code < assignments; ++code) {
    int64_t rest = code;
    for (WorkloadId w : cursor_->movable()) {
      assignment_[w] = rest % base == 0 ? kNone : accepting_[rest % base - 1];
      rest /= base;
    }
    Consider();
  }
}

void LayerTargets::ListGroups(const CallGraph& calls) {
  const auto clear = [&] { std::fill(assignment_.begin(), assignment_.end(), kNone); };
  const auto movable = [&](WorkloadId w) { return catalog_->workloads[w].movable; };
  for (LayerId layer : accepting_) {
    clear();
    for (WorkloadId w : cursor_->movable()) assignment_[w] = layer;
    Consider();
    for (const Endpoint& endpoint : calls.endpoints) {
      clear();
      for (CallId call = endpoint.root; call < endpoint.end; ++call) {
        const WorkloadId w = calls.calls[call].workload;
        if (movable(w)) assignment_[w] = layer;
      }
      Consider();
    }
    for (CallId at = 0; at < calls.call_count(); ++at) {
      const Call& call = calls.calls[at];
      if (!movable(call.workload)) continue;
      clear();
      assignment_[call.workload] = layer;
      Consider();
      if (call.caller != kNone && movable(calls.calls[call.caller].workload)) {
        assignment_[calls.calls[call.caller].workload] = layer;
        Consider();
      }
      // In preorder what a call leads to follows it.
      CallId end = at + 1;
      for (; end < calls.call_count() && calls.calls[end].caller >= at; ++end) {
      }
      if (end <= at + 2) continue;  // None, or one: a pair.
      clear();
      for (CallId led_to = at; led_to < end; ++led_to) {
        const WorkloadId w = calls.calls[led_to].workload;
        if (movable(w)) assignment_[w] = layer;
      }
      Consider();
    }
  }
}

// Carries the assignment out by kinds, each pod to the kind of the layer that gains most, and takes
// it back.
void LayerTargets::Consider() {
  KindEvaluator& by_kind = cursor_->by_kind();
  const auto& kinds = catalog_->kinds;
  made_.clear();
  size_t moves = 0;
  bool all_move = true;  // Else a smaller assignment says the same.
  for (WorkloadId w : cursor_->movable()) {
    if (assignment_[w] == kNone) continue;
    const size_t before = moves;
    for (KindId from = 0; from < cursor_->kind_count(); ++from) {
      const int pods = by_kind.count(w, from);
      if (pods == 0 || kinds[from].layer == assignment_[w]) continue;
      const float* gains = by_kind.GainsFrom(w, from);
      KindId to = kNone;
      for (KindId kind = 0; kind < cursor_->kind_count(); ++kind) {
        if (kinds[kind].layer == assignment_[w] && (to == kNone || gains[kind] > gains[to]))
          to = kind;
      }
      made_.push_back({w, from, to, pods});
      moves += pods;
      for (int i = 0; i < pods; ++i) by_kind.Apply(w, from, to);
    }
    all_move &= moves > before;
  }
  if (all_move && moves > 0 && moves < step_costs_ms_.size()) {
    const double cost_ms = by_kind.LatencyMs() + step_costs_ms_[moves];
    if (cost_ms < bar_ms_) {
      costs_ms_.push_back(cost_ms);
      layers_.insert(layers_.end(), assignment_.begin(), assignment_.end());
    }
  }
  for (; !made_.empty(); made_.pop_back()) {
    const KindMoves& back = made_.back();
    for (int i = 0; i < back.pods; ++i) by_kind.Apply(back.workload, back.to, back.from);
  }
}

}  // namespace rudderfish
