// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/mode.h"
#include "control/placement_evidence.h"

// What the journal says of plans that move pods, and of how right the Model is, for each
// application; and what a promotion of migration still lacks. Pure functions of sums.

namespace rudderfish {

// Moving pods for real is not there yet.
inline constexpr Mode kHighestMigrationMode = Mode::kAdvise;
inline constexpr std::string_view kWhyMigrationEndsThere =
    "this version does not move pods on a live cluster";

// In milliseconds of mean latency. A plan's gain is the predicted fall less the cost of its steps.
struct PlanEvidence {
  std::string application;
  int64_t plans = 0;      // That have ended, by the guard or by themselves.
  MeanSum gain;           // Of plans that would move pods.
  MeanSum over_baseline;  // By how much they gain more than the baseline in as many moves.
  MeanSum error;          // Of the Model: predicted less measured, of changes of the cluster.
};

// A day of an application in which nothing changes has 144 plans, one every ten minutes, so that
// the first evening is not enough; and of a fault that shows in 3 of 100 plans, 100 show one with a
// probability of 95 %.
inline constexpr int64_t kPlansNeeded = 100;
// From 30 on the interval of a mean is within 5 % of the one for many (Student's t); as for
// placement.
inline constexpr int64_t kChangesNeeded = 30;

// What one application lacks for a promotion above shadow, one line each.
std::vector<std::string> WhatIsMissing(const PlanEvidence& evidence);

// "+12.3 ± 4.5 ms"
std::string InMilliseconds(const MeanSum& sum);

}  // namespace rudderfish
