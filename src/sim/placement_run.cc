// SPDX-License-Identifier: Apache-2.0
#include "sim/placement_run.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace rudderfish {

Result<LifecycleMetrics> RunPlacement(const PlacementRule& rule, uint64_t seed, Lifecycle* world,
                                      std::vector<double>* decide_us) {
  const SystemClock clock;
  TRY(world->Start(seed));
  while (world->NextPending()) {
    const Instant asked = decide_us != nullptr ? clock.Now() : Instant{};
    const NodeId node =
        rule({world->state(), world->totals(), world->pending_workload(), world->next()});
    if (decide_us != nullptr) {
      const std::chrono::duration<double, std::micro> took = clock.Now() - asked;
      decide_us->push_back(took.count());
    }
    world->Bind(node);
  }
  return world->metrics();
}

double PlacementCost(const LifecycleMetrics& metrics, int nodes) {
  return metrics.MeanOverTime(metrics.objective_s) +
         metrics.MeanOverTime(metrics.waiting_pods_s) / std::max(1, nodes);
}

Result<void> CheckPresetSuits(PlacementPreset preset, const Scenario& scenario) {
  return CheckPresetSuits(
      preset, *scenario.catalog, PlacementLawsOf(scenario),
      PopularityOfWorkloads(*scenario.arrivals, scenario.catalog->workload_count()), scenario.name);
}

}  // namespace rudderfish
