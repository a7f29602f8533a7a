// SPDX-License-Identifier: Apache-2.0
#include "evaluation/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/yaml_writer.h"
#include "evaluation/scaling_run.h"

namespace rudderfish {
namespace {

constexpr std::string_view kCalibrationFormat = "scaling-calibration/v1";

// Keys of evaluation are small numbers that people type; training ones differ from them in most
// bits. The letters "calibrat".
constexpr uint64_t kCalibrationKey = 0x63616C6962726174;

// What the Model believes is near enough to the limit to be tried on requests.
constexpr double kModelLenience = 1.25;

bool IsBetter(const CalibratedSetting& a, const CalibratedSetting& b, double violations_max) {
  const bool fits = a.violation_share <= violations_max;
  if (fits != (b.violation_share <= violations_max)) return fits;
  return fits ? a.core_hours < b.core_hours : a.violation_share < b.violation_share;
}

std::vector<CalibratedSetting> RaceRound(const Scenario& scenario, const std::vector<int>& loads,
                                         const std::vector<std::string>& settings, int episodes,
                                         const CalibrationOptions& options, ScalingGround ground,
                                         const std::function<void(double)>& progress,
                                         ThreadPool* pool) {
  std::vector<NamedScalingPolicy> policies;
  for (const std::string& setting : settings) {
    Result<std::unique_ptr<ScalingPolicy>> policy = MakeScalingPolicy(setting);
    CHECK(policy.has_value());  // A grid is ours.
    policies.push_back({setting, {std::move(*policy)}});
  }
  const ScalingEvaluation evaluation = EvaluateScaling(
      scenario, loads, policies, episodes, CalibrationSeed(options.seed), pool, progress, ground);
  std::vector<CalibratedSetting> judged;
  for (size_t p = 0; p < settings.size(); ++p) {
    const ScalingSums sums = SumsOf(evaluation, static_cast<int>(p));
    judged.push_back({settings[p], sums.core_hours, sums.violation_share});
  }
  const double most =
      options.violations_max * (ground == ScalingGround::kModel ? kModelLenience : 1);
  std::stable_sort(
      judged.begin(), judged.end(),
      [&](const CalibratedSetting& a, const CalibratedSetting& b) { return IsBetter(a, b, most); });
  return judged;
}

}  // namespace

uint64_t CalibrationSeed(uint64_t seed) { return seed ^ kCalibrationKey; }

std::vector<std::string> HpaGrid() {
  std::vector<std::string> grid;
  for (const char* up : {"0s", "60s"}) {
    for (const char* down : {"0s", "60s", "120s", "300s"}) {
      for (const int cpu : {30, 40, 50, 60, 70, 80}) {
        for (const char* tolerance : {"0.05", "0.1", "0.2"}) {
          grid.push_back(
              fmt::format("hpa:cpu={}:tolerance={}:up={}:down={}", cpu, tolerance, up, down));
        }
      }
      for (const char* share : {"0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"}) {
        grid.push_back(fmt::format("keda:share={}:up={}:down={}", share, up, down));
      }
    }
  }
  return grid;
}

std::vector<std::string> MpcGrid() {
  std::vector<std::string> grid;
  for (const char* horizon : {"60s", "90s", "150s"}) {
    for (const char* price : {"0.03", "0.05", "0.1", "0.2", "0.5", "2", "8", "32"})
      grid.push_back(fmt::format("mpc:price={}:horizon={}", price, horizon));
  }
  return grid;
}

Calibration CalibrateScaling(const Scenario& scenario, const std::vector<int>& loads,
                             const std::vector<std::string>& grid,
                             const CalibrationOptions& options, ThreadPool* pool) {
  CHECK(scenario.load != nullptr && !grid.empty() && options.episodes >= 16);
  Calibration calibration{.scenario = scenario.name,
                          .violations_max = options.violations_max,
                          .settings = static_cast<int>(grid.size()),
                          .episodes = options.episodes,
                          .seed = options.seed};
  for (const int load : loads) calibration.loads.push_back(scenario.load->loads[load].name);
  std::vector<std::string> settings = grid;
  constexpr int kShares[] = {1, 16, 4, 1};  // Of the episodes, a round; the first on the Model.
  constexpr int kRounds = std::size(kShares);
  constexpr size_t kFewestLeft[] = {6, 3, 2};
  for (int round = 0; round < kRounds; ++round) {
    const auto progress = [&](double fraction) {
      if (options.progress) {
        options.progress((round + fraction) / kRounds, fmt::format("{} settings", settings.size()));
      }
    };
    calibration.finalists =
        RaceRound(scenario, loads, settings,
                  options.episodes / (round == 0 ? options.model_share : kShares[round]), options,
                  round == 0 ? ScalingGround::kModel : ScalingGround::kRequests, progress, pool);
    if (round + 1 == kRounds) break;
    const size_t share = round == 0 ? 8 : 4;
    const size_t left = std::min(
        settings.size(), std::max((settings.size() + share - 1) / share, kFewestLeft[round]));
    settings.clear();
    for (size_t i = 0; i < left; ++i) settings.push_back(calibration.finalists[i].policy);
  }
  return calibration;
}

std::string CalibrationYaml(const Calibration& calibration) {
  YamlWriter out;
  out.Comment(
      "Settings of a policy of scaling, the best first: the cheapest that keeps violations\n"
      "within the limit. core_hours are those of one episode, summed over loads.");
  out.Field("rudderfish", kCalibrationFormat);
  out.Field("scenario", calibration.scenario);
  out.Field("sha256", calibration.sha256);
  out.FlowList("loads",
               std::vector<YamlScalar>(calibration.loads.begin(), calibration.loads.end()));
  out.Field("violations_max", calibration.violations_max);
  out.Field("settings", calibration.settings);
  out.Field("episodes", calibration.episodes);
  out.Field("seed", calibration.seed);
  out.BeginList("finalists");
  for (const CalibratedSetting& setting : calibration.finalists) {
    out.BeginItem();
    out.Field("policy", setting.policy);
    out.Field("core_hours", setting.core_hours);
    out.Field("violation_share", setting.violation_share);
    out.End();
  }
  out.End();
  return out.Take();
}

Result<Calibration> ParseCalibration(const YamlNode& root) {
  constexpr double kMost = std::numeric_limits<double>::max();
  TRY_ASSIGN(YamlMap map, root.AsMap());
  TRY_ASSIGN(const YamlNode format, map.Required("rudderfish"));
  TRY_ASSIGN(const std::string found, format.AsString());
  if (found != kCalibrationFormat)
    return format.Expected(fmt::format("\"{}\"", kCalibrationFormat));
  Calibration calibration;
  TRY_ASSIGN(calibration.scenario, map.RequiredString("scenario"));
  TRY_ASSIGN(calibration.sha256, map.RequiredString("sha256"));
  TRY_ASSIGN(const std::vector<YamlNode> loads, map.RequiredList("loads"));
  for (const YamlNode& node : loads) {
    TRY_ASSIGN(std::string load, node.AsString());
    calibration.loads.push_back(std::move(load));
  }
  TRY_ASSIGN(calibration.violations_max, map.RequiredDouble("violations_max", 0, 1));
  TRY_ASSIGN(const int64_t settings, map.RequiredInt("settings", 1, 1'000'000));
  TRY_ASSIGN(const int64_t episodes, map.RequiredInt("episodes", 1, 1'000'000));
  TRY_ASSIGN(const int64_t seed, map.RequiredInt("seed", 0, std::numeric_limits<int64_t>::max()));
  calibration.settings = static_cast<int>(settings);
  calibration.episodes = static_cast<int>(episodes);
  calibration.seed = static_cast<uint64_t>(seed);
  TRY_ASSIGN(const YamlNode list, map.Required("finalists"));
  TRY_ASSIGN(const std::vector<YamlNode> finalists, list.AsList());
  if (finalists.empty()) return list.Expected("at least one setting");
  for (const YamlNode& node : finalists) {
    TRY_ASSIGN(YamlMap fields, node.AsMap());
    CalibratedSetting setting;
    TRY_ASSIGN(const YamlNode policy, fields.Required("policy"));
    TRY_ASSIGN(setting.policy, policy.AsString());
    const Result<std::unique_ptr<ScalingPolicy>> known = MakeScalingPolicy(setting.policy);
    if (!known.has_value()) return policy.Refuse(known.error().message);
    TRY_ASSIGN(setting.core_hours, fields.RequiredDouble("core_hours", 0, kMost));
    TRY_ASSIGN(setting.violation_share, fields.RequiredDouble("violation_share", 0, 1));
    TRY(fields.Finish());
    calibration.finalists.push_back(std::move(setting));
  }
  TRY(map.Finish());
  return calibration;
}

}  // namespace rudderfish
