// SPDX-License-Identifier: Apache-2.0
#include "evaluation/outcome_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/text_table.h"
#include "evaluation/pairs.h"

namespace rudderfish {
namespace {

std::string DifferenceText(const Outcomes& outcomes, int metric, int baseline) {
  const Difference difference = DifferenceIn(outcomes, metric, baseline);
  const Metric& what = outcomes.metrics[metric];
  const double base = Mean(outcomes.of(baseline, metric).values);
  std::string text =
      fmt::format("{} {:+.{}f} [{:+.{}f}, {:+.{}f}]", what.title, difference.mean, what.decimals,
                  difference.ci95.low, what.decimals, difference.ci95.high, what.decimals);
  if (!what.unit.empty()) text += " " + what.unit;
  if (base > 0) text += fmt::format(" ({:+.1f} %)", 100 * difference.mean / base);
  return text;
}

// The candidate's own mean beside what it may be at most.
std::string LimitText(const Outcomes& outcomes, const Constraint& limit) {
  const Metric& what = outcomes.metrics[limit.metric];
  const RunMatrix& own = outcomes.of(outcomes.candidate(), limit.metric);
  const ConfidenceInterval interval = BootstrapMean(own, outcomes.resampling);
  return fmt::format("{} {:.{}f} [{:.{}f}, {:.{}f}] of at most {:.{}f}", what.title,
                     Mean(own.values), what.decimals, interval.low, what.decimals, interval.high,
                     what.decimals, *limit.most, what.decimals);
}

}  // namespace

std::string OutcomesTable(const Outcomes& outcomes, const JudgeRule& rule) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns = {{"policy"}};
  for (int m = 0; m < static_cast<int>(outcomes.metrics.size()); ++m) {
    columns.push_back({outcomes.metrics[m].title, Align::kRight});
    if (m == rule.primary) columns.push_back({"95 % interval", Align::kRight});
  }
  TextTable table(columns, 2);
  for (int p = 0; p <= outcomes.candidate(); ++p) {
    const Outcomes::Of& policy = outcomes.policies[p];
    std::vector<std::string> row = {
        policy.seeds > 1 ? fmt::format("{} ({} seeds)", policy.name, policy.seeds) : policy.name};
    for (int m = 0; m < static_cast<int>(outcomes.metrics.size()); ++m) {
      const int decimals = outcomes.metrics[m].decimals;
      row.push_back(fmt::format("{:.{}f}", Mean(outcomes.of(p, m).values), decimals));
      if (m != rule.primary) continue;
      const ConfidenceInterval interval = BootstrapMean(outcomes.of(p, m), outcomes.resampling);
      row.push_back(
          fmt::format("[{:.{}f}, {:.{}f}]", interval.low, decimals, interval.high, decimals));
    }
    table.Row(std::move(row));
  }
  return table.Text();
}

std::string VerdictText(const Outcomes& outcomes, const JudgeRule& rule, int baseline) {
  const std::string &candidate = outcomes.policies.back().name,
                    &other = outcomes.policies[baseline].name;
  std::string numbers = DifferenceText(outcomes, rule.primary, baseline);
  for (const Constraint& one : rule.constraints) {
    numbers += ", " + (one.most ? LimitText(outcomes, one)
                                : DifferenceText(outcomes, one.metric, baseline));
  }
  const Finding finding = Judge(outcomes, rule, baseline);
  const std::string where =
      fmt::format("on these {}: {}", CountText(outcomes.episodes, "episode"), numbers);
  if (outcomes.episodes < rule.episodes_min || finding == Finding::kUndecided)
    return fmt::format("No difference between {} and {} can be shown {}", candidate, other, where);
  if (finding == Finding::kBreaksLimit) {
    std::string limits;
    for (const Constraint& one : rule.constraints)
      limits += (limits.empty() ? "" : ", ") + outcomes.metrics[one.metric].title;
    return fmt::format("{} is not better than {}, since it does not keep to the limit on {}, {}",
                       candidate, other, limits, where);
  }
  return fmt::format("{} is {} than {} {}", candidate, FindingName(finding), other, where);
}

OrderedJson OutcomesJson(const Outcomes& outcomes, const JudgeRule& rule, int baseline) {
  OrderedJson policies = OrderedJson::array();
  for (int p = 0; p <= outcomes.candidate(); ++p) {
    OrderedJson policy{{"name", outcomes.policies[p].name}, {"seeds", outcomes.policies[p].seeds}};
    for (int m = 0; m < static_cast<int>(outcomes.metrics.size()); ++m) {
      policy[outcomes.metrics[m].name] = Mean(outcomes.of(p, m).values);
      if (m != rule.primary) continue;
      const ConfidenceInterval interval = BootstrapMean(outcomes.of(p, m), outcomes.resampling);
      policy[outcomes.metrics[m].name + "_ci95"] = {interval.low, interval.high};
    }
    policies.push_back(std::move(policy));
  }
  OrderedJson json{{"policies", std::move(policies)}, {"pairs", PairsOf(outcomes, rule, {})}};
  if (baseline >= 0) {
    json["verdict"] = {{"candidate", outcomes.policies.back().name},
                       {"baseline", outcomes.policies[baseline].name},
                       {"finding", FindingName(Judge(outcomes, rule, baseline))},
                       {"text", VerdictText(outcomes, rule, baseline)}};
  }
  return json;
}

}  // namespace rudderfish
