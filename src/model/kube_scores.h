// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/scheduling_rules.h"

// What kube-scheduler's default profile of v1.36 gives each feasible node: seven scores of 0 to
// 100, each with its weight, in its integers and roundings. A pure function of the rules' state.
//
// Formulas after the plugins of that name: TaintToleration (weight 3), NodeAffinity (2),
// NodeResourcesFit with LeastAllocated of cpu and memory (1), PodTopologySpread (2),
// InterPodAffinity with hardPodAffinityWeight 1 (2), NodeResourcesBalancedAllocation (1),
// ImageLocality (1).

namespace rudderfish {

enum class ScorePlugin : uint8_t {
  kTaintToleration,
  kNodeAffinity,
  kResourcesFit,
  kTopologySpread,
  kInterPodAffinity,
  kBalancedAllocation,
  kImageLocality,
};
inline constexpr int kScorePluginCount = 7;

std::string_view NameOf(ScorePlugin plugin);  // As kube-scheduler calls it.

// Reused from call to call, and allocated once.
struct KubeScores {
  std::array<std::vector<int64_t>, kScorePluginCount> of_plugin;  // [node] Weighted; 0 if not
                                                                  // feasible.
  std::vector<int64_t> total;                                     // [node]

  std::vector<int64_t> by_domain;  // Working space.
  std::vector<double> sums;
};

// `feasibility` is what rules.Filter said of this class, with nothing changed since.
void ScoreAsKube(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
                 KubeScores* out);

// LeastAllocated and BalancedAllocation of one node, 0 to 100: `requested` with the pod, `before`
// without it.
int64_t LeastAllocatedOf(const Resources& requested, const Resources& allocatable);
int64_t BalancedAllocationOf(const Resources& before, const Resources& requested,
                             const Resources& allocatable);

}  // namespace rudderfish
