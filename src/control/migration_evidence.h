// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/mode.h"
#include "control/placement_evidence.h"

// What the journal says of plans that move pods, of pods that a canary moved, and of how right the
// Model is, for each application; and what a promotion of migration still lacks. Pure functions of
// sums.

namespace rudderfish {

// In milliseconds of mean latency. A plan's gain is the predicted fall less the cost of its steps.
struct PlanEvidence {
  std::string application;
  int64_t plans = 0;      // That have ended, by the guard or by themselves.
  MeanSum gain;           // Of plans that would move pods.
  MeanSum over_baseline;  // By how much they gain more than the baseline in as many moves.
  MeanSum error;          // Of the Model: predicted less measured, of changes of the cluster.
};

// Of one application, since it acts or for some time.
struct MoveTrial {
  std::string application;
  int64_t moved = 0, not_moved = 0;  // Pods that were to be moved.
  // Of changes that were predicted to lower latency and were measured: by how much they lowered it
  // beyond half of what was predicted, in milliseconds.
  MeanSum beyond_half;
  // Of all measured changes, ours and others: by how much further off the Model's prediction was
  // than to predict no change, in milliseconds.
  MeanSum worse_than_none;
};

// A day of an application in which nothing changes has 144 plans, one every ten minutes, so that
// the first evening is not enough; and of a fault that shows in 3 of 100 plans, 100 show one with a
// probability of 95 %.
inline constexpr int64_t kPlansNeeded = 100;
// From 30 on the interval of a mean is within 5 % of the one for many (Student's t); as for
// placement.
inline constexpr int64_t kChangesNeeded = 30;

// Pods to be moved before anything is said of the share that could not be.
inline constexpr int64_t kMovesNeeded = 10;
inline constexpr int64_t kMeasuredMovesNeeded = 5;
// Measured changes before the Model is said to have drifted.
inline constexpr int64_t kDriftedNeeded = 10;

// What one application lacks for a promotion above shadow, one line each.
std::vector<std::string> WhatIsMissing(const PlanEvidence& evidence);

// What one application lacks for a promotion above canary, one line each.
std::vector<std::string> WhatIsMissing(const MoveTrial& trial);

// Why the moves of one application are worse than they should be; nothing: they are not, or there
// are too few to say.
std::optional<std::string> WhyWorse(const MoveTrial& trial);

// "+12.3 ± 4.5 ms"
std::string InMilliseconds(const MeanSum& sum);

}  // namespace rudderfish
