// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "evaluation/experiment.h"
#include "evaluation/statistics.h"
#include "sim/routing_evaluation.h"

// What policies can have for a weight of carbon: each weight gives a point of everything else that
// a request costs and of the carbon that it emits, and all of a policy's points make its front.
//
// Fronts are compared by hypervolume (Zitzler and Thiele: "Multiobjective evolutionary algorithms:
// a comparative case study and the strength Pareto approach", IEEE Transactions on Evolutionary
// Computation 1999): the area that a front dominates, up to a reference point. The reference lies
// a tenth of the range beyond the worst of all points on either axis, so that the ends of a front
// count (Ishibuchi et al.: "How to specify a reference point in hypervolume calculation",
// Evolutionary Computation 2018). It is told as a share of the area between the best of both axes
// and the reference.

namespace rudderfish {

struct FrontPoint {
  std::string variant;       // Of the experiment.
  double carbon_per_kg = 0;  // Dollars.
  RunMatrix cost;            // Units a request, without carbon.
  RunMatrix carbon;          // Grams a million requests.
  double unit_dollars = 0;   // What a unit of cost is.
  double dollars_per_million = 0, late_percent = 0;
};

struct PolicyFront {
  std::string policy;
  std::vector<FrontPoint> points;  // By weight.
};

// The area as above, of points of two costs. REQUIRES: `reference` is worse than `ideal` in both.
struct CostPair {
  double cost = 0, carbon = 0;
};
double Hypervolume(std::span<const CostPair> points, CostPair ideal, CostPair reference);

// The points of all policies of one cell of an experiment in `network`, under the first variant of
// its evaluation:
//   {"carbon_per_kg", "unit_dollars", "policies": [{"policy","starts","seeds","cost":[..],
//     "carbon":[..],"dollars_per_million","late_percent"}]}
OrderedJson FrontPointsJson(const RoutingEvaluation& evaluation, const RegionNetwork& network);

// Adds what FrontPointsJson wrote. kInvalidArgument where it has other policies or episodes.
Result<void> AddFrontPoints(const Json& points, std::string_view source_name,
                            const std::string& variant, std::vector<PolicyFront>* fronts);

// Of fronts with the same weights, the candidate last:
//   {"episodes","ideal":{"cost","carbon_g_per_million"},"reference":{...},"policies":[{"policy",
//     "hypervolume","hypervolume_ci95","difference","difference_ci95","better",
//     "points":[{"variant","carbon_per_kg","dollars_per_ton","cost","carbon_g_per_million",
//       "dollars_per_million","late_percent","on_front","paid_dollars_per_ton"}]}]}
// `difference` is the candidate's hypervolume minus the policy's; `better` is null where its
// interval holds 0. `dollars_per_ton` is what the weight says, `paid_dollars_per_ton` what all else
// costs more, lateness included, for each ton less than at the smallest weight; null where nothing
// was saved. Differences are of the same episodes, drawn again with the training seeds of each
// policy.
OrderedJson FrontJson(const std::vector<PolicyFront>& fronts, uint64_t seed);

// Whether the variants of an experiment on routing differ in the weight of carbon, and in nothing
// else. Each cell then leaves its points in a file of its folder.
bool MakesCarbonFronts(const Experiment& experiment);
inline constexpr std::string_view kFrontFile = "front.json";

// A front for each place and variant of the regions, with "scenario", "place" and "file", of what
// the cells left in their folders below `folder`. Empty unless MakesCarbonFronts.
Result<OrderedJson> CarbonFronts(const Experiment& experiment,
                                 const std::vector<ExperimentCell>& cells,
                                 const std::filesystem::path& folder);

// For a terminal: a row for each policy and weight.
std::string FrontTable(const OrderedJson& front);

}  // namespace rudderfish
