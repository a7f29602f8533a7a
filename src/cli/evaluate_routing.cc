// SPDX-License-Identifier: Apache-2.0
#include "cli/evaluate_routing.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "cli/policy_list.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "evaluation/routing_comparison.h"
#include "policy/registry.h"
#include "sim/routing_evaluation.h"

namespace rudderfish {
namespace {

constexpr int64_t kRoutingEpisodes = 60, kRoutingEpisodesMax = 100'000;

Result<std::vector<int>> VariantsOf(const Arguments& arguments, const RegionWorld& world) {
  std::vector<int> positions;
  std::vector<std::string_view> known;
  for (const RegionVariant& variant : world.variants) known.push_back(variant.name);
  if (!arguments.Has("variant")) {
    for (size_t i = 0; i < known.size(); ++i) positions.push_back(static_cast<int>(i));
    return positions;
  }
  TRY_ASSIGN(const std::vector<std::string> names, arguments.List("variant"));
  for (const std::string& name : names) {
    TRY_ASSIGN(const int position, OfOption("variant", ChoiceOf(name, known)));
    positions.push_back(position);
  }
  return positions;
}

Result<std::vector<NamedRoutingPolicy>> PoliciesOf(const std::string& text) {
  TRY_ASSIGN(const std::vector<NamedPolicySpec> listed, OfOption("policy", ParsePolicyList(text)));
  std::vector<NamedRoutingPolicy> policies;
  for (const NamedPolicySpec& one : listed) {
    TRY_ASSIGN(std::shared_ptr<const RoutingPolicy> policy,
               OfOption("policy", MakeRoutingPolicy(one.policy)));
    policies.push_back({one.name, std::move(policy)});
  }
  return policies;
}

}  // namespace

Result<ExitStatus> EvaluateRoutingPolicies(const Scenario& scenario, const Arguments& arguments,
                                           const Session& session) {
  for (const char* other : {"starts", "select", "optimum", "load", "on", "objective", "report"}) {
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
  TRY_ASSIGN(options.variants, VariantsOf(arguments, *scenario.regions));
  TRY_ASSIGN(const std::string list,
             arguments.RequiredText("policy", "what to evaluate, such as locality,lp"));
  TRY_ASSIGN(const std::vector<NamedRoutingPolicy> policies, PoliciesOf(list));
  if (policies.size() == 1) options.trials = 0;
  options.stop = &StopOnSignals();
  RoutingEvaluation evaluation;
  {
    Progress progress("evaluate", session.verbosity);
    options.progress = [&](double fraction) { progress.Update(fraction, ""); };
    ThreadPool pool(threads);
    evaluation = EvaluateRouting(scenario.name, scenario.regions, policies, options, &pool);
  }
  if (evaluation.episodes == 0) return StoppedTooEarly();
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
