// SPDX-License-Identifier: Apache-2.0
#include "cli/judged_world.h"

#include <fmt/format.h>

#include <array>

#include "base/files.h"
#include "base/version.h"
#include "cli/judged_worlds.h"
#include "cli/task_options.h"

namespace rudderfish {
namespace {

constexpr int64_t kJudgedEpisodesMax = 1'000'000;

}  // namespace

const JudgedWorld& JudgedWorldOf(TaskKind task) {
  static constexpr auto kWorlds = std::to_array<JudgedWorld>({{.policies = "greedy,learned=runs/a",
                                                               .policy = "greedy or runs/a",
                                                               .evaluate = EvaluateMoves,
                                                               .simulate = SimulateMoves,
                                                               .check_cell = CheckMovesCell,
                                                               .run_cell = RunMovesCell,
                                                               .columns = nullptr},
                                                              {.policies = "greedy,learned=runs/a",
                                                               .policy = "greedy or runs/a",
                                                               .evaluate = EvaluatePlacement,
                                                               .simulate = SimulatePlacement,
                                                               .check_cell = CheckPlacementCell,
                                                               .run_cell = RunPlacementCell,
                                                               .columns = PlacementColumns},
                                                              {.policies = "hold,hpa",
                                                               .policy = "hpa or runs/a",
                                                               .evaluate = EvaluateScalingPolicies,
                                                               .simulate = SimulateScaling,
                                                               .check_cell = CheckScalingCell,
                                                               .run_cell = RunScalingCell,
                                                               .columns = nullptr},
                                                              {.policies = "locality,lp",
                                                               .policy = "lp or runs/a",
                                                               .evaluate = EvaluateRoutingPolicies,
                                                               .simulate = SimulateRouting,
                                                               .check_cell = CheckRoutingCell,
                                                               .run_cell = RunRoutingCell,
                                                               .columns = RoutingColumns}});
  static_assert(kWorlds.size() == std::size(kTaskNames));
  return kWorlds[static_cast<size_t>(task)];
}

Result<void> CheckOptionsSuit(const Arguments& arguments, TaskKind task) {
  using enum TaskKind;
  static const TaskOption kOptions[] = {
      {"starts", {kMove}},   {"select", {kMove}},  {"optimum", {kMove, kPlace}},
      {"load", {kScale}},    {"on", {kScale}},     {"objective", {kPlace}},
      {"regions", {kRoute}}, {"variant", {kRoute}}};
  return CheckOptionsSuit(arguments, task, kOptions);
}

Result<int> EpisodesOf(const Arguments& arguments, int by_default) {
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", by_default, 1, kJudgedEpisodesMax));
  return static_cast<int>(episodes);
}

ReportProgress PartOf(const ReportProgress& whole, double from, double share, std::string what) {
  return [whole, from, share, what = std::move(what)](double fraction, std::string_view text) {
    whole(from + share * fraction, text.empty() ? what : fmt::format("{}, {}", what, text));
  };
}

Result<std::vector<ListedPolicy>> PoliciesOf(const Experiment& experiment, const FoundFile& found) {
  std::vector<NamedPolicySpec> policies = experiment.policies;
  for (NamedPolicySpec& one : policies) {
    if (const auto file = found(one.policy)) one.policy.SetPath(file->string());
  }
  return WithSeeds(policies);
}

Result<void> TrainWithin(TrainJob job, int seeds, const CellRun& run,
                         const ReportProgress& progress) {
  job.options.threads = run.pool->size();
  job.provenance = {.version = std::string(ProgramVersion()), .command = run.session.command_line};
  job.resume = HasRun(job.folder) ? Resume::kYes : Resume::kNo;
  if (job.resume == Resume::kNo) TRY(MakeDirectories(job.folder.parent_path()));
  TRY(TrainSeeds(job, seeds, nullptr, [&](const TrainProgress& report) {
    progress((report.seed_number - 1 + report.fraction) / report.seed_count,
             fmt::format("seed {} of {}", report.seed_number, report.seed_count));
  }));
  return {};
}

}  // namespace rudderfish
