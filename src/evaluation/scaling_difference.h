// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evaluation/judge.h"
#include "evaluation/statistics.h"
#include "sim/scaling_evaluation.h"

// Two policies that scale, compared on one load.

namespace rudderfish {

// Violations may be so much above those of the baseline: 0.1 points.
inline constexpr double kViolationTolerance = 0.001;

// A policy against a baseline on one load: paired, since both met the same requests; over episodes
// and members.
struct ScalingDifference {
  double core_hours = 0, violation_share = 0;  // Means of policy - baseline.
  ConfidenceInterval core_hours_ci95, violation_share_ci95;

  // Whether it is cheaper, with violations within the tolerance.
  Finding FindingOn(int episodes) const;
};

// A figure of a policy on a load, by episode and member.
RunMatrix ScalingRuns(const ScalingEvaluation& evaluation, int load, int policy,
                      double (*figure)(const ScalingFigures&));

ScalingDifference CompareScaling(const ScalingEvaluation& evaluation, int load, int policy,
                                 int baseline);

}  // namespace rudderfish
