// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "learn/episode_player.h"
#include "learn/routing_training.h"
#include "policy/neural_routing.h"
#include "policy/routing_rules.h"
#include "scenario/region_world.h"

// Learning to scale regions below a traffic split (task/region_scaling.h): episodes of one variant
// of a scenario of regions, played by a rule whose choices are made by weights.

namespace rudderfish {

struct RoutingWorld {
  std::shared_ptr<const RegionWorld> world;
  ServiceLaws laws;
  RegionVariant variant;
  PlannedRouting rule;  // That is begun with.
  RoutingTiers tiers;   // That are learned; the others stay as they are there.

  EvolutionStart Start() const;
  std::unique_ptr<EpisodePlayer> NewPlayer() const;
};

// Compares what was learned with rules, on episodes that nothing was chosen by: the best rule of
// all is named, and steps in unless what was learned is better beyond chance over all variants, in
// none of them more than 0.5 % worse, and with at most 0.1 percentage points more late requests.
// Where the world has limits, only what keeps them counts, and a limit of late requests is in the
// place of those 0.1 points.
// REQUIRES: `rules` are not empty, and as MakeRoutingRule reads them; at least two episodes.
RoutingVerdict JudgeRouting(std::span<const RoutingWorld* const> worlds,
                            const std::vector<float>& weights,
                            const std::vector<std::string>& rules, int episodes, uint64_t seed,
                            ThreadPool* pool);

// Means over the first `episodes` validation episodes of each world; the objective is by the prices
// of the rule that is begun with, as in training.
struct RoutingValidation {
  double objective = 0, changes = 0, late_share = 0;
};
RoutingValidation ValidateRouting(std::span<const RoutingWorld* const> worlds,
                                  const std::vector<float>& weights, int episodes, uint64_t seed,
                                  ThreadPool* pool);

}  // namespace rudderfish
