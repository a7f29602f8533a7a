// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "base/yaml.h"
#include "scenario/region_world.h"
#include "sim/routing_evaluation.h"

// The settings of a policy that routes that are worth comparing with: of some hundred drawn at
// random from a grid, and of the neighbours of the best of them one option at a time, the one of
// the smallest mean objective, on episodes that neither training nor evaluation has. Where there
// are limits, it is the best of those that keep them, and rules may decide by other prices than
// the objective's: the multipliers of the limits.
//
// A setting at the end of an option's grid, where the option itself does not end, may not be the
// best there is; it is named (`edges`).

namespace rudderfish {

inline constexpr int kFinalistEpisodes = 4;  // For each episode of other settings.

struct RoutingCalibrationOptions {
  std::vector<int> variants;  // Positions in RegionWorld::variants, calibrated for jointly.
  int settings = 256;         // Drawn at random.
  int episodes = 16;          // Of each variant; finalists have kFinalistEpisodes times as many.
  uint64_t seed = 1;
  std::function<void(double fraction, std::string_view text)> progress;  // May be empty.
  // Where it becomes true, the search ends with what it has; maybe nothing.
  const std::atomic<bool>* stop = nullptr;
};

struct CalibratedRoute {
  std::string policy;  // As MakeRoutingRule reads it.
  RoutingMeans means;
  bool operator==(const CalibratedRoute&) const = default;
};

struct RoutingCalibration {
  std::string scenario;
  std::string sha256;  // DigestOfScenario.
  std::vector<std::string> regions, variants;
  int settings = 0;  // That were tried, neighbours included.
  int episodes = 0;  // Of each variant, that the finalists were judged on.
  uint64_t seed = 0;
  std::vector<CalibratedRoute> finalists;  // The best first.
  std::vector<std::string> edges;          // Options of the best one at the end of their grid.
  bool operator==(const RoutingCalibration&) const = default;
};

// REQUIRES: the task has a policy of that name (policy/policy_table.h). The same for any number of
// threads.
RoutingCalibration CalibrateRouting(const std::string& scenario,
                                    const std::shared_ptr<const RegionWorld>& world,
                                    std::string_view policy,
                                    const RoutingCalibrationOptions& options, ThreadPool* pool);

// As a file: ParseRoutingCalibration(ParseYaml(RoutingCalibrationYaml(c))) equals c.
std::string RoutingCalibrationYaml(const RoutingCalibration& calibration);
Result<RoutingCalibration> ParseRoutingCalibration(const YamlNode& root);

}  // namespace rudderfish
