// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/scheduling_rules.h"

// kube-scheduler's InterPodAffinity: which pods want to be, must be or must not be in the same
// domain of a topology key, said by the pod that is placed or by those that run.

namespace rudderfish {

// Rejects, of nodes that nothing has rejected yet, those that break the pod's required affinity,
// its anti-affinity, or the anti-affinity of pods that run.
void FilterAffinity(const NodeTable& nodes, const PodCounts& counts, PodClassId id,
                    const CompiledPod& pod, Feasibility* out);

// 0 to 100 for feasible nodes. `scores` has a place a node; `by_domain` is working space.
void ScoreAffinity(const NodeTable& nodes, const PodCounts& counts, PodClassId id,
                   const CompiledPod& pod, const Feasibility& feasibility,
                   std::vector<int64_t>* by_domain, std::vector<int64_t>* scores);

}  // namespace rudderfish
