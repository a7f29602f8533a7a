// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "base/files.h"
#include "base/thread_pool.h"
#include "cli/calibrated_world.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/stop_signals.h"
#include "cli/task_options.h"
#include "cli/terminal.h"
#include "scenario/task_of.h"

namespace rudderfish {
namespace {

using SearchSettings = Result<CalibrationResult> (*)(const CalibrationRequest& request);

// nullptr: its policies have no settings to search.
constexpr SearchSettings kSearches[] = {nullptr, nullptr, CalibrateScalingPolicy,
                                        CalibrateRoutingPolicy};
static_assert(std::size(kSearches) == std::size(kTaskNames));

// --task; else route in a scenario of regions, and scale in any other.
Result<TaskKind> CalibratedTask(const Arguments& arguments, const Scenario& scenario,
                                const std::string& path) {
  const std::optional<std::string> named = arguments.Text("task");
  if (!named) return scenario.regions != nullptr ? TaskKind::kRoute : TaskKind::kScale;
  return TaskFor(named, scenario, path);
}

Result<ExitStatus> RunCalibrate(const Arguments& arguments, const Session& session) {
  using enum TaskKind;
  static const TaskOption kOptions[] = {{"variant", {kRoute}},
                                        {"regions", {kRoute}},
                                        {"settings", {kRoute}},
                                        {"load", {kScale}},
                                        {"violations", {kScale}}};
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(const Scenario scenario, LoadScenario(path));
  TRY_ASSIGN(const TaskKind task, CalibratedTask(arguments, scenario, path));
  const SearchSettings search = kSearches[static_cast<size_t>(task)];
  if (search == nullptr)
    return Invalid("--task {}: only policies that scale or route are calibrated", TaskName(task));
  TRY(CheckOptionsSuit(arguments, task, kOptions));
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const std::string output, arguments.RequiredText("output", "the file to write"));
  TRY(CheckCanWrite(output));
  TRY_ASSIGN(const uint64_t seed, SeedOf(arguments));
  TRY_ASSIGN(const std::string digest, DigestOfScenario(path));
  CalibrationResult result;
  {
    Progress progress("calibrate", session.verbosity);
    ThreadPool pool(threads);
    TRY_ASSIGN(result,
               search({.arguments = arguments,
                       .scenario = scenario,
                       .path = path,
                       .sha256 = digest,
                       .seed = seed,
                       .progress = [&](double fraction,
                                       std::string_view text) { progress.Update(fraction, text); },
                       .pool = &pool,
                       .stop = &StopOnSignals()}));
  }
  if (result.refusal) {
    TRY(Print(result.table));
    return Fail(ErrorCode::kFailedPrecondition, "{}; {} is not written", *result.refusal, output);
  }
  TRY(WriteFileAtomically(output, result.yaml));
  TRY(Print(result.table));
  Say(session, "Wrote {0}; --policy {0} is its best setting", output);
  if (result.episodes == result.asked) return ExitStatus::kDone;
  Say(session, "Stopped; the settings were judged on {} of {} episodes", result.episodes,
      result.asked);
  return ExitStatus::kInterrupted;
}

}  // namespace

CommandSpec CalibrateCommand() {
  return {
      .name = "calibrate",
      .summary = "Find the best settings of an autoscaler or a routing policy for a scenario",
      .operands = {{.name = "SCENARIO"}},
      .options =
          {{"--policy", "NAME",
            "policy to calibrate: hpa, mpc or static; where the scenario has `regions`, any "
            "routing policy (`policies --task route`)"},
           {"--task", "scale|route",
            "kind of decision (default: route if the scenario has `regions`, else scale)"},
           {"--variant", "NAME[,...]",
            "(routing) variants to calibrate for, jointly (default: all)"},
           {"--regions", "NAME[,...]", "(routing) regions to use (default: all)"},
           {"--settings", "N", "(routing) settings to draw at random (default 256)"},
           {"--load", "NAME[,...]", "loads to calibrate for, jointly (default: all)"},
           {"--violations", "SHARE",
            "maximum share of late or failed requests (default: the scenario's limit, else 1%)"},
           {"--episodes", "N",
            "episodes per load in the last round, at least 16 (default 64); (routing) per variant "
            "and setting, at least 4 (default 16)"},
           {"--seed", "S", "random seed of the episodes (default 1)"},
           {"--threads", "N",
            "number of threads; does not change the results (default: all cores)"},
           {"-o,--output", "FILE.yaml", "file to write the settings to"}},
      .details =
          "The best settings are the cheapest ones that keep the share of late or failed requests "
          "within the limit. They are searched on training episodes, which `evaluate` never "
          "uses.\nhpa: a grid of 660 settings of the HorizontalPodAutoscaler: CPU or request rate "
          "targets, tolerances, stabilization windows, scaling policies and minReplicas. The "
          "search narrows the grid in rounds. First the analytic model rates all settings on 1/8 "
          "of the episodes, and the best 25 % on all. Then the event simulator rates the best 12.5 "
          "% of those on 1/16 of the episodes, the best of these on 1/4, and the best of these on "
          "all.\nmpc: 24 settings of horizon and penalty for late requests.\nstatic: 50 request "
          "rates, each with the constant number of replicas that it needs.\nA routing policy: "
          "settings drawn at random from a grid of each of its options, then neighbours of the "
          "best three, one option at a time, then the best 12 on four times the episodes. The best "
          "setting is the one with the smallest mean objective. Options of it that are at the end "
          "of their grid are named.",
      .examples = {"calibrate scenarios/redis.yaml --policy hpa --load ramp --episodes 16 -o "
                   "hpa.yaml",
                   "evaluate scenarios/redis.yaml --task scale --load ramp --policy "
                   "hold,hpa.yaml"},
      .run = RunCalibrate};
}

}  // namespace rudderfish
