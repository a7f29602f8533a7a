// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "policy/policy.h"

// What Kubernetes would do: the scores by which kube-scheduler places a pod, applied to pods that
// already run.
//
// A pod is scored as if it were scheduled anew: its own node as if it were gone from there, every
// other node that may take it as it is. Of all moves to the best node of a pod the one that gains
// most is made, the first in REACH's order of actions among equals; when no move gains, it stops.
// Latency plays no part.
//
// The formulas are those of Kubernetes 1.35, integer division included:
//   least allocated   mean over cpu and memory of (allocatable - requested) * 100 / allocatable
//   most allocated    mean over cpu and memory of requested * 100 / allocatable
//   balanced          (1 - |cpu fraction - memory fraction| / 2) * 100, truncated
//   topology spread   the pods of the workload on the node times ln(feasible nodes + 2), plus 2
//                     (maxSkew - 1), rounded; then 100 * (max + min - it) / max over the feasible
//                     nodes
// The default profile sums least allocated (weight 1), balanced (1) and topology spread (2) by host
// name, the system's default constraint. What a State does not carry is equal for all nodes and
// left out: taints, affinity, images, and the second default constraint, by zone. For least and
// most allocated a pod without requests counts as 100 m of cpu and 200 MiB.

namespace rudderfish {

inline constexpr int64_t kScoreMax = 100;

// Scores of a node that holds `requested` with the pod on it.
int64_t LeastAllocatedScore(const Resources& requested, const Resources& allocatable);
int64_t MostAllocatedScore(const Resources& requested, const Resources& allocatable);
int64_t BalancedAllocationScore(const Resources& requested, const Resources& allocatable);

// Before normalising over nodes: less is better.
int64_t TopologySpreadCount(int pods_of_workload, int feasible_nodes);
int64_t TopologySpreadScore(int64_t count, int64_t count_min, int64_t count_max);

enum class NodeScoring { kKubeDefault, kLeastAllocated, kMostAllocated };

class NodeScorePolicy final : public Policy {
 public:
  explicit NodeScorePolicy(NodeScoring scoring) : scoring_(scoring) {}

  std::string_view name() const override;
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;

  // Answer::scores are the gains in score, 0 for stop.
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;

 private:
  NodeScoring scoring_;
};

}  // namespace rudderfish
