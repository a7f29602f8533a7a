// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/scheduling_rules.h"

// Whether one node could take a pod as far as that needs no look at any other: what is free there,
// and what follows from pod and node alone. A no is the rules' own; a yes may still be a no of
// theirs, for other pods. What asks when something has changed on a few nodes, and need not know
// more. One thread.

namespace rudderfish {

// What follows from pod and node alone counts where it has been computed: of classes that were
// registered for questions.
bool HasRoomFor(const SchedulingRules& rules, PodClassId pod, NodeId node);

}  // namespace rudderfish
