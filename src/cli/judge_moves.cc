// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/judged_worlds.h"
#include "cli/stop_signals.h"
#include "evaluation/comparison.h"
#include "evaluation/evaluation.h"
#include "evaluation/pairs.h"
#include "sim/held_out.h"
#include "sim/problem.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

constexpr int kMovesEpisodes = 200;

Result<std::vector<StartState>> StartsOf(const EvaluationRequest& request, const Problem& problem) {
  const Arguments& arguments = request.arguments;
  TRY(arguments.Exclude("starts", "episodes"));
  TRY(arguments.Require("select", "starts"));
  if (arguments.Has("starts")) return SelectedStarts(arguments, *problem.scenario);
  TRY_ASSIGN(const int episodes, EpisodesOf(arguments, kMovesEpisodes));
  return DrawStarts(World(problem.scenario), request.seed, episodes);
}

Result<std::vector<PolicyGroup>> MoveGroupsOf(const std::vector<ListedPolicy>& listed,
                                              const Task& task) {
  std::vector<PolicyGroup> groups;
  for (const ListedPolicy& one : listed) {
    TRY_ASSIGN(PolicyGroup group, MakePolicyGroup(one, task));
    groups.push_back(std::move(group));
  }
  return groups;
}

struct JudgedMoves {
  Evaluation evaluation;
  Comparison comparison;
  std::vector<StartState> starts;
  std::vector<LearningCurve> curves;
};

Judgement JudgementOf(std::shared_ptr<const JudgedMoves> judged) {
  const Comparison& comparison = judged->comparison;
  return {.episodes = judged->evaluation.start_count(),
          .asked = static_cast<int>(judged->starts.size()),
          .is_better = !comparison.verdict || comparison.better(),
          .table = [judged] { return ComparisonTable(judged->evaluation, judged->comparison); },
          .json = [judged] { return EvaluationJson(judged->evaluation, judged->comparison); },
          .csv = [judged] { return EpisodesCsv(judged->evaluation); },
          .write_report =
              [judged](ReportOptions options, const std::filesystem::path& path) {
                options.curves = judged->curves;
                return WriteReport(judged->evaluation, judged->comparison, judged->starts, options,
                                   path);
              }};
}

Result<Problem> OpenMovesCell(const PlannedCell& cell) {
  TRY_ASSIGN(Scenario scenario, LoadScenario(cell.scenario, cell.variant().changes));
  TRY(CheckMovesPods(scenario, cell.scenario.string()));
  return Problem::Of(std::make_shared<const Scenario>(std::move(scenario)));
}

}  // namespace

Result<Judgement> EvaluateMoves(const EvaluationRequest& request) {
  TRY_ASSIGN(const Problem problem,
             Problem::Of(std::make_shared<const Scenario>(request.scenario)));
  TRY_ASSIGN(const std::vector<PolicyGroup> groups,
             OfOption("policy", MoveGroupsOf(request.policies, *problem.task)));
  auto judged = std::make_shared<JudgedMoves>();
  TRY_ASSIGN(judged->starts, StartsOf(request, problem));
  if (request.has_report) {
    TRY_ASSIGN(judged->curves, LearningCurvesOf(request.policies));
  }
  EvaluationOptions options{.scenario = problem.scenario->name,
                            .seed = request.seed,
                            .progress = request.progress,
                            .stop = request.stop};
  if (request.arguments.Has("optimum")) options.optimum = ExactOptimum(problem.law, *problem.task);
  judged->evaluation =
      Evaluate(problem.law, *problem.task, judged->starts, groups, options, request.pool);
  if (judged->evaluation.start_count() == 0) return StoppedTooEarly();
  judged->comparison = Compare(judged->evaluation);
  return JudgementOf(std::move(judged));
}

Result<void> CheckMovesCell(const PlannedCell& cell) {
  TRY_ASSIGN(const Problem problem, OpenMovesCell(cell));
  TRY_ASSIGN(const std::vector<ListedPolicy> given, WithSeeds(cell.experiment->Given()));
  TRY(MoveGroupsOf(given, *problem.task));
  return {};
}

Result<CellResult> RunMovesCell(const PlannedCell& cell, const CellRun& run) {
  const Experiment& experiment = *cell.experiment;
  TRY_ASSIGN(const Problem problem, OpenMovesCell(cell));
  TRY_ASSIGN(const std::vector<ListedPolicy> policies, WithSeeds(experiment.policies));
  TRY_ASSIGN(const std::vector<PolicyGroup> groups, MoveGroupsOf(policies, *problem.task));
  auto judged = std::make_shared<JudgedMoves>();
  TRY_ASSIGN(judged->starts,
             DrawStarts(World(problem.scenario), experiment.seed, experiment.episodes));
  judged->evaluation = Evaluate(
      problem.law, *problem.task, judged->starts, groups,
      {.scenario = problem.scenario->name, .seed = experiment.seed, .progress = run.progress},
      run.pool);
  judged->comparison = Compare(judged->evaluation);
  const OrderedJson pairs =
      PairsOf(OutcomesOf(judged->evaluation), JudgeRule{},
              {{"scenario", cell.scenario.stem().string()}, {"variant", cell.variant().name}});
  return CellResult{.judgement = JudgementOf(std::move(judged)), .pairs = pairs.dump(1) + "\n"};
}

}  // namespace rudderfish
