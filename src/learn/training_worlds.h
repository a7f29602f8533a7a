// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "learn/train_options.h"
#include "learn/training_world.h"
#include "scenario/scenario.h"
#include "task/task.h"

// The worlds a run of training plays in, made from scenarios: each with the law and the task its
// file names. One network serves them all, so their tasks must show it the same features.
// Immutable.

namespace rudderfish {

class TrainingWorlds {
 public:
  // One in `enlarge_every` environments will play in its scenario at twice the size (0: none;
  // scenarios of more than kEnlargeNodesMax nodes stay as they are). Refuses tasks with different
  // features, and worlds of which no start state can be drawn. Where pods are placed, heuristics
  // are tried first, on `threads` threads, and no world is enlarged; likewise with `scaling`, where
  // applications are scaled, whatever the scenario's own task is; with `preset`, pods are placed as
  // an earlier system did, in one scenario; with `routing`, regions are scaled below a traffic
  // split, and each variant of the scenario is a world.
  static Result<TrainingWorlds> Make(std::span<const std::shared_ptr<const Scenario>> scenarios,
                                     int enlarge_every = 0, int threads = 1,
                                     const std::optional<ScalingTraining>& scaling = {},
                                     std::optional<PlacementPreset> preset = {},
                                     const std::optional<RoutingTraining>& routing = {});

  static constexpr int kEnlargeNodesMax = 64;

  // What environments play in, in turn; and the scenarios as they are, to validate on.
  std::span<const TrainingWorld> list() const { return list_; }
  std::span<const TrainingWorld> originals() const { return originals_; }
  const TrainingWorld& first() const { return originals_[0]; }
  // Of placing: what all worlds agree on that clusters do not tell; nullptr: they do not agree.
  const PlacementFacts* FactsOfAll() const;
  Familiarity SeenByAll() const;
  const Task& task() const { return *tasks_[0]; }  // REQUIRES: first().moves().

 private:
  Result<void> AddPlacement(std::shared_ptr<const Scenario> scenario, int threads,
                            std::optional<PlacementPreset> preset);
  Result<void> AddScaling(std::shared_ptr<const Scenario> scenario, const ScalingTraining& scaling,
                          int threads);
  Result<void> AddRouting(const Scenario& scenario, const RoutingTraining& routing);
  Result<void> AddMigration(std::shared_ptr<const Scenario> scenario);

  std::vector<std::unique_ptr<World>> worlds_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<PlacementWorld>> placements_;
  std::vector<std::unique_ptr<ScalingWorld>> scalings_;
  std::vector<std::unique_ptr<ScalingPresetWorld>> scaling_presets_;
  std::vector<std::unique_ptr<RoutingWorld>> routings_;
  std::vector<TrainingWorld> originals_;
  std::vector<TrainingWorld> list_;
};

}  // namespace rudderfish
