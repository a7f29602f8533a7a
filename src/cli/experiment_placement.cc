// SPDX-License-Identifier: Apache-2.0
#include "cli/experiment_placement.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/version.h"
#include "cli/placement_commands.h"
#include "cli/policy_list.h"
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

namespace rudderfish {
namespace {

constexpr double kTrainingShare = 0.8;  // Of a cell's progress.

using Said = std::function<void(double, std::string_view)>;

// The scenario with the variant's changes and the objective of the cell, or its own.
Result<TrainScenario> OpenCell(const PlacementCell& cell) {
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

// With the networks that the experiment trains in the place of what stands for them.
Result<std::vector<ListedPolicy>> PoliciesOf(const PlacementCell& cell) {
  std::vector<NamedPolicySpec> policies = cell.experiment->policies;
  for (NamedPolicySpec& one : policies) {
    if (const auto recipe = cell.experiment->placement->RecipeFor(one.policy))
      one.policy.SetPath(cell.training(*recipe).string());
  }
  return WithSeeds(policies);
}

// Networks by one recipe, from all seeds. Presets take as many steps as their systems did.
Result<void> Train(const PlacementCell& cell, const TrainScenario& scenario,
                   std::string_view recipe, const Session& session, int threads,
                   const Said& progress) {
  const PlacementExperiment& placement = *cell.experiment->placement;
  TrainJob job{.scenarios = {scenario}, .folder = cell.training(recipe)};
  if (const Result<PlacementPreset> preset = PlacementPresetNamed(recipe)) {
    UsePreset(*preset, &job.options);
  } else {
    UsePlacementDefaults(&job.options);
    TRY_ASSIGN(job.options.algorithm, AlgorithmNamed(recipe));
    const bool is_evolution = job.options.algorithm == Algorithm::kEvolution;
    if (is_evolution) UseEvolutionDefaults(&job.options);
    job.options.steps = is_evolution ? placement.es_steps : placement.train_steps;
  }
  job.options.threads = threads;
  job.provenance = {.version = std::string(ProgramVersion()), .command = session.command_line};
  job.resume = HasRun(job.folder) ? Resume::kYes : Resume::kNo;
  if (job.resume == Resume::kNo) TRY(MakeDirectories(job.folder.parent_path()));
  TRY(TrainSeeds(job, placement.train_seeds, nullptr, [&](const TrainProgress& report) {
    progress((report.seed_number - 1 + report.fraction) / report.seed_count,
             fmt::format("{}, seed {} of {}", recipe, report.seed_number, report.seed_count));
  }));
  return {};
}

Result<void> WritePlacementCell(const PlacementCell& cell, const PlacementEvaluation& evaluation,
                                const std::filesystem::path& folder, const Session& session) {
  const std::vector<NamedObjective>& named = cell.experiment->placement->objectives;
  const std::string stem = cell.scenario.stem().string();
  const PlacementPlace place{
      .scenario = stem,
      .objective = named.empty() ? evaluation.objective : named[cell.cell.objective].name,
      .variant = cell.variant().name};
  const OrderedJson pairs = PairsOf(OutcomesOf(evaluation), JudgeRule{},
                                    {{"scenario", stem},
                                     {"objective", std::string(place.objective)},
                                     {"variant", std::string(place.variant)}});
  const OrderedJson quotes =
      QuotesOf(cell.experiment->placement->published, place, cell.cell.name, evaluation);
  TRY(WriteFileAtomically(folder / "episodes.csv", PlacementCsv(evaluation)));
  TRY(WriteFileAtomically(folder / "evaluation.json", PlacementJson(evaluation)));
  if (!cell.experiment->placement->published.empty())
    TRY(WriteFileAtomically(folder / "published.json", quotes.dump(1) + "\n"));
  TRY(WritePlacingReport(
      evaluation, quotes,
      {.command = session.command_line, .version = std::string(ProgramVersion())},
      folder / "report.html"));
  return WriteFileAtomically(folder / "comparisons.json", pairs.dump(1) + "\n");
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

Result<void> CheckPlacementCell(const PlacementCell& cell) {
  TRY_ASSIGN(const TrainScenario opened, OpenCell(cell));
  for (const NamedPolicySpec& one : cell.experiment->policies) {
    if (const auto recipe = cell.experiment->placement->RecipeFor(one.policy))
      TRY(CheckTrained(one.policy, *recipe, *opened.scenario));
  }
  TRY_ASSIGN(const std::vector<ListedPolicy> given, WithSeeds(cell.experiment->Given()));
  TRY_ASSIGN(const std::vector<PlacementGroup> groups,
             PlacementGroupsOf(given, PlacementTask(*opened.scenario->objective)));
  return CheckPresetsSuit(*opened.scenario, groups);
}

Result<void> RunPlacementCell(const PlacementCell& cell, const std::filesystem::path& folder,
                              const Session& session, ThreadPool* pool, const Said& progress) {
  TRY_ASSIGN(const TrainScenario opened, OpenCell(cell));
  const Experiment& experiment = *cell.experiment;
  std::set<std::string_view> recipes;
  for (const NamedPolicySpec& one : experiment.policies) {
    if (const auto recipe = experiment.placement->RecipeFor(one.policy)) recipes.insert(*recipe);
  }
  double done = 0;
  for (const std::string_view recipe : recipes) {
    const double share = kTrainingShare / static_cast<double>(recipes.size());
    TRY(Train(cell, opened, recipe, session, pool->size(),
              [&](double fraction, std::string_view text) {
                progress(done + share * fraction, fmt::format("training, {}", text));
              }));
    done += share;
  }
  TRY_ASSIGN(const std::vector<ListedPolicy> policies, PoliciesOf(cell));
  TRY_ASSIGN(const std::vector<PlacementGroup> groups,
             PlacementGroupsOf(policies, PlacementTask(*opened.scenario->objective)));
  TRY_ASSIGN(const PlacementEvaluation evaluation,
             EvaluatePlacements(opened.scenario, groups,
                                {.seed = experiment.seed,
                                 .episodes = experiment.episodes,
                                 .progress =
                                     [&](double fraction, std::string_view text) {
                                       progress(done + (1 - done) * fraction, text);
                                     }},
                                pool));
  return WritePlacementCell(cell, evaluation, folder, session);
}

}  // namespace rudderfish
