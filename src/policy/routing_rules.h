// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "policy/region_autoscaler.h"
#include "policy/region_planner.h"
#include "policy/routing_policy.h"

// Rules of routing: the ones load balancers have, and the split that the Model finds cheapest. All
// of them have the same autoscaler below, which is asked for nodes for where requests should go
// even while too few nodes are there, and keeps those that still serve: nodes are made before
// traffic moves, and given back after it left.

namespace rudderfish {

// Targets in the order of a score; each takes what its ready nodes serve at `full`, the rest goes
// on to the next one.
struct RankedRouting {
  enum class By {
    kDistance,  // Locality with spill-over.
    kPrice,     // Nodes and egress.
    kCarbon,
    kLatency,  // Distance and the wait that was measured.
  };

  By by = By::kDistance;
  double full = 0.8;      // Use of ready nodes beyond which requests spill over.
  double within_s = 0.1;  // Round trip of targets; the own region always is one.
};

// Shares that never change: `home` of each region's requests stays, the rest goes to all regions,
// by their peaks or evenly.
struct StaticRouting {
  double home = 1;
  bool evenly = false;
};

// Each request probes `probes` regions that are drawn, and goes to the best of them.
struct ProbedRouting {
  enum class By {
    kLatency,  // Power of d choices (Mitzenmacher, TPDS 2001), by round trip and measured wait.
    // Prequal's rule (Wydrowski et al., NSDI 2024): where all that were probed are hot, the fewest
    // requests in flight for each ready node; else of the cold ones the lowest latency. Hot is
    // beyond the quantile `hot` of all regions' requests in flight.
    kHotCold,
  };

  By by = By::kLatency;
  int probes = 2;
  double hot = 0.84;
};

// TrafficSplitSolver, each interval, on a forecast of demand: where requests should go once nodes
// that are ordered now serve is what nodes are for; where they go now depends on the ready ones.
struct SplitRouting {
  double foreign = 0.1;   // In units of the objective, for what is served elsewhere,
  double moving = 0.1;    // and for what moves.
  double full = 0.8;      // Use of ready nodes at which they count as full.
  double headroom = 0.5;  // Quantile of the errors of forecasts that it prepares for.
  double use = 0.6;       // At which nodes are priced.
  RoutingPrices prices;   // In place of the objective's.
  // Demand is known where the question has it: `clairvoyant`. What happens to nodes is not, and the
  // rest is that of `mpc`, so that this is no strict bound.
  bool foresees = false;
};

// The same, and below it a RegionPlanner.
struct PlannedRouting {
  SplitRouting split;
  RegionAutoscaling below;
  RegionPlanning planning;
};

std::unique_ptr<RoutingPolicy> MakeRankedRouting(const RankedRouting& rule,
                                                 const RegionAutoscaling& below);
std::unique_ptr<RoutingPolicy> MakeStaticRouting(const StaticRouting& rule,
                                                 const RegionAutoscaling& below);
std::unique_ptr<RoutingPolicy> MakeProbedRouting(const ProbedRouting& rule,
                                                 const RegionAutoscaling& below);
std::unique_ptr<RoutingPolicy> MakeSplitRouting(const SplitRouting& rule,
                                                const RegionAutoscaling& below);
std::unique_ptr<RoutingPolicy> MakePlannedRouting(const PlannedRouting& rule);

// `text`: mpc, with its options. kInvalidArgument for another policy.
Result<PlannedRouting> ReadPlannedRouting(std::string_view text);

}  // namespace rudderfish
