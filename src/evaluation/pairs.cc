// SPDX-License-Identifier: Apache-2.0
#include "evaluation/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text_table.h"

namespace rudderfish {
namespace {

// Whether a metric has a part in the verdict.
bool IsJudged(const JudgeRule& rule, int metric) {
  return metric == rule.primary ||
         std::any_of(rule.constraints.begin(), rule.constraints.end(),
                     [&](const Constraint& one) { return one.metric == metric; });
}

OrderedJson BetterOf(const Outcomes& outcomes, const JudgeRule& rule, int metric, int baseline) {
  JudgeRule alone = rule;
  alone.primary = metric;
  if (metric != rule.primary) alone.constraints.clear();
  switch (Judge(outcomes, alone, baseline)) {
    case Finding::kBetter:
      return true;
    case Finding::kWorse:
      return false;
    case Finding::kBreaksLimit:
    case Finding::kUndecided:
      break;
  }
  return nullptr;
}

OrderedJson PairOf(const Outcomes& outcomes, const JudgeRule& rule, int metric, int baseline) {
  const Outcomes::Of& candidate = outcomes.policies.back();
  const RunMatrix &own = outcomes.of(outcomes.candidate(), metric),
                  &other = outcomes.of(baseline, metric);
  const Difference difference = DifferenceIn(outcomes, metric, baseline);
  const bool more = outcomes.metrics[metric].better == Metric::Better::kMore;
  const double less = ProbabilityOfImprovement(own, other);
  return {{"metric", outcomes.metrics[metric].name},
          {"unit", outcomes.metrics[metric].unit},
          {"candidate", candidate.name},
          {"baseline", outcomes.policies[baseline].name},
          {"candidate_iqm", InterquartileMean(own.values)},
          {"baseline_iqm", InterquartileMean(other.values)},
          {"candidate_mean", Mean(own.values)},
          {"baseline_mean", Mean(other.values)},
          {"difference", difference.mean},
          {"difference_ci95", {difference.ci95.low, difference.ci95.high}},
          {"probability_of_improvement", more ? 1 - less : less},
          {"episodes", outcomes.episodes},
          {"seeds", candidate.seeds},
          {"judged", IsJudged(rule, metric)},
          {"better", BetterOf(outcomes, rule, metric, baseline)}};
}

// A line for each cell in which networks stepped back, as an experiment counts them.
std::string StepsBack(const OrderedJson& pairs, const std::vector<std::string>& labels) {
  std::string text, last;  // Pairs of a cell follow each other.
  for (const OrderedJson& pair : pairs) {
    if (!pair.contains("seeds_stepped_back") || pair["seeds_stepped_back"] == 0) continue;
    std::string where;
    for (const std::string& label : labels)
      where += (where.empty() ? "" : " ") + pair[label].get<std::string>();
    if (where == last && !text.empty()) continue;
    last = where;
    text += fmt::format("{}{}: {} of {} seeds of {} step back to {}\n", text.empty() ? "\n" : "",
                        where, pair["seeds_stepped_back"].get<int>(), pair["seeds"].get<int>(),
                        pair["candidate"].get<std::string>(),
                        fmt::join(pair["stepped_back_to"].get<std::vector<std::string>>(), ", "));
  }
  return text;
}

}  // namespace

OrderedJson PairsOf(const Outcomes& outcomes, const JudgeRule& rule, const PairLabels& labels) {
  OrderedJson pairs = OrderedJson::array();
  for (int policy = 0; policy < outcomes.candidate(); ++policy) {
    for (int metric = 0; metric < static_cast<int>(outcomes.metrics.size()); ++metric) {
      OrderedJson pair = OrderedJson::object();
      for (const auto& [key, value] : labels) pair[key] = value;
      pair.update(PairOf(outcomes, rule, metric, policy));
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

std::string PairsTable(const OrderedJson& pairs) {
  if (pairs.empty()) return "";
  std::vector<std::string> labels, shown;
  for (const auto& [key, value] : pairs[0].items()) {
    if (key == "metric") break;
    labels.push_back(key);
  }
  for (const std::string& key : labels) {
    if (std::any_of(pairs.begin(), pairs.end(),
                    [&](const OrderedJson& pair) { return pair[key] != pairs[0][key]; }))
      shown.push_back(key);
  }
  std::vector<TextTable::Column> columns;
  for (const std::string& key : shown) columns.push_back({key});
  using Align = TextTable::Align;
  columns.insert(columns.end(), {{"baseline"},
                                 {"metric"},
                                 {"baseline", Align::kRight},
                                 {"candidate", Align::kRight},
                                 {"difference 95 %", Align::kRight},
                                 {"better"}});
  TextTable table(columns);
  for (const OrderedJson& pair : pairs) {
    if (!pair["judged"].get<bool>()) continue;
    std::vector<std::string> row;
    for (const std::string& key : shown) row.push_back(pair[key].get<std::string>());
    const double base = pair["baseline_mean"].get<double>();
    const int decimals = base >= 100 ? 1 : base >= 10 ? 2 : base >= 1 ? 3 : 5;
    const OrderedJson &better = pair["better"], &interval = pair["difference_ci95"];
    row.insert(row.end(), {pair["baseline"].get<std::string>(), pair["metric"].get<std::string>(),
                           fmt::format("{:.{}f}", base, decimals),
                           fmt::format("{:.{}f}", pair["candidate_mean"].get<double>(), decimals),
                           fmt::format("[{:.{}f}, {:.{}f}]", interval[0].get<double>(), decimals,
                                       interval[1].get<double>(), decimals),
                           better.is_null()     ? "undecided"
                           : better.get<bool>() ? "yes"
                                                : "no, worse"});
    table.Row(std::move(row));
  }
  return table.Text() + StepsBack(pairs, labels) +
         TooFewText(pairs[0]["episodes"].get<int64_t>(), "episode");
}

}  // namespace rudderfish
