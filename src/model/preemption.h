// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "model/scheduling_rules.h"

// What kube-scheduler would look for to place a pod that no node takes: nodes on which placed pods
// of lower priority are in its way. Rudderfish evicts no pod; it reports the number of such nodes.
//
// In the way are, of a node that is short of resources, all pods of lower priority on it, if enough
// would be free without them; of one that refuses the pod for a host port, a claim, volumes of a
// driver, its spread or anti-affinity, those that hold the port or the claim, use that driver, are
// counted or repel. Whether another rule would refuse the node once they are gone is not looked at.

namespace rudderfish {

// Costs nothing where no placed pod is of lower priority, or the pod never preempts (its
// preemptionPolicy is Never); else a look at the pods of the nodes that refuse it. REQUIRES:
// `feasibility` is what rules.Filter said of this class, with nothing changed since.
int CountPreemptionNodes(const SchedulingRules& rules, PodClassId pod,
                         const Feasibility& feasibility);

// " preemption: NAME does not preempt, and pods of lower priority are in the way on 2/3 nodes.", to
// follow SchedulingRules::Message; empty: on none.
std::string PreemptionText(const SchedulingRules& rules, PodClassId pod,
                           const Feasibility& feasibility, std::string_view scheduler);

}  // namespace rudderfish
