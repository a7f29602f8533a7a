// SPDX-License-Identifier: Apache-2.0
#include "control/migration_evidence.h"

#include <fmt/format.h>

#include <cmath>

namespace rudderfish {
namespace {

constexpr double kRoundingMs = 1e-9;  // Of a mean.
constexpr double kNotMovedMax = 0.2;  // Of pods that were to be moved.

}  // namespace

std::string InMilliseconds(const MeanSum& sum) {
  if (sum.count == 0) return "none";
  const std::optional<double> half = sum.half95();
  return fmt::format("{:+.4g} \u00b1 {} ms", sum.mean(), half ? fmt::format("{:.2g}", *half) : "?");
}

std::vector<std::string> WhatIsMissing(const PlanEvidence& evidence) {
  std::vector<std::string> missing;
  const auto add = [&](const std::string& what) {
    missing.push_back(fmt::format("{}: {}", evidence.application, what));
  };
  if (evidence.plans < kPlansNeeded)
    add(fmt::format("{} of the {} shadowed plans that are needed", evidence.plans, kPlansNeeded));
  if (evidence.gain.count == 0) add("a plan that would move pods");
  if (evidence.over_baseline.mean() < -kRoundingMs) {
    add(
        fmt::format("plans that gain no less than the baseline in as many moves: they gain {} in "
                    "comparison",
                    InMilliseconds(evidence.over_baseline)));
  }
  const double gain_low = evidence.gain.mean() - evidence.gain.half95().value_or(0);
  const double error_high = std::abs(evidence.error.mean()) + evidence.error.half95().value_or(0);
  if (evidence.error.count == 0) {
    add("a measured error of the Model: no change of the cluster has been measured yet "
        "(`signals` in the configuration)");
  } else if (evidence.error.count < kChangesNeeded) {
    add(fmt::format("{} measured errors of the Model: there {} {}", kChangesNeeded,
                    evidence.error.count == 1 ? "is" : "are", evidence.error.count));
  } else if (evidence.gain.count > 0 && gain_low <= error_high) {
    add(
        fmt::format("a predicted gain beyond the Model's measured error: {} a plan, against an "
                    "error of {}",
                    InMilliseconds(evidence.gain), InMilliseconds(evidence.error)));
  }
  return missing;
}

std::optional<std::string> WhyWorse(const MoveTrial& trial) {
  const int64_t tried = trial.moved + trial.not_moved;
  if (tried >= kMovesNeeded &&
      static_cast<double>(trial.not_moved) > kNotMovedMax * static_cast<double>(tried)) {
    return fmt::format("{}: {} of {} pods could not be moved", trial.application, trial.not_moved,
                       tried);
  }
  const MeanSum& beyond = trial.beyond_half;
  if (beyond.count >= kMeasuredMovesNeeded && beyond.mean() + beyond.half95().value_or(0) < 0) {
    return fmt::format(
        "{}: {} measured changes lowered latency by less than half of what was "
        "predicted: {} beyond that half",
        trial.application, beyond.count, InMilliseconds(beyond));
  }
  // An effect of less than half of what is predicted, or the other way round.
  const MeanSum& drift = trial.worse_than_none;
  if (drift.count >= kDriftedNeeded && drift.mean() - drift.half95().value_or(0) > 0) {
    return fmt::format(
        "{}: the Model has drifted: of {} measured changes its predictions were further off than "
        "to predict none, by {}",
        trial.application, drift.count, InMilliseconds(drift));
  }
  return std::nullopt;
}

std::vector<std::string> WhatIsMissing(const MoveTrial& trial) {
  std::vector<std::string> missing;
  if (trial.moved < kMovesNeeded) {
    missing.push_back(fmt::format("{}: {} of the {} pods moved in canary that are needed",
                                  trial.application, trial.moved, kMovesNeeded));
  }
  if (trial.beyond_half.count < kMeasuredMovesNeeded) {
    missing.push_back(fmt::format("{}: {} measured changes that were to lower latency: there {} {}",
                                  trial.application, kMeasuredMovesNeeded,
                                  trial.beyond_half.count == 1 ? "is" : "are",
                                  trial.beyond_half.count));
  }
  if (const std::optional<std::string> worse = WhyWorse(trial))
    missing.push_back("moves that do what is predicted: " + *worse);
  return missing;
}

}  // namespace rudderfish
