// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/placement_cursor.h"

// All ways in which a plan can end that could cost less than a bar: numbers of pods of every
// movable workload on every kind of node, with their latency by kind. From them follows a bound on
// every plan that goes on from a placement.
//
// A workload's pods may end on kinds that accept moves, or stay on the kind they are on. Ends whose
// pods cannot be packed onto the nodes are left out; where packing is not decided in kPackingSteps,
// the end is kept.

namespace rudderfish {

class KindEnds {
 public:
  static constexpr int kPackingSteps = 2000;

  // `step_costs_ms[n]` is the cost of n moves from the cursor's placement; no plan makes more moves
  // than this covers. False if there are more than `most` ends to look at: nothing is listed then.
  // The cursor is left as found.
  bool List(std::span<const double> step_costs_ms, double bar_ms, int64_t most,
            PlacementCursor* cursor);

  // No plan that goes on from here, `depth` moves from the start, with at least one move more or
  // none, costs less; or infinity if none costs less than `bar_ms`.
  double Bound(const KindEvaluator& here, int depth, double bar_ms) const;

  int64_t count() const { return static_cast<int64_t>(latency_ms_.size()); }

 private:
  bool CountEnds(int64_t most) const;
  void Enumerate(size_t workload);
  void Distribute(size_t workload, KindId kind, int left);
  void Consider();
  bool FitsInTotal() const;
  bool FitsOnNodes();
  bool Pack(KindId kind, size_t item, size_t node, int left);
  int Moves(const KindEvaluator& here, const uint16_t* end, int most) const;
  bool MayEndOn(WorkloadId w, KindId kind) const;

  PlacementCursor* cursor_ = nullptr;
  std::span<const WorkloadId> movable_;
  std::vector<double> step_costs_ms_;
  double bar_ms_ = 0;
  int kinds_ = 0;
  KindId home_ = kNone;          // A kind that accepts moves: pods not yet distributed wait there.
  std::vector<Resources> room_;  // [kind] if all movable pods were gone
  std::vector<Resources> node_room_;  // [node] likewise
  std::vector<NodeId> nodes_;         // Of the kind being packed.
  std::vector<size_t> items_;         // Positions in movable_ by size, largest first.
  int packing_steps_ = 0;
  std::vector<uint16_t> start_;  // [movable][kind]

  std::vector<uint16_t> ends_;      // [end][movable][kind], by latency
  std::vector<double> latency_ms_;  // [end]
  std::vector<uint16_t> listed_;    // In the order found.
  std::vector<double> listed_ms_;
};

}  // namespace rudderfish
