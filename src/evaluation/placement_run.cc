// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_run.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/rng.h"

namespace rudderfish {
namespace {

constexpr uint64_t kTrialStream = uint64_t{6} << 40;  // Of a seed.

}  // namespace

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

uint64_t TrialSeed(uint64_t seed, int episode) {
  return Rng(seed, kTrialStream, static_cast<uint64_t>(episode)).Next64();
}

}  // namespace rudderfish
