// SPDX-License-Identifier: Apache-2.0
#include "evaluation/scaling_difference.h"

#include <span>

#include "sim/scaling_evaluation.h"

namespace rudderfish {

Finding ScalingDifference::FindingOn(int episodes) const {
  static const JudgeRule kRule{.constraints = {{.metric = 1, .tolerance = kViolationTolerance}}};
  return FindingOf(kRule, episodes, core_hours_ci95, std::span(&violation_share_ci95, 1));
}

RunMatrix ScalingRuns(const ScalingEvaluation& evaluation, int load, int policy,
                      double (*figure)(const ScalingFigures&)) {
  RunMatrix runs{.starts = evaluation.episodes, .seeds = evaluation.policies[policy].members};
  for (int i = 0; i < runs.starts; ++i) {
    for (int member = 0; member < runs.seeds; ++member)
      runs.values.push_back(figure(evaluation.at(load, policy, i, member)));
  }
  return runs;
}

ScalingDifference CompareScaling(const ScalingEvaluation& evaluation, int load, int policy,
                                 int baseline) {
  const auto core_hours = [](const ScalingFigures& one) { return one.core_hours; };
  const auto violations = [](const ScalingFigures& one) { return one.violation_share(); };
  const RunMatrix cost = ScalingRuns(evaluation, load, policy, core_hours),
                  base_cost = ScalingRuns(evaluation, load, baseline, core_hours),
                  share = ScalingRuns(evaluation, load, policy, violations),
                  base_share = ScalingRuns(evaluation, load, baseline, violations);
  const BootstrapOptions options{.seed = evaluation.seed};
  return {.core_hours = PairedDifference(cost, base_cost),
          .violation_share = PairedDifference(share, base_share),
          .core_hours_ci95 = BootstrapPairedDifference(cost, base_cost, options),
          .violation_share_ci95 = BootstrapPairedDifference(share, base_share, options)};
}

}  // namespace rudderfish
