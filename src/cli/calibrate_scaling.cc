// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text_table.h"
#include "cli/calibrated_world.h"
#include "cli/scaling_options.h"
#include "evaluation/calibration.h"
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

}  // namespace

Result<CalibrationResult> CalibrateScalingPolicy(const CalibrationRequest& request) {
  const Arguments& arguments = request.arguments;
  const Scenario& scenario = request.scenario;
  TRY_ASSIGN(const std::string kind,
             arguments.RequiredText("policy", "policy to calibrate: hpa, mpc or static"));
  TRY_ASSIGN(const int chosen, OfOption("policy", ChoiceOf(kind, kCalibratedKinds)));
  const auto calibrated = static_cast<CalibratedKind>(chosen);
  TRY_ASSIGN(const int64_t episodes, arguments.Integer("episodes", kCalibrationEpisodes,
                                                       kEpisodesMin, kCalibrationEpisodesMax));
  TRY(CheckIsServed(scenario, request.path));
  CalibrationOptions options{.episodes = static_cast<int>(episodes),
                             .model_share = ModelShareOf(calibrated),
                             .seed = request.seed,
                             .progress = request.progress,
                             .stop = request.stop};
  TRY_ASSIGN(options.violations_max, ViolationsOf(arguments, scenario));
  TRY_ASSIGN(const std::vector<int> loads, LoadsOf(arguments, *scenario.load));
  const double peak_per_s = PeakPerS(scenario, loads, options.episodes, options.seed);
  Calibration calibration =
      CalibrateScaling(scenario, loads, GridOf(calibrated, peak_per_s), options, request.pool);
  if (calibration.finalists.empty()) {
    return Fail(ErrorCode::kCancelled,
                "stopped before any setting was judged on simulated requests");
  }
  calibration.sha256 = request.sha256;
  return CalibrationResult{.table = CalibrationTable(calibration),
                           .yaml = CalibrationYaml(calibration),
                           .refusal = {},
                           .episodes = calibration.episodes,
                           .asked = options.episodes};
}

}  // namespace rudderfish
