// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "evaluation/judge.h"
#include "evaluation/placement_evaluation.h"

// What is compared of an evaluation of placement.

namespace rudderfish {

// As LifecycleMetrics::Rows has them; the objective first, which alone is judged: the rule is
// JudgeRule{}.
std::span<const Metric> PlacementMetrics();

// What the clock says is not among it.
Outcomes OutcomesOf(const PlacementEvaluation& evaluation);

// Where an evaluation stands within an experiment.
struct PlacementPlace {
  std::string_view scenario, objective, variant;
};

}  // namespace rudderfish
