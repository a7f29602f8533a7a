// SPDX-License-Identifier: Apache-2.0
#include "cli/evaluate_scaling.h"

#include <fmt/format.h>

#include "cli/scaling_options.h"
#include "cli/terminal.h"
#include "evaluation/scaling_comparison.h"

namespace rudderfish {
namespace {

constexpr int64_t kScalingEpisodes = 20, kScalingEpisodesMax = 100'000;
constexpr std::string_view kGrounds[] = {"requests", "model"};  // As ScalingGround.
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
  TRY_ASSIGN(const std::string text,
             arguments.RequiredText("policy", "what to evaluate, such as hold,hpa"));
  TRY_ASSIGN(const std::vector<std::string> items, OfOption("policy", SplitList(text, ',')));
  TRY_ASSIGN(const ScalingPolicies policies, OfOption("policy", ScalingPoliciesOf(items, path)));
  for (const std::string& note : policies.notes) Say(session, "{}", note);
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(arguments, *scenario.load));
  int ground = 0;
  if (arguments.Has("on")) {
    TRY_ASSIGN(ground, OfOption("on", ChoiceOf(*arguments.Text("on"), kGrounds)));
  }
  ScalingEvaluation evaluation;
  {
    Progress progress("evaluate", session.verbosity);
    ThreadPool pool(threads);
    evaluation = EvaluateScaling(
        scenario, loads, policies.list, static_cast<int>(episodes), seed, &pool,
        [&](double fraction) { progress.Update(fraction, ""); },
        static_cast<ScalingGround>(ground));
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
