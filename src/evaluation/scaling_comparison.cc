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

// A line for each load on which networks stepped back, as an experiment counts them.
std::string StepsBack(const OrderedJson& pairs) {
  std::string text;
  std::string last;  // Pairs of a load follow each other.
  for (const OrderedJson& pair : pairs) {
    if (!pair.contains("seeds_stepped_back") || pair["seeds_stepped_back"] == 0) continue;
    const std::string variant = pair.value("variant", "as-shipped");
    const auto where =
        fmt::format("{}{} {}", pair.value("scenario", ""),
                    variant == "as-shipped" ? "" : " " + variant, pair.value("load", ""));
    if (where == last) continue;
    last = where;
    text += fmt::format("{}{}: {} of {} seeds of {} step back to {}\n", text.empty() ? "\n" : "",
                        where, pair["seeds_stepped_back"].get<int>(), pair["seeds"].get<int>(),
                        pair["candidate"].get<std::string>(),
                        fmt::join(pair["stepped_back_to"].get<std::vector<std::string>>(), ", "));
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

OrderedJson ScalingPairs(const ScalingEvaluation& evaluation, std::string_view scenario,
                         std::string_view variant) {
  OrderedJson pairs = OrderedJson::array();
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    for (int policy = 0; policy < CandidateOf(evaluation); ++policy) {
      for (const PairMetric& metric : kPairMetrics) {
        OrderedJson pair = {{"scenario", scenario}, {"variant", variant}};
        pair.update(PairOf(evaluation, load, policy, metric));
        pairs.push_back(std::move(pair));
      }
    }
  }
  return pairs;
}

std::string ScalingPairsTable(const OrderedJson& pairs) {
  // The scenario and the variant, where there are several.
  std::vector<std::string> places;
  // Of earlier versions pairs say no variant.
  const auto place_of = [](const OrderedJson& pair, const std::string& key) {
    return pair.value(key, "as-shipped");
  };
  for (const char* key : {"scenario", "variant"}) {
    if (std::any_of(pairs.begin(), pairs.end(), [&](const OrderedJson& pair) {
          return place_of(pair, key) != place_of(pairs[0], key);
        }))
      places.emplace_back(key);
  }
  std::vector<std::vector<std::string>> rows = {places};
  for (const char* heading :
       {"load", "baseline", "metric", "baseline", "candidate", "difference 95 %", "better"})
    rows[0].emplace_back(heading);
  for (const OrderedJson& pair : pairs) {
    const OrderedJson& better = pair["better"];
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string& key : places) row.push_back(place_of(pair, key));
    row.insert(row.end(), {pair["load"].get<std::string>(), pair["baseline"].get<std::string>(),
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
  return Aligned(rows) + StepsBack(pairs);
}

}  // namespace rudderfish
