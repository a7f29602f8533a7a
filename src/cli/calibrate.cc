// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/files.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/scaling_options.h"
#include "cli/terminal.h"
#include "cli/text_table.h"
#include "evaluation/calibration.h"

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
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const std::string kind,
             arguments.RequiredText("policy", "what to calibrate: hpa, mpc or static"));
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
  const std::string& path = arguments.operands()[0];
  TRY_ASSIGN(const Scenario scenario, LoadServedScenario(path));
  TRY_ASSIGN(options.violations_max, ViolationsOf(arguments, scenario));
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(arguments, *scenario.load));
  TRY_ASSIGN(const std::string digest, DigestOfScenario(path));
  Calibration calibration;
  {
    Progress progress("calibrate", session.verbosity);
    options.progress = [&](double fraction, std::string_view text) {
      progress.Update(fraction, text);
    };
    ThreadPool pool(threads);
    const double peak_per_s = PeakPerS(scenario, loads, options.episodes, options.seed);
    calibration = CalibrateScaling(scenario, loads, GridOf(calibrated, peak_per_s), options, &pool);
  }
  calibration.sha256 = digest;
  TRY(WriteFileAtomically(output, CalibrationYaml(calibration)));
  TRY(Print(CalibrationTable(calibration)));
  Say(session, "Wrote {}; --policy {}:{} is its best", output, kind, output);
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec CalibrateCommand() {
  return {
      .name = "calibrate",
      .summary = "find the settings of a policy of scaling that are worth comparing with",
      .operands = {{.name = "SCENARIO"}},
      .options = {{"--policy", "hpa|mpc|static", "what to calibrate"},
                  {"--load", "NAME[,...]", "for which loads together; all by default"},
                  {"--violations", "SHARE",
                   "the limit to keep; the scenario's by default, 1% if it names none"},
                  {"--episodes", "N", "of each load in the last round; 64 by default, 16 at least"},
                  {"--seed", "S", "of the episodes; 1 by default"},
                  {"--threads", "N", "all cores by default; results do not depend on it"},
                  {"-o,--output", "FILE.yaml", "where to write what was found"}},
      .details =
          "A fixed grid of 660 settings of Kubernetes' HorizontalPodAutoscaler (targets of CPU "
          "and of calls a second, tolerances, stabilisation windows, policies, minReplicas) "
          "runs on training episodes that `evaluate` never draws: by the Model of load all on "
          "an eighth of them, the best quarter on all; request by request the best eighth of "
          "those on a sixteenth of them, the best of these on a fourth, the best of these on "
          "all. Of mpc it is 24 settings, prices of late requests and horizons; of static 50 "
          "rates that replicas which never change are enough for. The best is the cheapest "
          "that keeps the share of late or failed requests within the limit.",
      .examples = {"calibrate scenarios/redis.yaml --policy hpa --load ramp --episodes 16 -o "
                   "hpa.yaml",
                   "evaluate scenarios/redis.yaml --task scaling --load ramp --policy "
                   "hold,hpa:hpa.yaml"},
      .run = RunCalibrate};
}

}  // namespace rudderfish
