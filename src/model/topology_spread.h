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

// The same in parts, for one constraint on what a caller counts itself: the weight of a pod where
// the feasible nodes have so many domains; what the pods of a domain come to, before it is rounded;
// and the score of what they come to, among the least and the most of the feasible nodes.
double SpreadWeight(int64_t domains);
inline double SpreadSum(int64_t pods, double weight, int64_t skew_max) {
  return static_cast<double>(pods) * weight + static_cast<double>(skew_max - 1);
}
int64_t SpreadScore(int64_t sum, int64_t least, int64_t most);

}  // namespace rudderfish
