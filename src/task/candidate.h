// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/placement.h"

// One alternative of a question: move a pod of a workload from one node to another. Pods of one
// workload on one node are equal and stand as one. A plain value.

namespace rudderfish {

struct Candidate {
  Move move;
  int32_t pods = 0;   // Equal cells in one: pods of the workload on move.from that may be moved.
  float gain_ms = 0;  // What the Model predicts by kind of node (model/move_gains.h); positive is
                      // good.
  // Its ends: positions in MoveEnds::hosts() and targets().
  int32_t source = 0, target = 0;
};

}  // namespace rudderfish
