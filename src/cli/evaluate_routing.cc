// SPDX-License-Identifier: Apache-2.0
#include "cli/evaluate_routing.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/routing_options.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "evaluation/routing_comparison.h"
#include "evaluation/routing_record.h"
#include "report/report_routing.h"
#include "sim/routing_evaluation.h"

namespace rudderfish {
namespace {

constexpr int64_t kRoutingEpisodes = 60, kRoutingEpisodesMax = 100'000;

}  // namespace

Result<ExitStatus> EvaluateRoutingPolicies(const Scenario& scenario, const Arguments& arguments,
                                           const Session& session) {
  for (const char* other : {"starts", "select", "optimum", "load", "on", "objective"}) {
    if (arguments.Has(other)) return Invalid("--{}: not for --task route", other);
  }
  TRY_ASSIGN(
      const OutputFormat format,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kCsv}));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  RoutingEvaluationOptions options;
  TRY_ASSIGN(options.seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", kRoutingEpisodes, 1, kRoutingEpisodesMax));
  options.episodes = static_cast<int>(episodes);
  TRY_ASSIGN(const std::shared_ptr<const RegionWorld> world, RegionsOf(arguments, scenario));
  TRY_ASSIGN(options.variants, VariantsOf(arguments, *world));
  TRY_ASSIGN(const std::string list,
             arguments.RequiredText("policy", "what to evaluate, such as locality,lp"));
  TRY_ASSIGN(const std::vector<ListedPolicy> listed, OfOption("policy", ParsePolicies(list)));
  TRY_ASSIGN(const RoutingPolicies policies,
             OfOption("policy", RoutingPoliciesOf(listed, arguments.operands()[0])));
  if (listed.size() == 1) options.trials = 0;
  if (arguments.Has("report")) TRY(CheckCanWrite(*arguments.Text("report")));
  options.stop = &StopOnSignals();
  RoutingEvaluation evaluation;
  std::optional<RoutingRecord> record;
  {
    Progress progress("evaluate", session.verbosity);
    options.progress = [&](double fraction) { progress.Update(fraction, ""); };
    ThreadPool pool(threads);
    evaluation = EvaluateRouting(scenario.name, world, policies.list, options, &pool);
    if (evaluation.episodes == 0) return StoppedTooEarly();
    if (arguments.Has("report"))
      record = RecordRouting(evaluation, world, policies.list, options.variants, &pool);
  }
  if (record) {
    TRY(WriteRoutingReport(
        evaluation, *record,
        {.command = session.command_line, .version = std::string(ProgramVersion())},
        *arguments.Text("report")));
    Say(session, "Wrote {}", *arguments.Text("report"));
  }
  switch (format) {
    default:
      TRY(Print(RoutingTable(evaluation)));
      break;
    case OutputFormat::kJson:
      TRY(Print(RoutingJson(evaluation)));
      break;
    case OutputFormat::kCsv:
      TRY(Print(RoutingCsv(evaluation)));
      break;
  }
  if (evaluation.episodes < episodes) return Stopped(session, evaluation.episodes, episodes);
  return BetterEverywhere(evaluation) ? ExitStatus::kDone : ExitStatus::kNotBetter;
}

}  // namespace rudderfish
