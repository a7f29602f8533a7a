// SPDX-License-Identifier: Apache-2.0
#include "cli/evaluate_scaling.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/log.h"
#include "base/text_table.h"
#include "base/version.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/scaling_options.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "evaluation/scaling_comparison.h"
#include "evaluation/scaling_summary.h"
#include "report/report_scaling.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

constexpr int64_t kScalingEpisodes = 20, kScalingEpisodesMax = 100'000;
constexpr std::string_view kGrounds[] = {"requests", "model"};  // As ScalingGround.

std::string ScalingTable(const ScalingSummary& summary) {
  using Align = TextTable::Align;
  std::string text;
  for (const ScalingLoadSummary& load : summary.loads) {
    text += fmt::format("{}{}, {}: {}{}\n\n", text.empty() ? "" : "\n", summary.scenario, load.load,
                        Counted(summary.episodes, "episode"),
                        load.is_replay() ? "; " + HeldOutText(load) : "");
    std::vector<TextTable::Column> columns = {
        {"policy", Align::kLeft},      {"pod-hours", Align::kRight},  {"core-hours", Align::kRight},
        {"node-hours", Align::kRight}, {"violations", Align::kRight}, {"of budget", Align::kRight},
        {"p95", Align::kRight},        {"changes", Align::kRight}};
    if (summary.draws_power()) columns.push_back({"energy", Align::kRight});
    TextTable table(columns, 2);
    for (const ScalingPolicySummary& means : load.policies) {
      std::vector<std::string> cells = {
          means.seeds > 1 ? fmt::format("{} ({} seeds)", means.name, means.seeds) : means.name,
          fmt::format("{:.2f}", means.pod_hours),
          fmt::format("{:.3f}", means.core_hours),
          fmt::format("{:.2f}", means.node_hours),
          fmt::format("{:.2f} %", 100 * means.violation_share),
          fmt::format("{:.0f} %", 100 * summary.BudgetOf(means)),
          std::isinf(means.p95_ms) ? "no answer" : fmt::format("{:.1f} ms", means.p95_ms),
          fmt::format("{:.1f}", means.changes)};
      if (summary.draws_power()) cells.push_back(fmt::format("{:.0f} Wh", means.energy_wh));
      table.Row(cells);
    }
    text += table.Text();
    const std::string verdict = ScalingVerdictText(load);
    if (!verdict.empty()) text += fmt::format("\n{}\n", verdict);
  }
  return text;
}

}  // namespace

Result<ExitStatus> EvaluateScalingPolicies(const Arguments& arguments, const Session& session) {
  for (const char* other : {"starts", "select", "optimum"}) {
    if (arguments.Has(other)) return Invalid("--{}: not for --task scale", other);
  }
  TRY_ASSIGN(
      const OutputFormat format,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kCsv}));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", kScalingEpisodes, 1, kScalingEpisodesMax));
  const std::optional<std::string> report = arguments.Text("report");
  if (report) TRY(CheckCanWrite(*report));
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(path));
  TRY_ASSIGN(const std::string text,
             arguments.RequiredText("policy", "what to evaluate, such as hold,hpa"));
  TRY_ASSIGN(const std::vector<ListedPolicy> listed, OfOption("policy", ParsePolicies(text)));
  TRY_ASSIGN(const ScalingPolicies policies, OfOption("policy", ScalingPoliciesOf(listed, path)));
  for (const std::string& note : policies.notes) Say(session, "{}", note);
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(arguments, *scenario.load));
  for (const std::string& note : UncalibratedNotes(policies, *scenario.load, loads))
    LogWarning("{}", note);
  int ground = 0;
  if (arguments.Has("on")) {
    TRY_ASSIGN(ground, OfOption("on", ChoiceOf(*arguments.Text("on"), kGrounds)));
  }
  const std::atomic<bool>& stop = StopOnSignals();
  ScalingEvaluation evaluation;
  ScalingSummary summary;
  {
    Progress progress("evaluate", session.verbosity);
    ThreadPool pool(threads);
    evaluation = EvaluateScaling(
        scenario, EpisodeUse::kEvaluation, loads, policies.list, static_cast<int>(episodes), seed,
        &pool, [&](double fraction) { progress.Update(fraction, ""); },
        static_cast<ScalingGround>(ground), 0, &stop);
    if (evaluation.episodes == 0) return StoppedTooEarly();
    summary = Summarize(evaluation, scenario);
    if (report || format == OutputFormat::kJson)
      RecordTimelines(scenario, loads, policies.list, &pool, &summary);
  }
  switch (format) {
    default:
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
  if (evaluation.episodes < episodes) return Stopped(session, evaluation.episodes, episodes);
  return summary.better_everywhere() ? ExitStatus::kDone : ExitStatus::kNotBetter;
}

}  // namespace rudderfish
