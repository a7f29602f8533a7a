// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/scheduling_rules.h"

// kube-scheduler's PodTopologySpread: how pods that a constraint selects are spread over the values
// of a topology key, counting only nodes that have all keys of the pod's constraints and that its
// policies include.

namespace rudderfish {

// Rejects what breaks one of pod.must_spread, of nodes that nothing has rejected yet.
void FilterSpread(const NodeTable& nodes, const PodCounts& counts, const CompiledPod& pod,
                  Feasibility* out);

// The score of pod.may_spread, 0 to 100 for feasible nodes: most where fewest are. REQUIRES:
// pod.may_spread is not empty. `scores` and `sums` have a place
// a node; `sums` and `by_domain` are working space.
void ScoreSpread(const NodeTable& nodes, const PodCounts& counts, const CompiledPod& pod,
                 const Feasibility& feasibility, std::vector<int64_t>* by_domain,
                 std::vector<double>* sums, std::vector<int64_t>* scores);

}  // namespace rudderfish
