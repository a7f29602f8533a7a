// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_run.h"

namespace rudderfish {

Result<LifecycleMetrics> RunPlacement(const PlacementRule& rule, uint64_t seed, Lifecycle* world) {
  TRY(world->Start(seed));
  while (world->NextPending())
    world->Bind(rule({world->state(), world->totals(), world->pending_workload()}));
  return world->metrics();
}

}  // namespace rudderfish
