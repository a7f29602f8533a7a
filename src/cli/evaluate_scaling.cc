// SPDX-License-Identifier: Apache-2.0
#include "cli/evaluate_scaling.h"

#include <fmt/format.h>

#include <optional>

#include "cli/problem.h"
#include "cli/scaling_options.h"
#include "cli/terminal.h"
#include "cli/text_table.h"
#include "evaluation/report_scaling.h"
#include "evaluation/scaling_summary.h"

namespace rudderfish {
namespace {

constexpr int64_t kScalingEpisodes = 20, kScalingEpisodesMax = 100'000;

std::string ScalingTable(const ScalingSummary& summary) {
  using Align = TextTable::Align;
  std::string text;
  for (const ScalingLoadSummary& load : summary.loads) {
    text += fmt::format("{}{}, {}: {}\n\n", text.empty() ? "" : "\n", summary.scenario, load.load,
                        Counted(summary.episodes, "episode"));
    TextTable table({{"policy", Align::kLeft},
                     {"pod-hours", Align::kRight},
                     {"core-hours", Align::kRight},
                     {"violations", Align::kRight},
                     {"p95", Align::kRight},
                     {"changes", Align::kRight}},
                    2);
    for (const ScalingPolicySummary& means : load.policies) {
      table.Row({means.name, fmt::format("{:.2f}", means.pod_hours),
                 fmt::format("{:.3f}", means.core_hours),
                 fmt::format("{:.2f} %", 100 * means.violation_share),
                 fmt::format("{:.1f} ms", means.p95_ms), fmt::format("{:.1f}", means.changes)});
    }
    text += table.Text();
    const std::string verdict = ScalingVerdictText(load);
    if (!verdict.empty()) text += fmt::format("\n{}\n", verdict);
  }
  return text;
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

}  // namespace

Result<ExitStatus> EvaluateScalingPolicies(const Arguments& arguments, const Session& session) {
  for (const char* other : {"starts", "select", "optimum"}) {
    if (arguments.Has(other)) return Invalid("--{}: not for --task scaling", other);
  }
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments, 3));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", kScalingEpisodes, 1, kScalingEpisodesMax));
  const std::optional<std::string> report = arguments.Text("report");
  if (report) TRY(CheckCanWrite(*report));
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(path));
  TRY_ASSIGN(const ScalingPolicies policies, ScalingPoliciesOf(arguments, path));
  for (const std::string& note : policies.notes) Say(session, "{}", note);
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(arguments, *scenario.load));
  ScalingEvaluation evaluation;
  ScalingSummary summary;
  {
    Progress progress("evaluate", session.verbosity);
    ThreadPool pool(threads);
    evaluation = EvaluateScaling(scenario, loads, policies.list, static_cast<int>(episodes), seed,
                                 &pool, [&](double fraction) { progress.Update(fraction, ""); });
    summary = Summarize(evaluation, scenario);
    if (report || format == OutputFormat::kJson)
      RecordTimelines(scenario, loads, policies.list, &pool, &summary);
  }
  switch (format) {
    case OutputFormat::kTable:
      TRY(Print(ScalingTable(summary)));
      break;
    case OutputFormat::kJson:
      TRY(Print(ScalingSummaryText(summary)));
      break;
    case OutputFormat::kCsv:
      TRY(Print(ScalingCsv(evaluation)));
      break;
  }
  if (report) {
    TRY(WriteScalingReport(
        summary, {.command = session.command_line, .version = std::string(ProgramVersion())},
        *report));
    Say(session, "Wrote {}", *report);
  }
  return summary.better_everywhere() ? ExitStatus::kDone : ExitStatus::kNotBetter;
}

}  // namespace rudderfish
