// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "base/yaml.h"
#include "policy/scaling_record.h"
#include "scenario/scenario.h"

// The HorizontalPodAutoscaler, the look-ahead or the constant replicas that are worth comparing
// with: of a fixed grid of settings, the cheapest that keeps violations below a limit, found on
// training episodes.
//
// The settings race: of a large grid all run an eighth of the episodes on the Model of load, and
// the best quarter, of a small one all, run the episodes there; of these the best eighth, two dozen
// at most, of few settings the best eight, run a sixteenth of the episodes on the event simulator,
// the best quarter of those, or six, a fourth, the best of these, four at least, all. Those that go
// on are the best for the limit and as many that are best for more and for less, since the Model
// and few episodes may be off. One setting is "better" if its share of violations is within the
// limit and the other's is not; of two within, the cheaper; of two beyond, that with fewer. Where
// none keeps the limit, LimitAmong them is in its place.

namespace rudderfish {

// By CPU: 6 targets x 3 tolerances x 2 up x 4 down windows; by calls a second, as KEDA scales: 7
// shares of what a pod serves x 2 x 4; and 10 of these settings x 2 down windows x 8 minima of
// replicas, none and enough for a share of the peak, x 3 policies of how fast replicas change. 660
// in all, as MakeScalingPolicy reads them.
std::vector<std::string> HpaGrid(double peak_per_s);
// 8 prices x 3 horizons of mpc.
std::vector<std::string> MpcGrid();
// Replicas that never change, enough for 0.4 to 1.38 times the peak, in steps of 0.02.
std::vector<std::string> StaticGrid(double peak_per_s);

// What can be calibrated.
enum class CalibratedKind { kHpa, kMpc, kStatic };
inline constexpr std::string_view kCalibratedKinds[] = {"hpa", "mpc", "static"};
std::vector<std::string> GridOf(CalibratedKind kind, double peak_per_s);

struct CalibrationOptions {
  double violations_max = 0.01;  // Of all requests of all loads.
  int episodes = 64;             // Of each load, in the last round; at least 16.
  int model_share = 1;           // Of these one of so many is run on the Model. 4 suits kMpc, whose
                                 // look-ahead takes longer than the Model does.
  uint64_t seed = 1;
  std::function<void(double fraction, std::string_view text)> progress;  // May be empty.
  // Where it becomes true, the race ends with what its last complete round on requests says.
  const std::atomic<bool>* stop = nullptr;
};

// What CalibrationOptions::model_share is to be.
constexpr int ModelShareOf(CalibratedKind kind) { return kind == CalibratedKind::kMpc ? 4 : 1; }

struct CalibratedSetting {
  std::string policy;
  double core_hours = 0;  // Mean of an episode, summed over loads.
  double violation_share = 0;
  double violation_error = 0;  // Standard error of that, over episodes.

  ScalingRecord record() const { return {core_hours, violation_share, violation_error}; }
  bool operator==(const CalibratedSetting&) const = default;
};

struct Calibration {
  std::string scenario;
  std::string sha256;  // DigestOfScenario.
  std::vector<std::string> loads;
  double violations_max = 0;
  int settings = 0;  // Of the grid.
  int episodes = 0;  // That the finalists were judged on, of each load.
  uint64_t seed = 0;
  std::vector<CalibratedSetting> finalists;  // The best first; none if it was stopped too early.

  CalibratedKind kind() const;
  bool keeps_limit() const { return finalists[0].violation_share <= violations_max; }
  double allowed() const;  // LimitAmong the finalists.
  bool operator==(const Calibration&) const = default;
};

// `loads` are positions in Load::loads. The episodes are none that `evaluate` draws, whatever its
// seed; of a replay they are from an earlier part of the trace (EpisodeUse). Does not
// depend on the number of threads. REQUIRES: the scenario has `load`.
Calibration CalibrateScaling(const Scenario& scenario, const std::vector<int>& loads,
                             const std::vector<std::string>& grid,
                             const CalibrationOptions& options, ThreadPool* pool);

// As a file: ParseCalibration(ParseYaml(CalibrationYaml(c))) equals c.
std::string CalibrationYaml(const Calibration& calibration);
Result<Calibration> ParseCalibration(const YamlNode& root);

}  // namespace rudderfish
