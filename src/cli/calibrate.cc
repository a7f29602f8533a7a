// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/files.h"
#include "base/text_table.h"
#include "base/thread_pool.h"
#include "cli/calibrate_routing.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/scaling_options.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "evaluation/calibration.h"
#include "scenario/task_of.h"
#include "sim/scaling_evaluation.h"

namespace rudderfish {
namespace {

constexpr int64_t kEpisodesMin = 16, kCalibrationEpisodes = 64, kCalibrationEpisodesMax = 100'000;
constexpr int kFinalistsShown = 5;

std::string CalibrationTable(const Calibration& calibration) {
  using Align = TextTable::Align;
  TextTable table(
      {{"policy", Align::kLeft}, {"core-hours", Align::kRight}, {"violations", Align::kRight}}, 2);
  const size_t shown = std::min<size_t>(kFinalistsShown, calibration.finalists.size());
  for (size_t i = 0; i < shown; ++i) {
    const CalibratedSetting& one = calibration.finalists[i];
    table.Row({one.policy, fmt::format("{:.3f}", one.core_hours),
               fmt::format("{:.2f} %", 100 * one.violation_share)});
  }
  std::string text = fmt::format("{}: {} settings, the best {} on {} episodes of each load\n\n{}",
                                 calibration.scenario, calibration.settings,
                                 calibration.finalists.size(), calibration.episodes, table.Text());
  if (!calibration.keeps_limit()) {
    text += fmt::format(
        "\nNo setting keeps violations within {:.4g} %: this is the cheapest of those within "
        "{:.4g} %, which is what the one with the fewest has, and chance may add.\n",
        100 * calibration.violations_max, 100 * calibration.allowed());
  }
  return text;
}

Result<ExitStatus> RunCalibrate(const Arguments& arguments, const Session& session) {
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(const Scenario scenario, LoadScenario(path));
  TRY_ASSIGN(const TaskKind task, TaskFor(arguments.Text("task"), scenario, path));
  if (task == TaskKind::kRoute) return CalibrateRoutingPolicy(scenario, arguments, session);
  for (const char* other : {"variant", "regions", "settings"}) {
    if (arguments.Has(other)) return Invalid("--{}: requires --task route", other);
  }
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const std::string kind,
             arguments.RequiredText("policy", "policy to calibrate: hpa, mpc or static"));
  TRY_ASSIGN(const int chosen, OfOption("policy", ChoiceOf(kind, kCalibratedKinds)));
  TRY_ASSIGN(const std::string output, arguments.RequiredText("output", "the file to write"));
  TRY(CheckCanWrite(output));
  CalibrationOptions options;
  TRY_ASSIGN(options.seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t episodes, arguments.Integer("episodes", kCalibrationEpisodes,
                                                       kEpisodesMin, kCalibrationEpisodesMax));
  options.episodes = static_cast<int>(episodes);
  const auto calibrated = static_cast<CalibratedKind>(chosen);
  options.model_share = ModelShareOf(calibrated);
  if (arguments.Has("task") && task != TaskKind::kScale)
    return Invalid("--task {}: only policies that scale or route are calibrated", TaskName(task));
  TRY(CheckIsServed(scenario, path));
  TRY_ASSIGN(options.violations_max, ViolationsOf(arguments, scenario));
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(arguments, *scenario.load));
  TRY_ASSIGN(const std::string digest, DigestOfScenario(path));
  Calibration calibration;
  {
    Progress progress("calibrate", session.verbosity);
    options.progress = [&](double fraction, std::string_view text) {
      progress.Update(fraction, text);
    };
    options.stop = &StopOnSignals();
    ThreadPool pool(threads);
    const double peak_per_s = PeakPerS(scenario, loads, options.episodes, options.seed);
    calibration = CalibrateScaling(scenario, loads, GridOf(calibrated, peak_per_s), options, &pool);
  }
  if (calibration.finalists.empty()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "stopped before any setting was judged on simulated requests");
  }
  calibration.sha256 = digest;
  TRY(WriteFileAtomically(output, CalibrationYaml(calibration)));
  TRY(Print(CalibrationTable(calibration)));
  Say(session, "Wrote {0}; --policy {0} is its best setting", output);
  if (calibration.episodes < options.episodes) {
    Say(session, "Stopped; the settings were judged on {} of {} episodes", calibration.episodes,
        options.episodes);
    return ExitStatus::kInterrupted;
  }
  return ExitStatus::kDone;
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
