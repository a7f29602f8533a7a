// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "policy/policy.h"

// What Kubernetes would do: the scores by which kube-scheduler places a pod, applied to pods that
// already run.
//
// A pod is scored as if it were rescheduled: its own node as if the pod were gone from there, every
// other node that may take it as it is. Of all moves to the best node of a pod the one that gains
// most is made, the first in REACH's order of actions among equals; when no move gains, it stops.
// Latency plays no part.
//
// kube-default is the sum of the default profile's scores that a State says something of, by the
// formulas of model/kube_scores.h: NodeResourcesFit with LeastAllocated (weight 1),
// NodeResourcesBalancedAllocation (1) and PodTopologySpread (2) by host name, the system's default
// constraint. The others are equal for all nodes, as a State carries no taints, affinity or images;
// the second default constraint, by zone, is left out.
//   least-allocated   NodeResourcesFit alone
//   most-allocated    mean over cpu and memory of requested * 100 / allocatable
// In both a pod without requests counts as 100 m of cpu and 200 MiB.

namespace rudderfish {

// Of a node that holds `requested` with the pod on it.
int64_t MostAllocatedScore(const Resources& requested, const Resources& allocatable);

enum class NodeScoring { kKubeDefault, kLeastAllocated, kMostAllocated };

// The move that gains most by the scores, among those from `from` alone; kNone: from any node.
void ChooseByScores(NodeScoring scoring, const Ask& ask, NodeId from, Answer* answer);

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
