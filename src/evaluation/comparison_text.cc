// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "evaluation/comparison.h"

namespace rudderfish {
namespace {

OrderedJson IntervalJson(const ConfidenceInterval& interval) {
  return OrderedJson::array({interval.low, interval.high});
}

OrderedJson OptionalJson(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson TermsJson(const Terms& terms) {
  OrderedJson json = OrderedJson::object();
  for (int i = 0; i < Terms::kCount; ++i) json[TermNames()[i]] = TermValue(terms, i);
  return json;
}

OrderedJson EpisodeJson(const Evaluation& evaluation, const EvaluatedPolicy& policy,
                        const EvaluatedEpisode& episode) {
  const EvaluatedStart& start = evaluation.starts[episode.start];
  OrderedJson json{{"start", start.line}, {"pattern", start.pattern}};
  if (policy.training_seeds > 1) json["training_seed"] = episode.training_seed;
  json["initial"] = episode.initial.latency_ms;
  json["final"] = episode.final.latency_ms;
  json["terms"] = {{"initial", TermsJson(episode.initial)}, {"final", TermsJson(episode.final)}};
  json["allowed_actions"] = episode.allowed_actions;
  json["return"] = episode.return_ms;
  json["stopped"] = episode.stopped;
  if (start.optimum_ms) json["optimum"] = *start.optimum_ms;
  OrderedJson& decisions = json["decisions"] = OrderedJson::array();
  for (const MadeDecision& decision : episode.decisions) {
    decisions.push_back({{"kind", "migrate"},
                         {"pod", decision.pod},
                         {"from", decision.from},
                         {"to", decision.to},
                         {"predicted", decision.predicted_ms}});
  }
  return json;
}

OrderedJson SummaryJson(const PolicySummary& summary) {
  OrderedJson json{{"mean_initial", summary.mean_initial_ms},
                   {"mean_final", summary.mean_final_ms},
                   {"ci95", IntervalJson(summary.mean_final_ci)},
                   {"worst", summary.worst_final_ms},
                   {"moves", summary.mean_moves},
                   {"iqm_final", summary.iqm_final_ms},
                   {"iqm_ci95", IntervalJson(summary.iqm_final_ci)},
                   {"worst_start", summary.worst_start},
                   {"worst_change", summary.worst_change_ms},
                   {"stopped_share", summary.stopped_share},
                   {"share_of_best", OptionalJson(summary.share_of_best)}};
  if (summary.proven_starts > 0) {
    json["share_of_optimum"] = OptionalJson(summary.share_of_optimum);
    json["proven_starts"] = summary.proven_starts;
  }
  return json;
}

OrderedJson PairedJson(const PairedResult& paired) {
  return {{"paired_difference", paired.difference_ms},
          {"paired_difference_ci95", IntervalJson(paired.difference_ci)},
          {"probability_of_improvement", paired.probability_of_improvement},
          {"probability_of_improvement_ci95", IntervalJson(paired.probability_ci)},
          {"starts_better", paired.starts_better},
          {"starts_equal", paired.starts_equal},
          {"starts_worse", paired.starts_worse}};
}

OrderedJson PolicyJson(const Evaluation& evaluation, const Comparison& comparison, int index) {
  const EvaluatedPolicy& policy = evaluation.policies[index];
  OrderedJson json{{"name", policy.name}, {"training_seeds", policy.training_seeds}};
  if (policy.shares_network) json["shares_network"] = true;  // With the candidate.
  OrderedJson& episodes = json["episodes"] = OrderedJson::array();
  for (const EvaluatedEpisode& episode : policy.episodes) {
    episodes.push_back(EpisodeJson(evaluation, policy, episode));
  }
  const DecisionTimes& times = evaluation.times[index];
  json["decide_us"] = {{"p50", times.p50_us}, {"p99", times.p99_us}};
  json["plan_us"] = {{"mean", times.plan_mean_us}, {"p99", times.plan_p99_us}};
  json["summary"] = SummaryJson(comparison.policies[index]);
  if (!comparison.patterns.empty()) {
    OrderedJson& patterns = json["summary"]["patterns"] = OrderedJson::object();
    for (const Comparison::Pattern& pattern : comparison.patterns) {
      patterns[pattern.name] = SummaryJson(pattern.policies[index]);
    }
  }
  return json;
}

OrderedJson VerdictJson(const Evaluation& evaluation, const Comparison& comparison) {
  if (!comparison.verdict) return nullptr;
  const Comparison::Verdict& verdict = *comparison.verdict;
  OrderedJson json{{"better", verdict.finding == Finding::kBetter},
                   {"baseline", evaluation.policies[verdict.baseline].name},
                   {"candidate", evaluation.policies[verdict.candidate].name}};
  json.update(PairedJson(verdict.paired));
  json["text"] = verdict.text;
  if (!comparison.patterns.empty()) {
    OrderedJson& patterns = json["patterns"] = OrderedJson::object();
    for (const Comparison::Pattern& pattern : comparison.patterns) {
      patterns[pattern.name] = PairedJson(*pattern.paired);
    }
  }
  return json;
}

// Names are as long as users make them; the rest of a row is at most 76 columns.
constexpr int kNameColumns = 24;
constexpr size_t kTableColumns = 100;

std::string Shortened(const std::string& text, size_t columns) {
  if (text.size() <= columns) return text;
  size_t end = columns - 2;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // Not within a UTF-8 sequence.
  return text.substr(0, end) + "..";
}

std::string PlainPercent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}", 100 * *share) : std::string("-");
}

std::string TableRow(const std::string& name, const PolicySummary& summary) {
  return fmt::format("{:<{}} {:>8.1f} {:>18} {:>8.1f} {:>6} {:>6.1f}",
                     Shortened(name, kNameColumns), kNameColumns, summary.mean_final_ms,
                     IntervalText(summary.mean_final_ci, 1), summary.worst_final_ms,
                     PlainPercent(summary.share_of_best), summary.mean_moves);
}

std::string Microseconds(double us) {
  return us < 100 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

std::string StartsLine(const Evaluation& evaluation, const Comparison& comparison) {
  std::string patterns;
  for (const Comparison::Pattern& pattern : comparison.patterns) {
    patterns +=
        fmt::format("{}{} {}", patterns.empty() ? ": " : ", ", pattern.starts, pattern.name);
  }
  return fmt::format("{} start{}{}; mean latency at the start {:.1f} ms\n",
                     evaluation.start_count(), evaluation.start_count() == 1 ? "" : "s", patterns,
                     comparison.policies[0].mean_initial_ms);
}

// Breaks between words so that no line is longer than `columns`.
std::string Wrapped(std::string_view text, size_t columns) {
  std::string lines, line;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (!line.empty() && line.size() + 1 + word.size() > columns) {
      lines += line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return lines + line + "\n";
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string SignedText(double value, int decimals) {
  const std::string text = fmt::format("{:+.{}f}", value, decimals);
  // What rounds to zero has no sign.
  return text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
}

std::string MsText(double ms) { return fmt::format("{:.1f}", ms); }

std::string IntervalText(const ConfidenceInterval& interval, int decimals) {
  const auto text = [&](double value) {
    const std::string digits = SignedText(value, decimals);
    return digits[0] == '+' ? digits.substr(1) : digits;
  };
  return fmt::format("[{}, {}]", text(interval.low), text(interval.high));
}

std::string ComparisonTable(const Evaluation& evaluation, const Comparison& comparison) {
  std::string table = StartsLine(evaluation, comparison);
  table += fmt::format("\n{:<{}} {:>8} {:>18} {:>8} {:>6} {:>6} {:>7} {:>7} {:>8}\n", "POLICY",
                       kNameColumns, "FINAL ms", "95 % INTERVAL", "WORST", "WON %", "MOVES",
                       "p50 us", "p99 us", "PLAN ms");
  for (size_t p = 0; p < evaluation.policies.size(); ++p) {
    const EvaluatedPolicy& policy = evaluation.policies[p];
    const std::string name =
        policy.training_seeds > 1
            ? fmt::format("{} ({} seeds)", Shortened(policy.name, kNameColumns - 11),
                          policy.training_seeds)
            : policy.name;
    const DecisionTimes& times = evaluation.times[p];
    table += fmt::format("{} {:>7} {:>7} {:>8.3g}\n", TableRow(name, comparison.policies[p]),
                         Microseconds(times.p50_us), Microseconds(times.p99_us),
                         times.plan_mean_us / 1000);
    for (const Comparison::Pattern& pattern : comparison.patterns) {
      table += TableRow("  " + pattern.name, pattern.policies[p]) + "\n";
    }
  }
  if (comparison.policies[0].proven_starts > 0) {
    std::string line = fmt::format("Proven optimum on {} starts; of what can be won there:",
                                   comparison.policies[0].proven_starts);
    for (size_t p = 0; p < evaluation.policies.size(); ++p) {
      line += fmt::format("{} {} {} %", p == 0 ? "" : ",",
                          Shortened(evaluation.policies[p].name, kNameColumns),
                          PlainPercent(comparison.policies[p].share_of_optimum));
    }
    table += "\n" + Wrapped(line, kTableColumns);
  }
  if (!comparison.verdict) return table;
  return table + "\n" + Wrapped("Verdict: " + comparison.verdict->text, kTableColumns);
}

std::string EvaluationJson(const Evaluation& evaluation, const Comparison& comparison) {
  OrderedJson json{{"schema_version", 1},
                   {"scenario", evaluation.scenario},
                   {"seed", evaluation.seed},
                   {"objective", {{"name", evaluation.objective}, {"unit", evaluation.unit}}}};
  OrderedJson& policies = json["policies"] = OrderedJson::array();
  for (size_t p = 0; p < evaluation.policies.size(); ++p) {
    policies.push_back(PolicyJson(evaluation, comparison, static_cast<int>(p)));
  }
  json["verdict"] = VerdictJson(evaluation, comparison);
  // Names that are no UTF-8 are shown with replacement characters rather than refused.
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string EpisodesCsv(const Evaluation& evaluation) {
  std::string csv =
      "scenario,policy,training_seed,start,pattern,initial_ms,final_ms,return_ms,moves,"
      "allowed_actions,stopped\n";
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    for (const EvaluatedEpisode& episode : policy.episodes) {
      const EvaluatedStart& start = evaluation.starts[episode.start];
      csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", CsvField(evaluation.scenario),
                         CsvField(policy.name), episode.training_seed, start.line,
                         CsvField(start.pattern), episode.initial.latency_ms,
                         episode.final.latency_ms, episode.return_ms, episode.decisions.size(),
                         episode.allowed_actions, episode.stopped ? 1 : 0);
    }
  }
  return csv;
}

}  // namespace rudderfish
