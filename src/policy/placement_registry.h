// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/placement_rules.h"
#include "task/placement.h"

// Ways to place pods by name, as the command line spells them:
//
//   round-robin  least-allocated  most-allocated  kube-default  greedy
//   mixed:greedy=1,most-allocated=0.1      the best by a sum of scores (task/placement.h)
//   RUN or CHECKPOINT                      a learned policy
//   mixed:most-allocated=1+RUN             a learned one with such scores added to its logits
//
// An unknown name is refused with the nearest known one.

namespace rudderfish {

// Immutable; any thread may start a run of it.
struct PlacementPolicy {
  std::string name;
  std::function<PlacementRule()> start;  // What one episode is placed by.
};

// Those that need nothing, by which learned ones are judged.
std::vector<std::string_view> PlacementHeuristics();

Result<PlacementPolicy> MakePlacementPolicy(std::string_view spec, const PlacementTask& task);

// The best by the mix, of equals the first.
PlacementPolicy MixedPlacement(std::string name, const PlacementTask& task,
                               const PlacementMix& mix);

}  // namespace rudderfish
