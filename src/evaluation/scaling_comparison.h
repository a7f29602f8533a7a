// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "evaluation/scaling_run.h"

// The last policy of an evaluation of scaling (the candidate) against each of the others, as
// experiments keep it. Pure functions of the evaluation.

namespace rudderfish {

// A row an episode and training seed. Times in ms; hours of pods, cores and nodes; watt-hours; of
// the error budget the share that is used (BudgetUsed).
std::string ScalingCsv(const ScalingEvaluation& evaluation);

// The last policy against every other one on every load, an entry a metric:
//   [{"scenario","variant","load","metric","unit","candidate","baseline","candidate_iqm",
//     "baseline_iqm","candidate_mean","baseline_mean","difference","difference_ci95":[lo,hi],
//     "episodes","seeds","better":true|false|null}, ...]
// Metrics are core_hours, violations (percent of requests) and changes. `better` of core_hours says
// whether it is cheaper with no more violations (ScalingDifference::better), or dearer; of others
// whether there are fewer; null where the interval holds 0, and where it is cheaper by being late.
OrderedJson ScalingPairs(const ScalingEvaluation& evaluation, std::string_view scenario,
                         std::string_view variant);

// A table of all pairs, aligned, of several scenarios or variants with their names; ends with a
// newline.
std::string ScalingPairsTable(const OrderedJson& pairs);

}  // namespace rudderfish
