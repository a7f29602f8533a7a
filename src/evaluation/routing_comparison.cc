// SPDX-License-Identifier: Apache-2.0
#include "evaluation/routing_comparison.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/json.h"
#include "base/text_table.h"
#include "evaluation/outcome_text.h"
#include "evaluation/scaling_difference.h"

namespace rudderfish {
namespace {

struct RoutingMetric {
  const char *name, *title, *unit;
  int decimals;
  double (*figure)(const RoutingFigures&);
};
using Of = const RoutingFigures&;
constexpr RoutingMetric kRoutingMetrics[] = {
    {"objective", "objective", "", 4, [](Of one) { return one.objective(); }},
    {"late_percent", "late %", "points", 2, [](Of one) { return 100 * one.late_share(); }},
    {"nodes", "nodes", "", 4, [](Of one) { return one.PerRequest(one.nodes); }},
    {"egress", "egress", "", 4, [](Of one) { return one.PerRequest(one.egress); }},
    {"carbon", "carbon", "", 4, [](Of one) { return one.PerRequest(one.carbon); }},
    {"late", "late", "", 4, [](Of one) { return one.PerRequest(one.late); }},
    {"wait", "wait", "", 4, [](Of one) { return one.PerRequest(one.wait); }},
    {"foreign_percent", "elsewhere %", "points", 1,
     [](Of one) { return 100 * one.PerRequest(one.foreign); }},
    {"node_changes", "node changes", "nodes", 0, [](Of one) { return one.changes; }},
    {"carbon_kg_per_hour", "kg CO2/h", "kg/h", 3, [](Of one) { return one.carbon_kg_per_h(); }},
    {"dollars_per_hour", "$/h", "$/h", 2, [](Of one) { return one.dollars_per_h(); }},
    {"provider_percent", "one provider %", "points", 1,
     [](Of one) { return 100 * one.provider_share(); }},
};
constexpr int kLateMetric = 1, kCarbonMetric = 9, kDollarsMetric = 10, kProviderMetric = 11;

// Without a limit on providers theirs is of no interest.
size_t MetricsOf(const RoutingLimits& limits) {
  return limits.provider_percent < RoutingLimits::kNone ? kProviderMetric + 1 : kProviderMetric;
}

// Means of held-out episodes differ by chance from those that settings were chosen by.
constexpr double kLateTolerance = 0.2;    // Percentage points.
constexpr double kLimitTolerance = 0.02;  // Of a limit.

double LatePercentOf(const RoutingFigures& figures, size_t service) {
  const RoutingFigures::OfService& one = figures.services[service];
  return one.requests > 0 ? 100 * one.late_requests / one.requests : 0;
}

// [service] In the mean of episodes and training seeds.
std::vector<double> LatePercents(const RoutingEvaluation& evaluation, int variant, int policy) {
  std::vector<double> late(evaluation.services.size());
  const int seeds = evaluation.seeds(policy);
  for (size_t s = 0; s < late.size(); ++s) {
    for (int i = 0; i < seeds * evaluation.episodes; ++i) {
      late[s] += LatePercentOf(
          evaluation.at(variant, policy, i / evaluation.episodes, i % evaluation.episodes), s);
    }
    late[s] /= seeds * evaluation.episodes;
  }
  return late;
}

std::string ServicesTable(const RoutingEvaluation& evaluation, int variant) {
  if (evaluation.services.empty() || evaluation.episodes == 0) return "";
  std::vector<TextTable::Column> columns = {{"  late % of"}};
  for (const std::string& name : evaluation.services)
    columns.push_back({name, TextTable::Align::kRight});
  TextTable table(std::move(columns));
  for (int p = 0; p < static_cast<int>(evaluation.policies.size()); ++p) {
    std::vector<std::string> row = {"  " + evaluation.policies[static_cast<size_t>(p)]};
    for (const double late : LatePercents(evaluation, variant, p))
      row.push_back(fmt::format("{:.2f}", late));
    table.Row(std::move(row));
  }
  return "\n" + table.Text();
}

}  // namespace

JudgeRule RoutingRule(const RoutingLimits& limits) {
  constexpr double kNone = RoutingLimits::kNone;
  JudgeRule rule;
  if (limits.late_percent < kNone) {
    rule.constraints.push_back(
        {.metric = kLateMetric, .tolerance = kLateTolerance, .most = limits.late_percent});
  } else {
    rule.constraints.push_back({.metric = kLateMetric, .tolerance = 100 * kViolationTolerance});
  }
  const auto limit = [&](int metric, double most) {
    if (most < kNone)
      rule.constraints.push_back(
          {.metric = metric, .tolerance = kLimitTolerance * most, .most = most});
  };
  limit(kCarbonMetric, limits.carbon_kg_per_h);
  limit(kDollarsMetric, limits.dollars_per_h);
  limit(kProviderMetric, limits.provider_percent);
  return rule;
}

Outcomes OutcomesOf(const RoutingEvaluation& evaluation, int variant) {
  Outcomes outcomes{.episodes = evaluation.episodes, .resampling = {.seed = evaluation.seed}};
  const std::span<const RoutingMetric> metrics =
      std::span(kRoutingMetrics).first(MetricsOf(evaluation.limits));
  for (const RoutingMetric& metric : metrics) {
    outcomes.metrics.push_back({.name = metric.name,
                                .unit = metric.unit,
                                .title = metric.title,
                                .decimals = metric.decimals});
  }
  for (int p = 0; p < static_cast<int>(evaluation.policies.size()); ++p) {
    const int seeds = evaluation.seeds(p);
    outcomes.policies.push_back({evaluation.policies[p], seeds});
    for (const RoutingMetric& metric : metrics) {
      RunMatrix runs{.starts = evaluation.episodes, .seeds = seeds};
      for (int i = 0; i < evaluation.episodes; ++i) {
        for (int seed = 0; seed < seeds; ++seed)
          runs.values.push_back(metric.figure(evaluation.at(variant, p, seed, i)));
      }
      outcomes.runs.push_back(std::move(runs));
    }
  }
  return outcomes;
}

int BaselineOf(const RoutingEvaluation& evaluation, int variant) {
  std::vector<BaselineCandidate> others;
  std::vector<int> positions;
  for (int p = 0; p + 1 < static_cast<int>(evaluation.policies.size()); ++p) {
    if (evaluation.foresees[static_cast<size_t>(p)]) continue;
    const RoutingMeans& trial = evaluation.TrialOf(variant, p);
    others.push_back({.beyond = BeyondLimits(evaluation.limits, trial), .cost = trial.objective});
    positions.push_back(p);
  }
  const int best = ChooseBaseline(others);
  return best < 0 ? best : positions[static_cast<size_t>(best)];
}

std::string RoutingTable(const RoutingEvaluation& evaluation) {
  std::string text;
  for (int v = 0; v < static_cast<int>(evaluation.variants.size()); ++v) {
    const Outcomes outcomes = OutcomesOf(evaluation, v);
    text += fmt::format("{}{}, {}: {}, {}, seed {}\n\n{}", v > 0 ? "\n" : "", evaluation.scenario,
                        evaluation.variants[v], CountText(evaluation.regions, "region"),
                        CountText(evaluation.episodes, "episode"), evaluation.seed,
                        OutcomesTable(outcomes, RoutingRule(evaluation.limits)));
    text += ServicesTable(evaluation, v);
    const int baseline = BaselineOf(evaluation, v);
    if (baseline < 0) continue;
    text += fmt::format("\n{}\n{}", VerdictText(outcomes, RoutingRule(evaluation.limits), baseline),
                        TooFewText(evaluation.episodes, "episode"));
  }
  return text;
}

std::string RoutingJson(const RoutingEvaluation& evaluation) {
  OrderedJson variants = OrderedJson::array();
  const int policies = evaluation.episodes > 0 ? static_cast<int>(evaluation.policies.size()) : 0;
  for (int v = 0; v < static_cast<int>(evaluation.variants.size()); ++v) {
    OrderedJson variant{{"variant", evaluation.variants[v]}};
    variant.update(OutcomesJson(OutcomesOf(evaluation, v), RoutingRule(evaluation.limits),
                                BaselineOf(evaluation, v)));
    for (int p = 0; !evaluation.services.empty() && p < policies; ++p) {
      OrderedJson& own = variant["late_percent_by_service"][evaluation.policies[p]];
      const std::vector<double> late = LatePercents(evaluation, v, p);
      for (size_t s = 0; s < late.size(); ++s) own[evaluation.services[s]] = late[s];
    }
    variants.push_back(std::move(variant));
  }
  return OrderedJson{{"schema_version", 1},
                     {"kind", "routing_evaluation"},
                     {"scenario", evaluation.scenario},
                     {"seed", evaluation.seed},
                     {"regions", evaluation.regions},
                     {"episodes", evaluation.episodes},
                     {"variants", std::move(variants)}}
             .dump(1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

std::string RoutingCsv(const RoutingEvaluation& evaluation) {
  std::string text = "variant,policy,seed,episode,requests";
  for (const RoutingMetric& metric : kRoutingMetrics) text += fmt::format(",{}", metric.name);
  text += ",node_hours,spot_hours,carbon_kg,dollars";
  for (const std::string& name : evaluation.services) text += fmt::format(",late_percent_{}", name);
  text += "\n";
  for (int v = 0; v < static_cast<int>(evaluation.variants.size()); ++v) {
    for (int p = 0; p < static_cast<int>(evaluation.policies.size()); ++p) {
      for (int run = 0; run < evaluation.seeds(p) * evaluation.episodes; ++run) {
        const int seed = run / evaluation.episodes, i = run % evaluation.episodes;
        const RoutingFigures& one = evaluation.at(v, p, seed, i);
        text += fmt::format("{},\"{}\",{},{},{}", evaluation.variants[v], evaluation.policies[p],
                            seed + 1, i, one.requests);
        for (const RoutingMetric& metric : kRoutingMetrics)
          text += fmt::format(",{:.9g}", metric.figure(one));
        text += fmt::format(",{:.9g},{:.9g},{:.9g},{:.9g}", one.node_hours, one.spot_hours,
                            one.carbon_kg, one.dollars);
        for (size_t s = 0; s < evaluation.services.size(); ++s)
          text += fmt::format(",{:.9g}", LatePercentOf(one, s));
        text += "\n";
      }
    }
  }
  return text;
}

bool BetterEverywhere(const RoutingEvaluation& evaluation) {
  for (int v = 0; v < static_cast<int>(evaluation.variants.size()); ++v) {
    const int baseline = BaselineOf(evaluation, v);
    if (baseline >= 0 && Judge(OutcomesOf(evaluation, v), RoutingRule(evaluation.limits),
                               baseline) != Finding::kBetter)
      return false;
  }
  return true;
}

}  // namespace rudderfish
