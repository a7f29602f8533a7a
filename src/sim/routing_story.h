// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "policy/routing_policy.h"
#include "scenario/region_world.h"
#include "sim/region_simulator.h"
#include "task/split_prediction.h"

// An episode of routing, decision by decision: where requests went before and where they go now,
// what one request more costs in each region, and which nodes each region is to have.

namespace rudderfish {

// A region that gets another share of the requests of an origin, and why.
struct MovedShare {
  int origin = 0, to = 0;
  double before = 0, after = 0;  // Shares.
  double per_s = 0;              // All requests of the origin.
  SplitPrediction one_more;      // One request more there, once the new shares hold.
};

struct ResizedRegion {
  int region = 0;
  int before[kNodePrices] = {}, after[kNodePrices] = {};  // Ordered ones included.
};

// A decision about one service.
struct RoutedService {
  double demand_per_s = 0;
  std::vector<double> shares;          // [origin][target] That hold now.
  std::vector<MovedShare> moved;       // The most requests first.
  std::vector<ResizedRegion> resized;  // By region.
};

struct RoutingStep {
  double at_s = 0;  // The end of the interval before.
  std::vector<RoutedService> services;
  RoutingFigures after;  // Of the interval that followed, alone.
};

struct RoutingEpisodeStory {
  std::vector<RoutingStep> steps;
  RoutingFigures figures;
};

// A whole episode.
RoutingEpisodeStory TellRouting(const RoutingPolicy& policy, const RegionEpisode& episode,
                                const std::shared_ptr<const RegionWorld>& world);

}  // namespace rudderfish
