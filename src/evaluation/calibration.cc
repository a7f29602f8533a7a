// SPDX-License-Identifier: Apache-2.0
#include "evaluation/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/yaml_writer.h"
#include "evaluation/statistics.h"
#include "policy/registry.h"
#include "sim/ratio_tally.h"
#include "sim/scaling_evaluation.h"
#include "sim/scaling_run.h"

namespace rudderfish {
namespace {

constexpr std::string_view kCalibrationFormat = "scaling-calibration/v1";

// Keys of evaluation are small numbers that people type; training ones differ from them in most
// bits. The letters "calibrat".

// The Model may be off, and few episodes say little: those go on that are best for the limit, and
// as many of those that are for more and for less.
constexpr double kLeniences[] = {1.25, 0.8, 0.5, 0.3};

// Of the peak, that there are always to be pods for.
constexpr double kMinimumShares[] = {0.4, 0.55, 0.7, 0.78, 0.86, 0.94, 1.02};
constexpr std::string_view kReplicaPolicies[] = {"default", "fast", "gentle"};

// Of a race.
constexpr size_t kLargeGrid = 256, kModelFinalists = 24;
constexpr int kFirstShare = 8;  // Of the episodes, where the grid is large.

double LimitOf(const std::vector<CalibratedSetting>& settings, double violations_max) {
  std::vector<ScalingRecord> records;
  for (const CalibratedSetting& one : settings) records.push_back(one.record());
  return LimitAmong(records, violations_max);
}

void SortByLimit(double violations_max, std::vector<CalibratedSetting>* settings) {
  std::stable_sort(settings->begin(), settings->end(),
                   [&](const CalibratedSetting& a, const CalibratedSetting& b) {
                     return a.record().IsBetterThan(b.record(), violations_max);
                   });
}

// In turn the best by each of kLeniences.
std::vector<std::string> WhoGoOn(std::vector<CalibratedSetting> judged, double violations_max,
                                 size_t count) {
  violations_max = LimitOf(judged, violations_max);
  std::vector<std::vector<CalibratedSetting>> ranks;
  for (const double lenience : kLeniences) {
    SortByLimit(lenience * violations_max, &judged);
    ranks.push_back(judged);
  }
  std::vector<std::string> chosen;
  std::set<std::string> known;
  for (size_t place = 0; place < judged.size(); ++place) {
    for (const auto& rank : ranks) {
      if (chosen.size() < count && known.insert(rank[place].policy).second)
        chosen.push_back(rank[place].policy);
    }
  }
  return chosen;
}

// What a setting came to on one ground, so far.
struct RaceTally {
  double core_hours = 0;
  RatioTally violations;  // Of the first episodes.
};

// Settings on the first episodes of each load; what they have run already is not run again.
class Race {
 public:
  Race(const Scenario& scenario, const std::vector<int>& loads, const CalibrationOptions& options,
       ThreadPool* pool)
      : scenario_(scenario), loads_(loads), options_(options), pool_(pool) {}

  // In the order of `settings`; none if it is stopped before its end. REQUIRES: all have run
  // as much before.
  std::vector<CalibratedSetting> Run(const std::vector<std::string>& settings, int episodes,
                                     ScalingGround ground,
                                     const std::function<void(double)>& progress) {
    auto& tallies = tallies_[ground == ScalingGround::kModel ? 0 : 1];
    const int first = tallies[settings[0]].violations.trials();
    if (first < episodes) {
      std::vector<NamedScalingPolicy> policies;
      for (const std::string& setting : settings) {
        CHECK_EQ(tallies[setting].violations.trials(), first);
        Result<std::unique_ptr<ScalingPolicy>> policy = MakeScalingPolicy(setting);
        CHECK(policy.has_value());  // A grid is ours.
        policies.push_back({setting, {std::move(*policy)}});
      }
      const ScalingEvaluation evaluation = EvaluateScaling(
          scenario_, EpisodeUse::kLearning, loads_, policies, episodes - first,
          CalibrationSeed(options_.seed), pool_, progress, ground, first, options_.stop);
      if (evaluation.episodes < episodes - first) return {};
      for (size_t p = 0; p < settings.size(); ++p)
        Add(evaluation, static_cast<int>(p), &tallies[settings[p]]);
    }
    std::vector<CalibratedSetting> judged;
    for (const std::string& setting : settings) {
      const RaceTally& tally = tallies[setting];
      judged.push_back({setting, tally.core_hours / tally.violations.trials(),
                        tally.violations.ratio(), tally.violations.standard_error()});
    }
    return judged;
  }

 private:
  static void Add(const ScalingEvaluation& evaluation, int policy, RaceTally* tally) {
    for (int i = 0; i < evaluation.episodes; ++i) {
      int64_t violations = 0, requests = 0;
      for (int load = 0; load < static_cast<int>(evaluation.loads.size()); ++load) {
        const ScalingFigures& one = evaluation.at(load, policy, i);
        tally->core_hours += one.core_hours;
        violations += one.violations;
        requests += one.requests;
      }
      tally->violations.Add(static_cast<double>(violations), static_cast<double>(requests));
    }
  }

  const Scenario& scenario_;
  const std::vector<int>& loads_;
  const CalibrationOptions& options_;
  ThreadPool* pool_;
  std::map<std::string, RaceTally> tallies_[2];  // By ground, and setting.
};

}  // namespace

std::vector<std::string> HpaGrid(double peak_per_s) {
  std::vector<std::string> grid;
  for (const char* up : {"0s", "60s"}) {
    for (const char* down : {"0s", "60s", "120s", "300s"}) {
      for (const int cpu : {30, 40, 50, 60, 70, 80}) {
        for (const char* tolerance : {"0.05", "0.1", "0.2"}) {
          grid.push_back(
              fmt::format("hpa:cpu={},tolerance={},up={},down={}", cpu, tolerance, up, down));
        }
      }
      for (const char* share : {"0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"}) {
        grid.push_back(fmt::format("keda:share={},up={},down={}", share, up, down));
      }
    }
  }
  // Those of the first minimum and policies, none and the default ones, are above.
  std::vector<std::string> minima = {""};
  for (const double share : kMinimumShares)
    minima.push_back(fmt::format(",min-rate={:.4g}", share * peak_per_s));
  for (const std::string& least : minima) {
    for (const std::string_view policies : kReplicaPolicies) {
      if (least.empty() && policies == kReplicaPolicies[0]) continue;
      for (const char* down : {"0s", "300s"}) {
        const std::string rest = fmt::format(",up=0s,down={},policies={}{}", down, policies, least);
        for (const int cpu : {40, 50, 60, 70, 80})
          grid.push_back(fmt::format("hpa:cpu={},tolerance=0.1{}", cpu, rest));
        for (const char* share : {"0.3", "0.45", "0.6", "0.75", "0.9"})
          grid.push_back(fmt::format("keda:share={}{}", share, rest));
      }
    }
  }
  return grid;
}

std::vector<std::string> StaticGrid(double peak_per_s) {
  std::vector<std::string> grid;
  for (int percent = 40; percent <= 138; percent += 2)
    grid.push_back(fmt::format("static:rate={:.4g}", std::max(1e-3, percent * peak_per_s / 100)));
  return grid;
}

std::vector<std::string> GridOf(CalibratedKind kind, double peak_per_s) {
  switch (kind) {
    case CalibratedKind::kHpa:
      return HpaGrid(peak_per_s);
    case CalibratedKind::kMpc:
      return MpcGrid();
    case CalibratedKind::kStatic:
      return StaticGrid(peak_per_s);
  }
  return {};
}

double Calibration::allowed() const { return LimitOf(finalists, violations_max); }

CalibratedKind Calibration::kind() const {
  const std::string_view best = finalists[0].policy;
  if (best.starts_with("mpc")) return CalibratedKind::kMpc;
  return best.starts_with("static") ? CalibratedKind::kStatic : CalibratedKind::kHpa;
}

std::vector<std::string> MpcGrid() {
  std::vector<std::string> grid;
  for (const char* horizon : {"60s", "90s", "150s"}) {
    for (const char* price : {"0.03", "0.05", "0.1", "0.2", "0.5", "2", "8", "32"})
      grid.push_back(fmt::format("mpc:price={},horizon={}", price, horizon));
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
                          .seed = options.seed};
  for (const int load : loads) calibration.loads.push_back(scenario.load->loads[load].name);
  // The first round is of large grids alone; the last three are on requests.
  struct Round {
    int share;                                  // Of the episodes,
    size_t left_share, fewest_left, most_left;  // and of the settings that go on.
    ScalingGround ground;
  };
  const Round rounds[] = {{kFirstShare, 4, 8, grid.size(), ScalingGround::kModel},
                          {options.model_share, 8, 8, kModelFinalists, ScalingGround::kModel},
                          {16, 4, 6, grid.size(), ScalingGround::kRequests},
                          {4, 4, 4, grid.size(), ScalingGround::kRequests},
                          {1, 1, 1, grid.size(), ScalingGround::kRequests}};
  constexpr int kRounds = std::size(rounds);
  const int first = grid.size() > kLargeGrid ? 0 : 1;
  Race race(scenario, loads, options, pool);
  std::vector<std::string> settings = grid;
  for (int i = first; i < kRounds; ++i) {
    const Round& round = rounds[i];
    const auto progress = [&](double fraction) {
      if (options.progress) {
        options.progress((i - first + fraction) / (kRounds - first),
                         fmt::format("{} settings", settings.size()));
      }
    };
    const int episodes = std::max(1, options.episodes / round.share);
    const std::vector<CalibratedSetting> judged =
        race.Run(settings, episodes, round.ground, progress);
    if (judged.empty()) break;
    if (round.ground == ScalingGround::kRequests) {
      calibration.finalists = judged;
      calibration.episodes = episodes;
    }
    if (i + 1 == kRounds) break;
    const size_t left = std::min(
        {settings.size(), round.most_left,
         std::max((settings.size() + round.left_share - 1) / round.left_share, round.fewest_left)});
    settings = WhoGoOn(judged, options.violations_max, left);
  }
  if (!calibration.finalists.empty()) SortByLimit(calibration.allowed(), &calibration.finalists);
  return calibration;
}

std::string CalibrationYaml(const Calibration& calibration) {
  YamlWriter out;
  out.Comment(
      "Settings of a scaling policy, best first: the cheapest that keeps violations\nwithin the "
      "limit. core_hours are those of one episode, summed over loads;\nviolation_error is the "
      "standard error of violation_share.");
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
    out.Field("violation_error", setting.violation_error);
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
  TRY_ASSIGN(calibration.loads, map.RequiredStrings("loads"));
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
    TRY_ASSIGN(setting.violation_error, fields.OptionalDouble("violation_error", 0, 1, 0));
    TRY(fields.Finish());
    calibration.finalists.push_back(std::move(setting));
  }
  TRY(map.Finish());
  return calibration;
}

}  // namespace rudderfish
