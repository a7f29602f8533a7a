// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "evaluation/scaling_difference.h"
#include "sim/scaling_evaluation.h"
#include "sim/scaling_timeline.h"

// What a scaling evaluation says: means, differences with their intervals, a verdict for each
// load, and what figures are drawn from. A plain value, which can be written and read back.

namespace rudderfish {

// Of latencies: 0 and then shares whose complements halve about every six: 0.5, 0.9, 0.99, 0.999
// are among them, nearly.
std::vector<double> LatencyShares();

struct ScalingPolicySummary {
  std::string name;
  int seeds = 1;                // Of training.
  bool foresees = false;        // Knows what comes: no baseline.
  bool shares_network = false;  // With the candidate.
  // Means over episodes and seeds; violations of all requests of all episodes.
  double pod_hours = 0, core_hours = 0, violation_share = 0, p95_ms = 0, changes = 0;
  double node_hours = 0, energy_wh = 0;               // 0: nodes were not counted, or say no power.
  std::optional<ScalingDifference> against_baseline;  // None of the baseline itself.
  // [LatencyShares()] Of the requests of all episodes; infinite where a share has no answer.
  std::vector<double> latency_ms;
  std::vector<ScalingMoment> timeline;  // Of `episode_shown`; empty: not recorded.
};

struct ScalingLoadSummary {
  std::string load;
  int episodes = 0;
  double late_max = 0.01;                      // As ScalingSummary::late_max.
  double requests_per_s = 0;                   // Mean.
  std::vector<ScalingPolicySummary> policies;  // The last is the candidate.
  int baseline = -1;                           // -1: there is no other policy.
  int episode_shown = 0;  // That with the median difference in core-hours to the baseline.
  // Of a replay, which shares of its trace its episodes are from: a part held out from learning and
  // calibration. Of other loads 0 and 0.
  double trace_from = 0, trace_upto = 0;

  bool is_replay() const { return trace_upto > 0; }

  int candidate() const { return static_cast<int>(policies.size()) - 1; }
  // REQUIRES: a baseline.
  const ScalingDifference& difference() const { return *policies.back().against_baseline; }
  // Whether the baseline has no more violations. Where no other policy has as few, the baseline is
  // the one with the fewest, and costs say nothing.
  bool baseline_qualifies() const;
  // The candidate alone keeps the limit on violations.
  bool candidate_alone_keeps_limit() const;
  Finding finding() const;
};

// Who calls whom, summed over the endpoints by their share.
struct ServedNode {
  std::string name;
  bool client = false;
  int depth = 0;  // Calls between it and the client, at most.
  double calls_per_request = 0;
  double slot_s = 0;  // Computing of one request.
};

struct ServedEdge {
  int from = 0, to = 0;  // Nodes.
  double calls_per_request = 0;
};

struct ScalingSummary {
  std::string scenario;
  uint64_t seed = 1;
  int episodes = 0;
  double qos_low_ms = 0, qos_high_ms = 0;  // The tightest and the loosest target.
  double late_max = 0.01;                  // The limit that error budgets are of.
  std::vector<ServedNode> nodes;           // [workload]
  std::vector<ServedEdge> edges;
  std::vector<ScalingLoadSummary> loads;

  bool better_everywhere() const;  // True without baselines.
  bool draws_power() const;        // Whether energy is known.
  double BudgetOf(const ScalingPolicySummary& policy) const {
    return BudgetUsed(policy.violation_share, late_max);
  }
  double requests_per_s() const;  // Mean over loads.
};

// All but timelines. Of an evaluation on episodes for EpisodeUse::kEvaluation.
ScalingSummary Summarize(const ScalingEvaluation& evaluation, const Scenario& scenario);

// Runs the episode to show of each load again, for its candidate and its baseline. `loads` and
// `policies` as EvaluateScaling took them. Does not depend on the number of threads.
void RecordTimelines(const Scenario& scenario, const std::vector<int>& loads,
                     const std::vector<NamedScalingPolicy>& policies, ThreadPool* pool,
                     ScalingSummary* summary);

// What may be said of one load, in a sentence without full stop: "learned is better than hpa:
// core-hours -1.234 (-1.301 to -1.166), violations +0.02 points (...)"; empty without a baseline.
std::string ScalingVerdictText(const ScalingLoadSummary& load);

// Which part of its trace a replay was judged by, in words; empty for other loads.
std::string HeldOutText(const ScalingLoadSummary& load);

// How much of the rectangle up to the dearest and the latest of `of` (each a tenth further) is
// dominated by one of them, with violations on the scale of the figure. Zitzler and Thiele,
// "Multiobjective optimization using evolutionary algorithms", PPSN 1998.
double Hypervolume(const std::vector<ScalingPolicySummary>& of, std::optional<int> without = {});

// Violations as figures show them: 0 for none, linear below 0.1 %, logarithmic above.
double ViolationScale(double share);

OrderedJson ScalingSummaryJson(const ScalingSummary& summary);

// As text; what ScalingSummaryOf reads back.
std::string ScalingSummaryText(const ScalingSummary& summary);

// Messages name the source and the key.
Result<ScalingSummary> ScalingSummaryOf(const Json& json, std::string_view source_name);

}  // namespace rudderfish
