// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/ids.h"
#include "model/placement.h"

// What may be answered to a question: one cell of the matrix pods x nodes, or stop. Cells whose
// pods are of one workload on one node are equal alternatives and stand as one candidate: policies
// choose among candidates.
//
// Where the matrix is large a question lists, for each workload and pair of node kinds, only
// representative nodes (migration.h); `exhaustive` says whether every allowed cell belongs to a
// candidate.

namespace rudderfish {

inline constexpr int kStop = -1;

struct Candidate {
  Move move;
  int32_t pods = 0;  // Equal cells in one: pods of the workload on move.from.
  float gain_ms =
      0;  // What the Model predicts by kind of node (model/move_gains.h); positive is good.
};

struct ActionSpace {
  std::vector<Candidate> candidates;
  bool exhaustive = true;
  int64_t allowed_cells = 0;  // Cells in the mask, stop included; what REACH calls allowed actions.

  int count() const { return static_cast<int>(candidates.size()); }

  // Scratch of the task that filled this, so that asking again allocates nothing.
  std::vector<float> scratch;
  std::vector<int32_t> order;
  std::vector<uint64_t> keys;
};

}  // namespace rudderfish
