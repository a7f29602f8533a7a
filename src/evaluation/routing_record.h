// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "scenario/region_world.h"
#include "sim/routing_evaluation.h"

// What pages show of an evaluation of routing beside its figures: how long answers take, and one
// episode, interval by interval. Episodes of the evaluation are run again for it, with the first
// training seed of each policy.

namespace rudderfish {

// At the end of an interval.
struct RoutingMoment {
  double hours = 0;                              // Since the episode's beginning.
  double late_share = 0;                         // Of the interval.
  std::vector<double> demand_per_s, load_per_s;  // [region] Of its users; that it served.
  std::vector<int> on_demand, spot;              // [region] Nodes, starting ones included.
};

struct RoutingPolicyRecord {
  std::vector<double> within;  // [RoutingRecord::times_s] Share of requests answered by then.
  std::vector<RoutingMoment> timeline;  // Of `episode_shown`; the candidate's, the baseline's.
};

struct RoutingVariantRecord {
  int episode_shown = 0;  // That with the median difference to the baseline.
  std::vector<RoutingPolicyRecord> policies;
};

struct RoutingRecord {
  std::vector<std::string> regions;
  std::vector<double> times_s;  // Ascending, with even ratios.
  double deadline_s = 0;
  int episodes = 0;                            // That `within` is of.
  std::vector<RoutingVariantRecord> variants;  // As in the evaluation.
};

// `world`, `policies` and `variants` as EvaluateRouting took them. Does not depend on the number of
// threads.
RoutingRecord RecordRouting(const RoutingEvaluation& evaluation,
                            const std::shared_ptr<const RegionWorld>& world,
                            const std::vector<NamedRoutingPolicy>& policies,
                            const std::vector<int>& variants, ThreadPool* pool);

}  // namespace rudderfish
