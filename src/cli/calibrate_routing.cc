// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_routing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "base/text_table.h"
#include "base/thread_pool.h"
#include "cli/files.h"
#include "cli/routing_options.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
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

Result<ExitStatus> CalibrateRoutingPolicy(const Scenario& scenario, const Arguments& arguments,
                                          const Session& session) {
  for (const char* other : {"load", "violations"}) {
    if (arguments.Has(other)) return Invalid("--{}: not for --task route", other);
  }
  TRY_ASSIGN(const int threads, ThreadsOf(arguments));
  TRY_ASSIGN(const std::string policy,
             arguments.RequiredText("policy", "policy to calibrate, such as lp or mpc"));
  TRY(OfOption("policy", ChoiceOf(policy, PolicyNamesOf(TaskKind::kRoute))));
  TRY_ASSIGN(const std::string output, arguments.RequiredText("output", "the file to write"));
  TRY(CheckCanWrite(output));
  RoutingCalibrationOptions options;
  TRY_ASSIGN(options.seed, SeedOf(arguments));
  TRY_ASSIGN(const int64_t episodes,
             arguments.Integer("episodes", kRouteEpisodes, kRouteEpisodesMin, kRouteEpisodesMax));
  TRY_ASSIGN(const int64_t settings,
             arguments.Integer("settings", kSettings, kSettingsMin, kSettingsMax));
  options.episodes = static_cast<int>(episodes);
  options.settings = static_cast<int>(settings);
  TRY_ASSIGN(const std::shared_ptr<const RegionWorld> world, RegionsOf(arguments, scenario));
  TRY_ASSIGN(options.variants, VariantsOf(arguments, *world));
  TRY_ASSIGN(const std::string digest, DigestOfScenario(arguments.operands()[0]));
  options.stop = &StopOnSignals();
  RoutingCalibration calibration;
  {
    Progress progress("calibrate", session.verbosity);
    options.progress = [&](double fraction, std::string_view text) {
      progress.Update(fraction, text);
    };
    ThreadPool pool(threads);
    TRY(CheckLimits(world, options.variants, &pool));
    calibration = CalibrateRouting(scenario.name, world, policy, options, &pool);
  }
  if (calibration.finalists.empty())
    return Fail(ErrorCode::kFailedPrecondition, "stopped before any setting was judged");
  if (BeyondLimits(world->network->limits, calibration.finalists[0].means) > 0) {
    TRY(Print(RoutingCalibrationTable(calibration)));
    return Fail(ErrorCode::kFailedPrecondition,
                "no setting of {} that was tried keeps `regions.limits`; {} is not written", policy,
                output);
  }
  calibration.sha256 = digest;
  TRY(WriteFileAtomically(output, RoutingCalibrationYaml(calibration)));
  TRY(Print(RoutingCalibrationTable(calibration)));
  Say(session, "Wrote {0}; --policy {0} is its best setting", output);
  if (!options.stop->load()) return ExitStatus::kDone;
  Say(session, "Stopped; the settings were judged on {} episodes", calibration.episodes);
  return ExitStatus::kInterrupted;
}

}  // namespace rudderfish
