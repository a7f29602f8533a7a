// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "evaluation/placement_evaluation.h"

namespace rudderfish {
namespace {

// Mean over training seeds and episodes.
double MeanOf(const EvaluatedPlacement& policy, std::string_view row) {
  double sum = 0;
  for (const LifecycleMetrics& metrics : policy.episodes) {
    for (const MetricRow& one : metrics.Rows()) sum += one.name == row ? one.value : 0;
  }
  return sum / static_cast<double>(policy.episodes.size());
}

// " greedy by 80.6 %, learned by 78.0 %."
std::string AboveText(const PlacementEvaluation& evaluation, double least) {
  std::string text;
  for (const EvaluatedPlacement& policy : evaluation.policies) {
    const double mean = Mean(policy.Objectives(evaluation.episodes).values);
    text += fmt::format("{} {} by {:.1f} %", text.empty() ? "" : ",", policy.name,
                        100 * (mean / least - 1));
  }
  return text + ".";
}

std::string BoundText(const PlacementEvaluation& evaluation) {
  std::string text = fmt::format(
      "No way to place these pods comes below {:.5f}: the mean of what is best at each moment, as "
      "if pods could be moved freely. Above it:{}\n",
      *evaluation.bound, AboveText(evaluation, *evaluation.bound));
  if (!evaluation.best_foreseen) return text;
  return text + fmt::format(
                    "The best found without moving any, knowing which pods will come and when each "
                    "leaves, is {:.5f}. Above it:{}\n",
                    *evaluation.best_foreseen, AboveText(evaluation, *evaluation.best_foreseen));
}

}  // namespace

std::string PlacementVerdict(const PlacementEvaluation& evaluation) {
  const EvaluatedPlacement& candidate = evaluation.policies.back();
  const EvaluatedPlacement& baseline = evaluation.policies[evaluation.baseline];
  const double base = Mean(baseline.Objectives(evaluation.episodes).values);
  const std::string numbers = fmt::format(
      "{:+.5f} [{:+.5f}, {:+.5f}] in the mean of {} ({:+.2f} %; paired, 95 % interval over "
      "episodes{}); better on {}, equal on {}, worse on {}.",
      evaluation.difference, evaluation.difference_ci.low, evaluation.difference_ci.high,
      evaluation.objective, base > 0 ? 100 * evaluation.difference / base : 0.0,
      candidate.training_seeds > 1 ? fmt::format(" and {} training seeds", candidate.training_seeds)
                                   : "",
      evaluation.better, evaluation.equal, evaluation.worse);
  if (evaluation.episodes < kEpisodesForFinding) {
    return fmt::format(
        "No difference between {} and {} can be shown on {}: at least {} are needed. {}",
        candidate.name, baseline.name, CountText(evaluation.episodes, "episode"),
        kEpisodesForFinding, numbers);
  }
  if (evaluation.finding == Finding::kUndecided) {
    return fmt::format("No difference between {} and {} can be shown on these {} episodes: {}",
                       candidate.name, baseline.name, evaluation.episodes, numbers);
  }
  return fmt::format(
      "{} is {} than {}, the best of the others on episodes for choosing, on these "
      "{} episodes: {}",
      candidate.name, FindingName(evaluation.finding), baseline.name, evaluation.episodes, numbers);
}

std::string PlacementTable(const PlacementEvaluation& evaluation) {
  std::string text =
      fmt::format("{}: {}, {}, objective {}, seed {}\n\n", evaluation.scenario,
                  CountText(evaluation.episodes, "episode"), CountText(evaluation.nodes, "node"),
                  evaluation.objective, evaluation.seed);
  size_t width = 6;
  bool has_calls = false;
  for (const EvaluatedPlacement& policy : evaluation.policies) {
    width = std::max(width, policy.name.size());
    has_calls = has_calls || MeanOf(policy, "call_latency") > 0;
  }
  text += fmt::format("{:{}}  {:>9}  {:>18}  {:>7}  {:>6}  {:>6}  {:>7}  {:>6}  {:>7}{}\n",
                      "POLICY", width, "OBJECTIVE", "95 % INTERVAL", "WAITING", "ACTIVE", "CPU %",
                      "IMBAL %", "UNBOUND", "p50 us", has_calls ? "  CALL ms" : "");
  for (const EvaluatedPlacement& policy : evaluation.policies) {
    const RunMatrix runs = policy.Objectives(evaluation.episodes);
    const ConfidenceInterval interval = BootstrapMean(runs, {});
    text += fmt::format(
        "{:{}}  {:9.5f}  [{:.5f}, {:.5f}]  {:7.2f}  {:6.1f}  {:6.1f}  {:7.1f}  "
        "{:6.1f}  {:7.1f}{}\n",
        policy.name, width, Mean(runs.values), interval.low, interval.high,
        MeanOf(policy, "waiting_pods"), MeanOf(policy, "active_nodes"),
        100 * MeanOf(policy, "utilisation_cpu"), 100 * MeanOf(policy, "imbalance_cpu"),
        MeanOf(policy, "never_bound"), policy.decide_p50_us,
        has_calls ? fmt::format("  {:7.2f}", MeanOf(policy, "call_latency")) : "");
  }
  if (evaluation.bound) text += "\n" + BoundText(evaluation);
  if (evaluation.baseline >= 0) text += "\n" + PlacementVerdict(evaluation) + "\n";
  return text;
}

std::string PlacementJson(const PlacementEvaluation& evaluation) {
  OrderedJson json{{"schema_version", 1},
                   {"kind", "placement_evaluation"},
                   {"scenario", evaluation.scenario},
                   {"objective", evaluation.objective},
                   {"seed", evaluation.seed},
                   {"nodes", evaluation.nodes},
                   {"episodes", evaluation.episodes}};
  if (evaluation.bound) json["bound"] = *evaluation.bound;
  if (evaluation.best_foreseen) json["best_without_moving"] = *evaluation.best_foreseen;
  OrderedJson& list = json["policies"] = OrderedJson::array();
  for (const EvaluatedPlacement& policy : evaluation.policies) {
    const RunMatrix runs = policy.Objectives(evaluation.episodes);
    const ConfidenceInterval interval = BootstrapMean(runs, {});
    OrderedJson metrics = OrderedJson::object();
    for (const MetricRow& row : policy.episodes[0].Rows())
      metrics[std::string(row.name)] = MeanOf(policy, row.name);
    list.push_back({{"name", policy.name},
                    {"training_seeds", policy.training_seeds},
                    {"objective_mean", Mean(runs.values)},
                    {"objective_interval", {interval.low, interval.high}},
                    {"cost_for_choosing", policy.trial_cost},
                    {"decide_p50_us", policy.decide_p50_us},
                    {"decide_p99_us", policy.decide_p99_us},
                    {"decide_s", policy.decide_s},
                    {"overhead", policy.Overhead(evaluation.episodes)},
                    {"metrics", std::move(metrics)}});
  }
  if (evaluation.baseline >= 0) {
    json["verdict"] = {{"candidate", evaluation.policies.back().name},
                       {"baseline", evaluation.policies[evaluation.baseline].name},
                       {"finding", FindingName(evaluation.finding)},
                       {"difference", evaluation.difference},
                       {"interval", {evaluation.difference_ci.low, evaluation.difference_ci.high}},
                       {"episodes_better", evaluation.better},
                       {"episodes_equal", evaluation.equal},
                       {"episodes_worse", evaluation.worse},
                       {"text", PlacementVerdict(evaluation)}};
  }
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string PlacementCsv(const PlacementEvaluation& evaluation) {
  std::string text = "policy,training_seed,episode";
  for (const MetricRow& row : evaluation.policies[0].episodes[0].Rows())
    text += fmt::format(",{}", row.name);
  text += "\n";
  for (const EvaluatedPlacement& policy : evaluation.policies) {
    for (size_t i = 0; i < policy.episodes.size(); ++i) {
      const auto each = static_cast<size_t>(evaluation.episodes);
      text += fmt::format("\"{}\",{},{}", policy.name, i / each, i % each);
      for (const MetricRow& row : policy.episodes[i].Rows())
        text += fmt::format(",{:.9g}", row.value);
      text += "\n";
    }
  }
  return text;
}

}  // namespace rudderfish
