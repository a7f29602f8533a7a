// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text_table.h"
#include "cli/calibrated_world.h"
#include "cli/routing_options.h"
#include "evaluation/limit_check.h"
#include "evaluation/routing_calibration.h"
#include "policy/policy_table.h"

namespace rudderfish {
namespace {

constexpr int64_t kRouteEpisodesMin = 4, kRouteEpisodes = 16, kRouteEpisodesMax = 10'000;
constexpr int64_t kSettingsMin = 1, kSettings = 256, kSettingsMax = 100'000;

std::string RoutingCalibrationTable(const RoutingCalibration& calibration) {
  using Align = TextTable::Align;
  TextTable table({{"policy", Align::kLeft},
                   {"objective", Align::kRight},
                   {"late %", Align::kRight},
                   {"kg CO2/h", Align::kRight},
                   {"$/h", Align::kRight}},
                  2);
  for (const CalibratedRoute& one : calibration.finalists) {
    table.Row({one.policy, fmt::format("{:.4f}", one.means.objective),
               fmt::format("{:.2f}", 100 * one.means.late_share),
               fmt::format("{:.3f}", one.means.carbon_kg_per_h),
               fmt::format("{:.2f}", one.means.dollars_per_h)});
  }
  std::string text = fmt::format(
      "{}, {}: {} settings, the best {} on {} episodes of each variant\n"
      "\n{}",
      calibration.scenario, fmt::join(calibration.variants, ", "), calibration.settings,
      calibration.finalists.size(), calibration.episodes, table.Text());
  if (calibration.edges.empty())
    return text + "\nNo option of the best setting is at the end of its grid.\n";
  return text + fmt::format("\nAt the end of its grid, so that there may be better settings: {}\n",
                            fmt::join(calibration.edges, ", "));
}

}  // namespace

Result<CalibrationResult> CalibrateRoutingPolicy(const CalibrationRequest& request) {
  const Arguments& arguments = request.arguments;
  TRY_ASSIGN(const std::string policy,
             arguments.RequiredText("policy", "policy to calibrate, such as lp or mpc"));
  TRY(OfOption("policy", ChoiceOf(policy, PolicyNamesOf(TaskKind::kRoute))));
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", kRouteEpisodes, kRouteEpisodesMin, kRouteEpisodesMax));
  TRY_ASSIGN(const int64_t settings,
             arguments.Integer("settings", kSettings, kSettingsMin, kSettingsMax));
  TRY_ASSIGN(const std::shared_ptr<const RegionWorld> world,
             RegionsOf(arguments, request.scenario));
  RoutingCalibrationOptions options{.settings = static_cast<int>(settings),
                                    .episodes = static_cast<int>(episodes),
                                    .seed = request.seed,
                                    .progress = request.progress,
                                    .stop = request.stop};
  TRY_ASSIGN(options.variants, VariantsOf(arguments, *world));
  TRY(CheckLimits(world, options.variants, request.pool));
  RoutingCalibration calibration =
      CalibrateRouting(request.scenario.name, world, policy, options, request.pool);
  if (calibration.finalists.empty())
    return Fail(ErrorCode::kCancelled, "stopped before any setting was judged");
  calibration.sha256 = request.sha256;
  CalibrationResult result{.table = RoutingCalibrationTable(calibration),
                           .yaml = RoutingCalibrationYaml(calibration),
                           .refusal = {},
                           .episodes = calibration.episodes,
                           .asked = kFinalistEpisodes * options.episodes};
  if (BeyondLimits(world->network->limits, calibration.finalists[0].means) > 0)
    result.refusal = fmt::format("no setting of {} that was tried keeps `regions.limits`", policy);
  return result;
}

}  // namespace rudderfish
