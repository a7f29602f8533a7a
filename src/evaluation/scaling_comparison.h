// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "evaluation/judge.h"
#include "sim/scaling_evaluation.h"
#include "sim/scaling_run.h"

// What is compared of a scaling evaluation. Pure functions of the evaluation.

namespace rudderfish {

// A row an episode and training seed. Times in ms; hours of pods, cores and nodes; watt-hours; of
// the error budget the share that is used (BudgetUsed).
std::string ScalingCsv(const ScalingEvaluation& evaluation);

// What is compared under one load: core-hours, violations (percent of requests) and changes.
Outcomes OutcomesOf(const ScalingEvaluation& evaluation, int load);

// Cheaper, with violations at most 0.1 points above.
JudgeRule ScalingRule();

}  // namespace rudderfish
