// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "task/candidate.h"
#include "task/move_ends.h"
#include "task/question_summary.h"

// What may be answered to a question: one cell of the matrix pods x nodes, or stop. Cells whose
// pods are of one workload on one node are equal alternatives and stand as one candidate: policies
// choose among candidates.
//
// Where the matrix is large a question lists, for each workload and pair of node kinds, only
// representative nodes (migration.h); `exhaustive` says whether every allowed cell belongs to a
// candidate.

namespace rudderfish {

inline constexpr int kStop = -1;

// What candidates' feature rows are made of: the parts that depend on one of their ends, and what
// of an end the others depend on.
struct EndRows {
  struct Fact {
    int32_t row = 0;  // Of the node.
    KindId kind = 0;
    LayerId layer = 0;
    float execution = 0;  // Of one replica there, as its share of the workload.
    int more_pods = 0;    // Of the workload, than when the walk began.
  };

  std::vector<float> source, target;              // [slot][feature]
  std::vector<Fact> source_fact, target_fact;     // [slot]
  std::vector<int32_t> source_slot, target_slot;  // [end] kNone: not made yet.
};

struct ActionSpace {
  std::vector<Candidate> candidates;
  bool exhaustive = true;
  int64_t allowed_cells = 0;  // Cells in the mask, stop included; what REACH calls allowed actions.

  int count() const { return static_cast<int>(candidates.size()); }

  // Of the task that filled this, so that encoding looks at nothing twice and asking again
  // allocates nothing.
  MoveEnds ends;
  QuestionSummary summary;
  EndRows end_rows;
  std::vector<float> scratch;
};

}  // namespace rudderfish
