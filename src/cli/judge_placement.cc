// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cli/judged_worlds.h"
#include "cli/placement_commands.h"
#include "evaluation/pairs.h"
#include "evaluation/placement_comparison.h"
#include "evaluation/published.h"
#include "learn/trainer.h"
#include "policy/policy_table.h"
#include "policy/registry.h"
#include "report/report_placing.h"
#include "scenario/arrivals.h"
#include "sim/lifecycle.h"
#include "task/placement_preset.h"

// Judging the placement of pods. Within an experiment, networks may be trained for each cell: one
// scenario in one variant for one objective. Training is kept, and resumed after an interruption.

namespace rudderfish {
namespace {

constexpr int kPlacementEpisodes = 20;
constexpr double kTrainingShare = 0.8;  // Of a cell's progress.

// `quotes`: what earlier works have published beside it.
Judgement JudgementOf(PlacementEvaluation evaluation, int asked, OrderedJson quotes) {
  const auto judged = std::make_shared<const PlacementEvaluation>(std::move(evaluation));
  return {.episodes = judged->episodes,
          .asked = asked,
          .is_better = judged->is_better(),
          .table = [judged] { return PlacementTable(*judged); },
          .json = [judged] { return PlacementJson(*judged); },
          .csv = [judged] { return PlacementCsv(*judged); },
          .write_report =
              [judged, quotes = std::move(quotes)](const ReportOptions& options,
                                                   const std::filesystem::path& path) {
                return WritePlacingReport(*judged, quotes, options, path);
              }};
}

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

std::filesystem::path PlacementRunOf(const PlannedCell& cell, std::string_view recipe) {
  return cell.folder / "trained" / cell.cell.name / recipe;
}

// The scenario with the variant's changes and the objective of the cell, or its own.
Result<TrainScenario> OpenPlacementCell(const PlannedCell& cell) {
  std::optional<Objective> objective;
  const std::vector<NamedObjective>& named = cell.experiment->placement->objectives;
  if (!named.empty()) objective = named[cell.cell.objective].objective;
  TRY_ASSIGN(TrainScenario opened,
             TrainScenario::Open(cell.scenario, objective, cell.variant().changes));
  if (!opened.scenario->places_pods())
    return Invalid("{}: is no world in which pods come and go", cell.scenario.string());
  if (!opened.scenario->objective) {
    return Invalid(
        "{}: says nothing of what placing pods is to make small; give it an `objective`, or the "
        "experiment `objectives`",
        cell.scenario.string());
  }
  TRY(CheckObjective(*opened.scenario));
  return opened;
}

// Networks by one recipe, from all seeds. Presets take as many steps as their systems did.
Result<void> Train(const PlannedCell& cell, const TrainScenario& scenario, std::string_view recipe,
                   const CellRun& run, const ReportProgress& progress) {
  const PlacementExperiment& placement = *cell.experiment->placement;
  TrainJob job{.scenarios = {scenario}, .folder = PlacementRunOf(cell, recipe)};
  if (const Result<PlacementPreset> preset = PlacementPresetNamed(recipe)) {
    UsePreset(*preset, &job.options);
  } else {
    UsePlacementDefaults(&job.options);
    TRY_ASSIGN(job.options.algorithm, AlgorithmNamed(recipe));
    const bool is_evolution = job.options.algorithm == Algorithm::kEvolution;
    if (is_evolution) UseEvolutionDefaults(&job.options);
    job.options.steps = is_evolution ? placement.es_steps : placement.train_steps;
  }
  return TrainWithin(std::move(job), placement.train_seeds, run, progress);
}

// That what a preset looks at is there, and that what a network is mixed with is a mix.
Result<void> CheckTrained(const PolicySpec& policy, std::string_view recipe,
                          const Scenario& scenario) {
  if (const Result<PlacementPreset> preset = PlacementPresetNamed(recipe))
    TRY(CheckPresetSuits(*preset, scenario));
  if (policy.name.empty()) return {};
  PolicySpec mix = policy;
  std::erase_if(mix.options, [](const auto& option) { return option.first == kRunOption; });
  TRY(MakePlacementPolicy(mix, PlacementTask(*scenario.objective)));
  return {};
}

}  // namespace

Result<Judgement> EvaluatePlacement(const EvaluationRequest& request) {
  TRY_ASSIGN(const std::shared_ptr<const Scenario> scenario,
             WithObjective(request.scenario, request.path, request.arguments));
  PlacementEvaluationOptions options{
      .seed = request.seed, .progress = request.progress, .stop = request.stop};
  TRY_ASSIGN(options.episodes, EpisodesOf(request.arguments, kPlacementEpisodes));
  if (request.arguments.Has("optimum")) options.bound = PlacementBound::kComputed;
  TRY_ASSIGN(
      const std::vector<PlacementGroup> groups,
      OfOption("policy", PlacementGroupsOf(request.policies, PlacementTask(*scenario->objective))));
  TRY_ASSIGN(PlacementEvaluation evaluation,
             EvaluatePlacements(scenario, groups, options, request.pool));
  return JudgementOf(std::move(evaluation), options.episodes, OrderedJson::array());
}

Result<void> CheckPlacementCell(const PlannedCell& cell) {
  TRY_ASSIGN(const TrainScenario opened, OpenPlacementCell(cell));
  for (const NamedPolicySpec& one : cell.experiment->policies) {
    if (const auto recipe = cell.experiment->placement->RecipeFor(one.policy))
      TRY(CheckTrained(one.policy, *recipe, *opened.scenario));
  }
  TRY_ASSIGN(const std::vector<ListedPolicy> given, WithSeeds(cell.experiment->Given()));
  TRY_ASSIGN(const std::vector<PlacementGroup> groups,
             PlacementGroupsOf(given, PlacementTask(*opened.scenario->objective)));
  return CheckPresetsSuit(*opened.scenario, groups);
}

Result<CellResult> RunPlacementCell(const PlannedCell& cell, const CellRun& run) {
  TRY_ASSIGN(const TrainScenario opened, OpenPlacementCell(cell));
  const Experiment& experiment = *cell.experiment;
  std::set<std::string_view> recipes;
  for (const NamedPolicySpec& one : experiment.policies) {
    if (const auto recipe = experiment.placement->RecipeFor(one.policy)) recipes.insert(*recipe);
  }
  double done = 0;
  for (const std::string_view recipe : recipes) {
    const double share = kTrainingShare / static_cast<double>(recipes.size());
    TRY(Train(cell, opened, recipe, run,
              PartOf(run.progress, done, share, fmt::format("training, {}", recipe))));
    done += share;
  }
  TRY_ASSIGN(const std::vector<ListedPolicy> policies,
             PoliciesOf(experiment, [&](const PolicySpec& policy) {
               const auto recipe = experiment.placement->RecipeFor(policy);
               return recipe ? std::optional(PlacementRunOf(cell, *recipe)) : std::nullopt;
             }));
  TRY_ASSIGN(const std::vector<PlacementGroup> groups,
             PlacementGroupsOf(policies, PlacementTask(*opened.scenario->objective)));
  TRY_ASSIGN(PlacementEvaluation evaluation,
             EvaluatePlacements(opened.scenario, groups,
                                {.seed = experiment.seed,
                                 .episodes = experiment.episodes,
                                 .progress = PartOf(run.progress, done, 1 - done, "evaluating")},
                                run.pool));
  const std::vector<NamedObjective>& named = experiment.placement->objectives;
  const std::string stem = cell.scenario.stem().string();
  const PlacementPlace place{
      .scenario = stem,
      .objective = named.empty() ? evaluation.objective : named[cell.cell.objective].name,
      .variant = cell.variant().name};
  const OrderedJson pairs = PairsOf(OutcomesOf(evaluation), JudgeRule{},
                                    {{"scenario", stem},
                                     {"objective", std::string(place.objective)},
                                     {"variant", std::string(place.variant)}});
  CellResult result{.pairs = pairs.dump(1) + "\n"};
  const std::vector<PublishedWork>& published = experiment.placement->published;
  OrderedJson quotes = QuotesOf(published, place, cell.cell.name, evaluation);
  if (!published.empty()) result.others.emplace_back(kPublishedFile, quotes.dump(1) + "\n");
  result.judgement = JudgementOf(std::move(evaluation), experiment.episodes, std::move(quotes));
  return result;
}

CellColumns PlacementColumns(const PlannedCell& cell) {
  const std::vector<NamedObjective>& named = cell.experiment->placement->objectives;
  CellColumns columns;
  if (!named.empty()) columns.emplace_back("objective_name", named[cell.cell.objective].name);
  columns.emplace_back("variant", cell.variant().name);
  return columns;
}

}  // namespace rudderfish
