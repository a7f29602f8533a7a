// SPDX-License-Identifier: Apache-2.0
#include "evaluation/scaling_comparison.h"

#include <fmt/format.h>

#include "evaluation/scaling_difference.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

int CandidateOf(const ScalingEvaluation& evaluation) {
  return static_cast<int>(evaluation.policies.size()) - 1;
}

struct ScalingMetric {
  const char* name;
  const char* unit;
  double (*figure)(const ScalingFigures&);
};
constexpr ScalingMetric kScalingMetrics[] = {
    {"core_hours", "core-hours", [](const ScalingFigures& one) { return one.core_hours; }},
    {"violations", "percent",
     [](const ScalingFigures& one) { return 100 * one.violation_share(); }},
    {"changes", "changes",
     [](const ScalingFigures& one) { return static_cast<double>(one.changes); }},
};

}  // namespace

JudgeRule ScalingRule() {
  return {.primary = 0, .constraints = {{.metric = 1, .tolerance = 100 * kViolationTolerance}}};
}

Outcomes OutcomesOf(const ScalingEvaluation& evaluation, int load) {
  Outcomes outcomes{.episodes = evaluation.episodes, .resampling = {.seed = evaluation.seed}};
  for (const ScalingMetric& metric : kScalingMetrics)
    outcomes.metrics.push_back({.name = metric.name, .unit = metric.unit});
  for (int p = 0; p <= CandidateOf(evaluation); ++p) {
    outcomes.policies.push_back({evaluation.policies[p].name, evaluation.policies[p].members});
    for (const ScalingMetric& metric : kScalingMetrics)
      outcomes.runs.push_back(ScalingRuns(evaluation, load, p, metric.figure));
  }
  return outcomes;
}

std::string ScalingCsv(const ScalingEvaluation& evaluation) {
  std::string text =
      "load,policy,training_seed,episode,requests,violations,failures,pod_hours,core_hours,changes,"
      "mean_ms,p95_ms,p99_ms,node_hours,energy_wh,budget_used\n";
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    for (int policy = 0; policy <= CandidateOf(evaluation); ++policy) {
      for (int member = 0; member < evaluation.policies[policy].members; ++member) {
        for (int i = 0; i < evaluation.episodes; ++i) {
          const ScalingFigures& one = evaluation.at(load, policy, i, member);
          text +=
              fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                          evaluation.loads[load], evaluation.policies[policy].name, member + 1, i,
                          one.requests, one.violations, one.failures, one.pod_hours, one.core_hours,
                          one.changes, one.mean_ms, one.p95_ms, one.p99_ms, one.node_hours,
                          one.energy_wh, BudgetUsed(one.violation_share(), evaluation.late_max));
        }
      }
    }
  }
  return text;
}

}  // namespace rudderfish
