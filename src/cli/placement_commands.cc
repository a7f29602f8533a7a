// SPDX-License-Identifier: Apache-2.0
#include "cli/placement_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "base/yaml.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "policy/registry.h"
#include "report/report_placing.h"

namespace rudderfish {
namespace {

constexpr int64_t kPlacementEpisodesDefault = 20;
constexpr int64_t kPlacementEpisodesMax = 100'000;

}  // namespace

Result<std::vector<PlacementGroup>> PlacementGroupsOf(const std::vector<ListedPolicy>& listed,
                                                      const PlacementTask& task) {
  std::vector<PlacementGroup> groups;
  for (const ListedPolicy& one : listed) {
    PlacementGroup group{.name = one.name, .shares_network = one.shares_network};
    for (const PolicySpec& member : one.members) {
      TRY_ASSIGN(PlacementPolicy policy, MakePlacementPolicy(member, task));
      group.members.push_back(std::move(policy));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

Result<std::optional<Objective>> ObjectiveOf(const Arguments& arguments) {
  const std::optional<std::string> text = arguments.Text("objective");
  if (!text) return std::optional<Objective>();
  TRY_ASSIGN(const Objective objective, ParseObjectiveText(*text, "--objective"));
  return std::optional(objective);
}

Result<void> CheckObjective(const Scenario& scenario) {
  const std::vector<NodeCosts>& costs = scenario.kind_costs;
  const auto any = [&](const auto& has) { return std::any_of(costs.begin(), costs.end(), has); };
  const auto counts = [&](ObjectiveTerm term) { return scenario.objective->WeightOf(term) > 0; };
  const auto refuse = [&](std::string_view term, std::string_view lacks) {
    return Invalid("{}: the objective counts {}, and {}: it would be 0 wherever pods go",
                   scenario.name, term, lacks);
  };
  if (counts(ObjectiveTerm::kCost) &&
      !any([](const NodeCosts& one) { return one.price_per_hour > 0; }))
    return refuse("cost", "no type of node has a `price_per_hour`");
  if (counts(ObjectiveTerm::kEnergy) &&
      !any([](const NodeCosts& one) { return one.MostWatts() > 0; }))
    return refuse("energy", "no type of node has a `power`");
  if (counts(ObjectiveTerm::kLatency) && scenario.arrivals->users == kNone)
    return refuse("latency", "`arrivals.users` does not say where the users are");
  if (counts(ObjectiveTerm::kCalls) && scenario.patterns.empty())
    return refuse("calls", "no `patterns` say who calls whom");
  return {};
}

Result<std::shared_ptr<const Scenario>> PlacementScenario(const std::filesystem::path& path,
                                                          const Arguments& arguments) {
  TRY_ASSIGN(Scenario scenario, LoadScenario(path));
  TRY_ASSIGN(const std::optional<Objective> objective, ObjectiveOf(arguments));
  if (!scenario.places_pods()) {
    if (objective)
      return Invalid("--objective: {} is no world in which pods come and go", path.string());
    return std::shared_ptr<const Scenario>();
  }
  if (objective) scenario.objective = objective;
  if (!scenario.objective) {
    return Invalid(
        "{}: says nothing of what placing pods is to make small; give it an `objective`, or name "
        "one by --objective",
        path.string());
  }
  TRY(CheckObjective(scenario));
  return std::make_shared<const Scenario>(std::move(scenario));
}

Result<ExitStatus> EvaluatePlacement(std::shared_ptr<const Scenario> scenario,
                                     const Arguments& arguments, const Session& session) {
  for (const std::string_view option : {"starts", "select"}) {
    if (arguments.Has(option)) return Invalid("--{}: only for --task move", option);
  }
  TRY_ASSIGN(
      const OutputFormat format,
      OutputFormatOf(arguments, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kCsv}));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  PlacementEvaluationOptions options;
  TRY_ASSIGN(options.seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", kPlacementEpisodesDefault, 1, kPlacementEpisodesMax));
  options.episodes = static_cast<int>(episodes);
  if (arguments.Has("optimum")) options.bound = PlacementBound::kComputed;
  TRY_ASSIGN(const std::string list,
             arguments.RequiredText("policy", "what to evaluate, such as greedy,learned=runs/a"));
  TRY_ASSIGN(const std::vector<ListedPolicy> listed, OfOption("policy", ParsePolicies(list)));
  const std::optional<std::string> report = arguments.Text("report");
  if (report) TRY(CheckCanWrite(*report));
  const PlacementTask task(*scenario->objective);
  TRY_ASSIGN(const std::vector<PlacementGroup> groups,
             OfOption("policy", PlacementGroupsOf(listed, task)));
  PlacementEvaluation evaluation;
  {
    Progress progress("evaluate", session.verbosity);
    options.progress = [&](double fraction, std::string_view text) {
      progress.Update(fraction, text);
    };
    options.stop = &StopOnSignals();
    ThreadPool pool(threads);
    TRY_ASSIGN(evaluation, EvaluatePlacements(std::move(scenario), groups, options, &pool));
  }
  switch (format) {
    default:
      TRY(Print(PlacementTable(evaluation)));
      break;
    case OutputFormat::kJson:
      TRY(Print(PlacementJson(evaluation)));
      break;
    case OutputFormat::kCsv:
      TRY(Print(PlacementCsv(evaluation)));
      break;
  }
  if (report) {
    TRY(WritePlacingReport(
        evaluation, OrderedJson::array(),
        {.command = session.command_line, .version = std::string(ProgramVersion())}, *report));
    Say(session, "Wrote {}", *report);
  }
  if (evaluation.episodes < options.episodes)
    return Stopped(session, evaluation.episodes, options.episodes);
  return evaluation.is_better() ? ExitStatus::kDone : ExitStatus::kNotBetter;
}

}  // namespace rudderfish
