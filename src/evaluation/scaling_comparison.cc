// SPDX-License-Identifier: Apache-2.0
#include "evaluation/scaling_comparison.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "evaluation/comparison.h"

namespace rudderfish {
namespace {

int CandidateOf(const ScalingEvaluation& evaluation) {
  return static_cast<int>(evaluation.policies.size()) - 1;
}

std::string VerdictText(const ScalingEvaluation& evaluation, int load) {
  const int candidate = CandidateOf(evaluation), baseline = BaselineOf(evaluation, load);
  if (baseline < 0) return {};
  const ScalingDifference difference = CompareScaling(evaluation, load, candidate, baseline);
  return fmt::format(
      "{} is {}better than {}: core-hours {:+.3f} ({:+.3f} to {:+.3f}), violations {:+.2f} points "
      "({:+.2f} to {:+.2f})\n",
      evaluation.policies[candidate].name, difference.better() ? "" : "not ",
      evaluation.policies[baseline].name, difference.core_hours, difference.core_hours_ci95.low,
      difference.core_hours_ci95.high, 100 * difference.violation_share,
      100 * difference.violation_share_ci95.low, 100 * difference.violation_share_ci95.high);
}

// Columns of a table of text, each as wide as its widest cell; the first to the left.
std::string Aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

struct PairMetric {
  const char* name;
  const char* unit;
  double (*figure)(const ScalingFigures&);
};
constexpr PairMetric kPairMetrics[] = {
    {"core_hours", "core-hours", [](const ScalingFigures& one) { return one.core_hours; }},
    {"violations", "percent",
     [](const ScalingFigures& one) { return 100 * one.violation_share(); }},
    {"changes", "changes",
     [](const ScalingFigures& one) { return static_cast<double>(one.changes); }},
};

OrderedJson PairOf(const ScalingEvaluation& evaluation, int load, int baseline,
                   const PairMetric& metric) {
  const int candidate = CandidateOf(evaluation);
  const RunMatrix own = ScalingRuns(evaluation, load, candidate, metric.figure),
                  other = ScalingRuns(evaluation, load, baseline, metric.figure);
  const ConfidenceInterval interval =
      BootstrapPairedDifference(own, other, {.seed = evaluation.seed});
  OrderedJson better = nullptr;
  if (interval.low > 0) better = false;
  if (interval.high < 0) {
    const bool is_cost = metric.figure == kPairMetrics[0].figure;
    if (!is_cost || CompareScaling(evaluation, load, candidate, baseline).better()) better = true;
  }
  return {{"load", evaluation.loads[load]},
          {"metric", metric.name},
          {"unit", metric.unit},
          {"candidate", evaluation.policies[candidate].name},
          {"baseline", evaluation.policies[baseline].name},
          {"candidate_iqm", InterquartileMean(own.values)},
          {"baseline_iqm", InterquartileMean(other.values)},
          {"candidate_mean", Mean(own.values)},
          {"baseline_mean", Mean(other.values)},
          {"difference", PairedDifference(own, other)},
          {"difference_ci95", {interval.low, interval.high}},
          {"episodes", evaluation.episodes},
          {"seeds", evaluation.policies[candidate].members},
          {"better", better}};
}

}  // namespace

ScalingMeans MeansOf(const ScalingEvaluation& evaluation, int load, int policy) {
  ScalingMeans means;
  int64_t requests = 0, violations = 0;
  const int members = evaluation.policies[policy].members;
  for (int i = 0; i < evaluation.episodes * members; ++i) {
    const ScalingFigures& one = evaluation.at(load, policy, i / members, i % members);
    const double share = 1.0 / (evaluation.episodes * members);
    means.pod_hours += share * one.pod_hours;
    means.core_hours += share * one.core_hours;
    means.p95_ms += share * one.p95_ms;
    means.changes += share * one.changes;
    requests += one.requests;
    violations += one.violations;
  }
  if (requests > 0)
    means.violation_share = static_cast<double>(violations) / static_cast<double>(requests);
  return means;
}

int BaselineOf(const ScalingEvaluation& evaluation, int load) {
  const int candidate = CandidateOf(evaluation);
  const double most = MeansOf(evaluation, load, candidate).violation_share + kViolationTolerance;
  int best = -1;
  for (int policy = 0; policy < candidate; ++policy) {
    if (evaluation.policies[policy].foresees) continue;
    const ScalingMeans means = MeansOf(evaluation, load, policy);
    if (best < 0) {
      best = policy;
      continue;
    }
    const ScalingMeans other = MeansOf(evaluation, load, best);
    const bool fits = means.violation_share <= most, other_fits = other.violation_share <= most;
    const bool wins = fits == other_fits ? (fits ? means.core_hours < other.core_hours
                                                 : means.violation_share < other.violation_share)
                                         : fits;
    if (wins) best = policy;
  }
  return best;
}

std::string ScalingTable(const ScalingEvaluation& evaluation) {
  std::string text;
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    text += fmt::format("{}{}, {}: {} episode{}\n\n", load > 0 ? "\n" : "", evaluation.scenario,
                        evaluation.loads[load], evaluation.episodes,
                        evaluation.episodes == 1 ? "" : "s");
    std::vector<std::vector<std::string>> rows = {
        {"policy", "pod-hours", "core-hours", "violations", "p95", "changes"}};
    for (int policy = 0; policy <= CandidateOf(evaluation); ++policy) {
      const ScalingMeans means = MeansOf(evaluation, load, policy);
      const ScalingEvaluation::Evaluated& of = evaluation.policies[policy];
      rows.push_back(
          {of.members > 1 ? fmt::format("{} ({} seeds)", of.name, of.members) : of.name,
           fmt::format("{:.2f}", means.pod_hours), fmt::format("{:.3f}", means.core_hours),
           fmt::format("{:.2f} %", 100 * means.violation_share),
           fmt::format("{:.1f} ms", means.p95_ms), fmt::format("{:.1f}", means.changes)});
    }
    text += Aligned(rows);
    const std::string verdict = VerdictText(evaluation, load);
    if (!verdict.empty()) text += "\n" + verdict;
  }
  return text;
}

std::string ScalingJson(const ScalingEvaluation& evaluation) {
  OrderedJson json = {{"schema_version", 1},
                      {"task", "scaling"},
                      {"scenario", evaluation.scenario},
                      {"seed", evaluation.seed},
                      {"episodes", evaluation.episodes},
                      {"loads", OrderedJson::array()}};
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    OrderedJson one = {{"load", evaluation.loads[load]}, {"policies", OrderedJson::array()}};
    for (int policy = 0; policy <= CandidateOf(evaluation); ++policy) {
      const ScalingMeans means = MeansOf(evaluation, load, policy);
      one["policies"].push_back({{"policy", evaluation.policies[policy].name},
                                 {"seeds", evaluation.policies[policy].members},
                                 {"pod_hours", means.pod_hours},
                                 {"core_hours", means.core_hours},
                                 {"violation_share", means.violation_share},
                                 {"p95_ms", means.p95_ms},
                                 {"changes", means.changes}});
    }
    if (const int baseline = BaselineOf(evaluation, load); baseline >= 0) {
      const int candidate = CandidateOf(evaluation);
      const ScalingDifference d = CompareScaling(evaluation, load, candidate, baseline);
      one["comparison"] = {
          {"candidate", evaluation.policies[candidate].name},
          {"baseline", evaluation.policies[baseline].name},
          {"core_hours_difference", d.core_hours},
          {"core_hours_ci95", {d.core_hours_ci95.low, d.core_hours_ci95.high}},
          {"violation_share_difference", d.violation_share},
          {"violation_share_ci95", {d.violation_share_ci95.low, d.violation_share_ci95.high}},
          {"better", d.better()}};
    }
    json["loads"].push_back(std::move(one));
  }
  return json.dump(2) + "\n";
}

std::string ScalingCsv(const ScalingEvaluation& evaluation) {
  std::string text =
      "load,policy,training_seed,episode,requests,violations,failures,pod_hours,core_hours,changes,"
      "mean_ms,p95_ms,p99_ms\n";
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    for (int policy = 0; policy <= CandidateOf(evaluation); ++policy) {
      for (int member = 0; member < evaluation.policies[policy].members; ++member) {
        for (int i = 0; i < evaluation.episodes; ++i) {
          const ScalingFigures& one = evaluation.at(load, policy, i, member);
          text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", evaluation.loads[load],
                              evaluation.policies[policy].name, member + 1, i, one.requests,
                              one.violations, one.failures, one.pod_hours, one.core_hours,
                              one.changes, one.mean_ms, one.p95_ms, one.p99_ms);
        }
      }
    }
  }
  return text;
}

bool IsBetterEverywhere(const ScalingEvaluation& evaluation) {
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    const int baseline = BaselineOf(evaluation, load);
    if (baseline >= 0 &&
        !CompareScaling(evaluation, load, CandidateOf(evaluation), baseline).better())
      return false;
  }
  return true;
}

OrderedJson ScalingPairs(const ScalingEvaluation& evaluation, std::string_view scenario) {
  OrderedJson pairs = OrderedJson::array();
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    for (int policy = 0; policy < CandidateOf(evaluation); ++policy) {
      for (const PairMetric& metric : kPairMetrics) {
        OrderedJson pair = {{"scenario", scenario}};
        pair.update(PairOf(evaluation, load, policy, metric));
        pairs.push_back(std::move(pair));
      }
    }
  }
  return pairs;
}

std::string ScalingPairsTable(const OrderedJson& pairs) {
  std::vector<std::vector<std::string>> rows = {
      {"load", "baseline", "metric", "baseline", "candidate", "difference 95 %", "better"}};
  for (const OrderedJson& pair : pairs) {
    const OrderedJson& better = pair["better"];
    rows.push_back({pair["load"].get<std::string>(), pair["baseline"].get<std::string>(),
                    pair["metric"].get<std::string>(),
                    fmt::format("{:.3f}", pair["baseline_mean"].get<double>()),
                    fmt::format("{:.3f}", pair["candidate_mean"].get<double>()),
                    IntervalText({pair["difference_ci95"][0].get<double>(),
                                  pair["difference_ci95"][1].get<double>()},
                                 3),
                    better.is_null()     ? "undecided"
                    : better.get<bool>() ? "yes"
                                         : "no"});
  }
  return Aligned(rows);
}

}  // namespace rudderfish
