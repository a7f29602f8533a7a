// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/state.h"
#include "control/guard.h"
#include "control/journal.h"
#include "model/placement.h"

// Which moves are not allowed in a state, and why, in words for people: the other half of what was
// considered. What the guard holds comes first; a pod that rests, a workload that may not be moved
// and a node that accepts no moves are one each.

namespace rudderfish {

// Fills `row->refused` with the first `keep`, and counts all.
void ListRefusals(const State& state, const Placement& placement, const Guard& guard, int keep,
                  JournalRow* row);

}  // namespace rudderfish
