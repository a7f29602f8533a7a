// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "policy/placement_rules.h"
#include "sim/lifecycle.h"
#include "task/placement_preset.h"

// A rule that places the pods of a world in which they come and go.

namespace rudderfish {

// One episode; the same seed brings the same pods, failures and delays to every rule.
// `decide_us`: if not null, the wall time of each answer is appended.
Result<LifecycleMetrics> RunPlacement(const PlacementRule& rule, uint64_t seed, Lifecycle* world,
                                      std::vector<double>* decide_us = nullptr);

// The objective's mean over time, and one node's worth of it for each pod that waits: leaving pods
// out is no way to save.
double PlacementCost(const LifecycleMetrics& metrics, int nodes);

// Whether the scenario says what a preset looks at.
Result<void> CheckPresetSuits(PlacementPreset preset, const Scenario& scenario);

}  // namespace rudderfish
