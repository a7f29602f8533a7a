// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "policy/placement_rules.h"
#include "sim/lifecycle.h"

// A rule that places the pods of a world in which they come and go.

namespace rudderfish {

// One episode; the same seed brings the same pods, failures and delays to every rule.
Result<LifecycleMetrics> RunPlacement(const PlacementRule& rule, uint64_t seed, Lifecycle* world);

}  // namespace rudderfish
