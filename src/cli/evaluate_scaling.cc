// SPDX-License-Identifier: Apache-2.0
#include "cli/evaluate_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/scaling_options.h"
#include "cli/terminal.h"
#include "cli/text_table.h"
#include "evaluation/scaling_run.h"

namespace rudderfish {
namespace {

constexpr int64_t kScalingEpisodes = 20, kScalingEpisodesMax = 100'000;
constexpr double kViolationTolerance = 0.001;

struct ScalingMeans {
  double pod_hours = 0, core_hours = 0, violation_share = 0, p95_ms = 0, changes = 0;
};

ScalingMeans MeansOf(const ScalingEvaluation& evaluation, int load, int policy) {
  ScalingMeans means;
  int64_t requests = 0, violations = 0;
  for (int i = 0; i < evaluation.episodes; ++i) {
    const ScalingFigures& one = evaluation.at(load, policy, i);
    const double share = 1.0 / evaluation.episodes;
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

// The cheapest of the others whose violations are no more than the last one's; if none's are, that
// with the fewest. -1 if there is no other.
int BaselineOf(const ScalingEvaluation& evaluation, int load) {
  const int candidate = static_cast<int>(evaluation.policies.size()) - 1;
  const double most = MeansOf(evaluation, load, candidate).violation_share + kViolationTolerance;
  int best = -1;
  for (int policy = 0; policy < candidate; ++policy) {
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

std::string VerdictText(const ScalingEvaluation& evaluation, int load) {
  const int candidate = static_cast<int>(evaluation.policies.size()) - 1;
  const int baseline = BaselineOf(evaluation, load);
  if (baseline < 0) return {};
  const ScalingDifference difference = CompareScaling(evaluation, load, candidate, baseline);
  return fmt::format(
      "{} is {}better than {}: core-hours {:+.3f} ({:+.3f} to {:+.3f}), violations {:+.2f} points "
      "({:+.2f} to {:+.2f})\n",
      evaluation.policies[candidate], difference.better() ? "" : "not ",
      evaluation.policies[baseline], difference.core_hours, difference.core_hours_ci95.low,
      difference.core_hours_ci95.high, 100 * difference.violation_share,
      100 * difference.violation_share_ci95.low, 100 * difference.violation_share_ci95.high);
}

std::string ScalingTable(const ScalingEvaluation& evaluation) {
  using Align = TextTable::Align;
  std::string text;
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    text += fmt::format("{}{}, {}: {}\n\n", load > 0 ? "\n" : "", evaluation.scenario,
                        evaluation.loads[load], Counted(evaluation.episodes, "episode"));
    TextTable table({{"policy", Align::kLeft},
                     {"pod-hours", Align::kRight},
                     {"core-hours", Align::kRight},
                     {"violations", Align::kRight},
                     {"p95", Align::kRight},
                     {"changes", Align::kRight}},
                    2);
    for (int policy = 0; policy < static_cast<int>(evaluation.policies.size()); ++policy) {
      const ScalingMeans means = MeansOf(evaluation, load, policy);
      table.Row({evaluation.policies[policy], fmt::format("{:.2f}", means.pod_hours),
                 fmt::format("{:.3f}", means.core_hours),
                 fmt::format("{:.2f} %", 100 * means.violation_share),
                 fmt::format("{:.1f} ms", means.p95_ms), fmt::format("{:.1f}", means.changes)});
    }
    text += table.Text();
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
    for (int policy = 0; policy < static_cast<int>(evaluation.policies.size()); ++policy) {
      const ScalingMeans means = MeansOf(evaluation, load, policy);
      one["policies"].push_back({{"policy", evaluation.policies[policy]},
                                 {"pod_hours", means.pod_hours},
                                 {"core_hours", means.core_hours},
                                 {"violation_share", means.violation_share},
                                 {"p95_ms", means.p95_ms},
                                 {"changes", means.changes}});
    }
    if (const int baseline = BaselineOf(evaluation, load); baseline >= 0) {
      const int candidate = static_cast<int>(evaluation.policies.size()) - 1;
      const ScalingDifference d = CompareScaling(evaluation, load, candidate, baseline);
      one["comparison"] = {
          {"candidate", evaluation.policies[candidate]},
          {"baseline", evaluation.policies[baseline]},
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
      "load,policy,episode,requests,violations,failures,pod_hours,core_hours,changes,mean_ms,"
      "p95_ms,p99_ms\n";
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    for (int policy = 0; policy < static_cast<int>(evaluation.policies.size()); ++policy) {
      for (int i = 0; i < evaluation.episodes; ++i) {
        const ScalingFigures& one = evaluation.at(load, policy, i);
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", evaluation.loads[load],
                            evaluation.policies[policy], i, one.requests, one.violations,
                            one.failures, one.pod_hours, one.core_hours, one.changes, one.mean_ms,
                            one.p95_ms, one.p99_ms);
      }
    }
  }
  return text;
}

bool IsBetterEverywhere(const ScalingEvaluation& evaluation) {
  const int candidate = static_cast<int>(evaluation.policies.size()) - 1;
  for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
    const int baseline = BaselineOf(evaluation, load);
    if (baseline >= 0 && !CompareScaling(evaluation, load, candidate, baseline).better())
      return false;
  }
  return true;
}

}  // namespace

Result<ExitStatus> EvaluateScalingPolicies(const Arguments& arguments, const Session& session) {
  for (const char* other : {"starts", "select", "optimum", "report"}) {
    if (arguments.Has(other)) return Invalid("--{}: not for --task scaling", other);
  }
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments, 3));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", kScalingEpisodes, 1, kScalingEpisodesMax));
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(path));
  TRY_ASSIGN(const ScalingPolicies policies, ScalingPoliciesOf(arguments, path));
  for (const std::string& note : policies.notes) Say(session, "{}", note);
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(arguments, *scenario.load));
  ScalingEvaluation evaluation;
  {
    Progress progress("evaluate", session.verbosity);
    ThreadPool pool(threads);
    evaluation = EvaluateScaling(scenario, loads, policies.list, static_cast<int>(episodes), seed,
                                 &pool, [&](double fraction) { progress.Update(fraction, ""); });
  }
  switch (format) {
    case OutputFormat::kTable:
      TRY(Print(ScalingTable(evaluation)));
      break;
    case OutputFormat::kJson:
      TRY(Print(ScalingJson(evaluation)));
      break;
    case OutputFormat::kCsv:
      TRY(Print(ScalingCsv(evaluation)));
      break;
  }
  return IsBetterEverywhere(evaluation) ? ExitStatus::kDone : ExitStatus::kNotBetter;
}

}  // namespace rudderfish
