// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/catalog.h"
#include "model/placement_cursor.h"

// Where whole workloads might go: assignments of workloads to layers, ranked by what they would
// cost if there were room, moves included. Latency jumps when callers and callees come together in
// one layer, while on the way there, pod by pod, it may rise; a search that looks a few moves ahead
// does not see across, and takes these as directions.
//
// With few workloads and layers it ranks all assignments; else those that send one workload, a
// caller and its callee, a workload and all that its call leads to, an endpoint's workloads, or all
// of them to one layer: at most three for each call and layer. Of the assignments only those better
// than `bar_ms` are listed.

namespace rudderfish {

class LayerTargets {
 public:
  static constexpr int kEnumerated = 1024;  // Assignments, at most, that are all ranked.

  // `step_costs_ms[n]` is the cost of n moves; assignments that need more moves than it has are
  // left out. The cursor is left as found.
  void List(const Catalog& catalog, const CallGraph& calls, std::span<const double> step_costs_ms,
            double bar_ms, PlacementCursor* cursor);

  int count() const { return static_cast<int>(order_.size()); }
  double cost_ms(int rank) const { return costs_ms_[order_[rank]]; }
  // [workload] the layer that its pods go to, or kNone: they stay where they are.
  std::span<const LayerId> layers(int rank) const {
    return {layers_.data() + static_cast<size_t>(order_[rank]) * workloads_,
            static_cast<size_t>(workloads_)};
  }

 private:
  void Enumerate(int64_t assignments);
  void ListGroups(const CallGraph& calls);
  void Consider();

  int workloads_ = 0;
  PlacementCursor* cursor_ = nullptr;
  const Catalog* catalog_ = nullptr;
  std::span<const double> step_costs_ms_;
  double bar_ms_ = 0;
  std::vector<LayerId> accepting_;   // Layers that pods may be moved to.
  std::vector<LayerId> assignment_;  // [workload] the one being looked at
  std::vector<LayerId> layers_;      // [listed][workload]
  std::vector<double> costs_ms_;     // [listed]
  std::vector<int32_t> order_;
  struct KindMoves {
    WorkloadId workload;
    KindId from, to;
    int pods;
  };
  std::vector<KindMoves> made_;
};

}  // namespace rudderfish
