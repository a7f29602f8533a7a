// SPDX-License-Identifier: Apache-2.0
#include "cli/trained_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "cli/routing_options.h"
#include "cli/scaling_options.h"
#include "cli/task_options.h"
#include "cli/terminal.h"
#include "policy/neural_routing.h"
#include "policy/neural_scaling.h"
#include "scenario/task_of.h"

namespace rudderfish {
namespace {

constexpr int64_t kValidationEpisodesMin = 4, kValidationEpisodesMax = 100'000;

// "--NAME A,B ", or nothing: the default is all of them.
std::string Chosen(std::string_view name, const std::vector<std::string>& values) {
  if (values.empty()) return "";
  return fmt::format("--{} {} ", name, ShellWord(fmt::format("{}", fmt::join(values, ","))));
}

Result<void> SetValidationEpisodes(const Arguments& arguments, TrainOptions* options) {
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", options->validation_starts, kValidationEpisodesMin,
                               kValidationEpisodesMax));
  options->validation_starts = static_cast<int>(episodes);
  return {};
}

// --task of a scenario of regions names the tiers to learn: one, or both.
Result<RoutingTiers> TiersOf(const Arguments& arguments) {
  return ParseRoutingTiers(arguments.Text("task").value_or("route,scale"));
}

Result<void> PrepareMoves(const Arguments&, const Scenario&, TrainOptions*) { return {}; }

std::string CompareMoves(const Arguments&, const TrainOptions&) {
  return "--policy stay,kube-default,greedy";
}

Result<void> PreparePlacement(const Arguments&, const Scenario&, TrainOptions* options) {
  UsePlacementDefaults(options);
  return {};
}

std::string ComparePlacement(const Arguments& arguments, const TrainOptions&) {
  std::vector<std::string> objective;
  if (arguments.Has("objective")) objective.push_back(*arguments.Text("objective"));
  return Chosen("objective", objective) +
         "--policy least-allocated,most-allocated,round-robin,kube-default,greedy";
}

// The best of what `calibrate` wrote, if that was for the same loads and limit.
Result<void> SetRival(const Arguments& arguments, TrainOptions* options) {
  TRY(arguments.Exclude("hpa", "episodes"));
  const std::string path = *arguments.Text("hpa");
  TRY_ASSIGN(const Calibration calibration, ReadCalibration(path, arguments.operands()[0]));
  ScalingTraining& scaling = *options->scaling;
  if (calibration.violations_max != scaling.violations_max) {
    return Invalid("--hpa: {} was calibrated for violations of {:.4g} %, not {:.4g} %", path,
                   100 * calibration.violations_max, 100 * scaling.violations_max);
  }
  if (scaling.loads.empty()) scaling.loads = calibration.loads;
  if (calibration.loads != scaling.loads) {
    return Invalid("--hpa: {} was calibrated for the loads {}, not {}", path,
                   fmt::join(calibration.loads, ","), fmt::join(scaling.loads, ","));
  }
  scaling.rival = RivalOf(std::span(&calibration, 1));
  return {};
}

Result<void> PrepareScaling(const Arguments& arguments, const Scenario& scenario,
                            TrainOptions* options) {
  UseScalingDefaults(options);
  options->scaling.emplace();
  if (arguments.Has("violations") && scenario.load != nullptr && scenario.load->objective.late) {
    return Invalid(
        "--violations: the scenario already weights late requests in `load.objective`, so no limit "
        "applies; remove that weight or drop --violations");
  }
  TRY_ASSIGN(options->scaling->violations_max, ViolationsOf(arguments, scenario));
  TRY(SetValidationEpisodes(arguments, options));
  if (arguments.Has("load")) {
    TRY_ASSIGN(options->scaling->loads, arguments.List("load"));
  }
  if (!arguments.Has("hpa")) return {};
  TRY(SetRival(arguments, options));
  const std::string unkept =
      UnkeptLimitText(*options->scaling->rival, options->scaling->violations_max);
  if (!unkept.empty() && !scenario.load->objective.late) LogWarning("{}", unkept);
  return {};
}

std::string CompareScaling(const Arguments&, const TrainOptions& learned) {
  return "--task scale " + Chosen("load", learned.scaling->loads) + "--policy hpa:cpu=60";
}

Result<void> PrepareRouting(const Arguments& arguments, const Scenario& scenario,
                            TrainOptions* options) {
  UseRoutingDefaults(options);
  TRY_ASSIGN(options->routing, RoutingTrainingOf(arguments, scenario));
  TRY_ASSIGN(options->routing->tiers, TiersOf(arguments));
  return SetValidationEpisodes(arguments, options);
}

std::string CompareRouting(const Arguments& arguments, const TrainOptions& learned) {
  return Chosen("regions", learned.routing->regions) +
         Chosen("variant", learned.routing->variants) + "--policy " +
         ShellWord(arguments.Text("rule").value_or("locality,lp,mpc"));
}

}  // namespace

const TrainedWorld& TrainedWorldOf(TaskKind task) {
  static constexpr auto kWorlds = std::to_array<TrainedWorld>({{.has_objective = false,
                                                                .prepare = PrepareMoves,
                                                                .verdict = nullptr,
                                                                .comparison = CompareMoves},
                                                               {.has_objective = true,
                                                                .prepare = PreparePlacement,
                                                                .verdict = nullptr,
                                                                .comparison = ComparePlacement},
                                                               {.has_objective = true,
                                                                .prepare = PrepareScaling,
                                                                .verdict = VerdictOfRun,
                                                                .comparison = CompareScaling},
                                                               {.has_objective = true,
                                                                .prepare = PrepareRouting,
                                                                .verdict = RoutingVerdictOf,
                                                                .comparison = CompareRouting}});
  static_assert(kWorlds.size() == std::size(kTaskNames));
  return kWorlds[static_cast<size_t>(task)];
}

TaskKind TaskOf(const TrainJob& job) {
  if (job.options.routing) return TaskKind::kRoute;
  if (job.options.scaling) return TaskKind::kScale;
  return job.scenarios[0].scenario->places_pods() ? TaskKind::kPlace : TaskKind::kMove;
}

Result<void> PrepareTraining(const Arguments& arguments, const Scenario& scenario,
                             TrainOptions* options) {
  using enum TaskKind;
  static const TaskOption kOptions[] = {{"load", {kScale}},
                                        {"violations", {kScale}},
                                        {"hpa", {kScale}},
                                        {"episodes", {kScale, kRoute}},
                                        {"variant", {kRoute}},
                                        {"regions", {kRoute}},
                                        {"rule", {kRoute}},
                                        {"encoder", {kMove, kScale}},
                                        {"preset", {kMove, kPlace, kScale}},
                                        {"from", {kMove, kPlace, kScale}}};
  if (scenario.regions != nullptr) {
    // --task names tiers there: its words would say that `scale` requires `scale`.
    const std::string_view unsuitable = UnsuitableOption(arguments, kRoute, kOptions);
    if (!unsuitable.empty()) return Invalid("--{}: not for a scenario with `regions`", unsuitable);
  }
  const bool names_tiers = scenario.regions != nullptr && TiersOf(arguments).has_value();
  TRY_ASSIGN(const TaskKind task, TaskFor(names_tiers ? std::nullopt : arguments.Text("task"),
                                          scenario, arguments.operands()[0]));
  TRY(CheckOptionsSuit(arguments, task, kOptions));
  return TrainedWorldOf(task).prepare(arguments, scenario, options);
}

}  // namespace rudderfish
