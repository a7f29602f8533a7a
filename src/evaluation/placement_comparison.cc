// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_comparison.h"

#include <vector>

namespace rudderfish {

std::span<const Metric> PlacementMetrics() {
  constexpr Metric::Better kMore = Metric::Better::kMore;
  static const std::vector<Metric> kMetrics = {
      {.name = "objective", .unit = "", .title = "objective", .decimals = 5},
      {.name = "active_nodes", .unit = "nodes", .title = "active nodes", .decimals = 2},
      {.name = "active_nodes_at_bindings",
       .unit = "nodes",
       .title = "active nodes at bindings",
       .decimals = 2},
      {.name = "chosen_latency", .unit = "ms", .title = "node-user latency", .decimals = 1},
      {.name = "call_latency", .unit = "ms", .title = "round trip of calls", .decimals = 2},
      {.name = "utilisation_cpu",
       .unit = "",
       .title = "CPU utilisation",
       .decimals = 3,
       .better = kMore},
      {.name = "active_utilisation_cpu",
       .unit = "",
       .title = "CPU utilisation of active nodes",
       .decimals = 3,
       .better = kMore},
      {.name = "imbalance_cpu", .unit = "", .title = "imbalance of CPU", .decimals = 4},
      {.name = "imbalance_memory", .unit = "", .title = "imbalance of memory", .decimals = 4},
      {.name = "makespan", .unit = "s", .title = "makespan", .decimals = 1},
      {.name = "waiting_pods", .unit = "pods", .title = "waiting pods", .decimals = 2},
      {.name = "soft_misses", .unit = "bindings", .title = "above the soft limit", .decimals = 1},
      {.name = "hard_misses", .unit = "bindings", .title = "above the hard limit", .decimals = 1}};
  return kMetrics;
}

Outcomes OutcomesOf(const PlacementEvaluation& evaluation) {
  Outcomes outcomes{.episodes = evaluation.episodes, .resampling = {.seed = evaluation.seed}};
  outcomes.metrics.assign(PlacementMetrics().begin(), PlacementMetrics().end());
  for (const EvaluatedPlacement& policy : evaluation.policies) {
    outcomes.policies.push_back({policy.name, policy.training_seeds});
    for (const Metric& metric : outcomes.metrics)
      outcomes.runs.push_back(policy.Runs(metric.name, evaluation.episodes));
  }
  return outcomes;
}

}  // namespace rudderfish
