// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "evaluation/scaling_run.h"

// What an evaluation of scaling says: means, the last policy (the candidate) against the others, as
// text, JSON and CSV. Pure functions of it.

namespace rudderfish {

// Of one policy on one load, over episodes and members.
struct ScalingMeans {
  double pod_hours = 0, core_hours = 0, violation_share = 0, p95_ms = 0, changes = 0;
};
ScalingMeans MeansOf(const ScalingEvaluation& evaluation, int load, int policy);

// Violations of a candidate may be so much above its baseline's.
inline constexpr double kViolationTolerance = 0.001;

// The cheapest of the others whose violations are no more than the last one's, nearly; if none's
// are, that with the fewest. Who foresees is no baseline. -1 if there is none.
int BaselineOf(const ScalingEvaluation& evaluation, int load);

// Aligned text, a table and a verdict a load; JSON with schema_version 1; a row an episode and
// member.
std::string ScalingTable(const ScalingEvaluation& evaluation);
std::string ScalingJson(const ScalingEvaluation& evaluation);
std::string ScalingCsv(const ScalingEvaluation& evaluation);

// Whether the last policy is better than its baseline on every load.
bool IsBetterEverywhere(const ScalingEvaluation& evaluation);

// The last policy against every other one on every load, an entry a metric:
//   [{"scenario","load","metric","unit","candidate","baseline","candidate_iqm","baseline_iqm",
//     "candidate_mean","baseline_mean","difference","difference_ci95":[lo,hi],"episodes","seeds",
//     "better":true|false|null}, ...]
// Metrics are core_hours, violations (percent of requests) and changes. `better` of core_hours says
// whether it is cheaper with no more violations (ScalingDifference::better), or dearer; of others
// whether there are fewer; null where the interval holds 0, and where it is cheaper by being late.
OrderedJson ScalingPairs(const ScalingEvaluation& evaluation, std::string_view scenario);

// A table of all pairs, aligned; ends with a newline.
std::string ScalingPairsTable(const OrderedJson& pairs);

}  // namespace rudderfish
