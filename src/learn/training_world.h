// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "learn/env.h"
#include "learn/episode_player.h"
#include "learn/placement_env.h"
#include "learn/routing_world.h"
#include "learn/scaling_env.h"
#include "learn/scaling_preset_env.h"
#include "model/latency.h"
#include "sim/world.h"
#include "task/task.h"

// A world and the task to do in it: what an environment is made of. The parts outlive it.

namespace rudderfish {

struct TrainingWorld {
  // Of migration.
  const World* world = nullptr;
  const Task* task = nullptr;
  LatencyLaw law;

  // Of placing pods, of scaling, and of scaling as an earlier system did; then the others are not
  // there.
  const PlacementWorld* placement = nullptr;
  const ScalingWorld* scaling = nullptr;
  const ScalingPresetWorld* scaling_preset = nullptr;
  // Of scaling regions below a traffic split: then none of the others is there.
  const RoutingWorld* routing = nullptr;

  bool places() const { return placement != nullptr; }
  std::optional<PlacementPreset> preset() const {
    return places() ? placement->task.preset() : std::nullopt;
  }
  bool scales() const { return scaling != nullptr; }
  bool scales_by_preset() const { return scaling_preset != nullptr; }
  bool routes() const { return routing != nullptr; }
  bool moves() const { return task != nullptr; }  // Figures are latencies; else objectives.

  // For an evolution strategy. REQUIRES: places() by no preset, or routes().
  bool has_players() const { return routes() || (places() && !preset()); }
  EvolutionStart EvolutionBegins() const;
  std::unique_ptr<EpisodePlayer> NewPlayer() const;

  // Episodes are cut after `steps_max` decisions, if not before by the task. REQUIRES: not
  // routes().
  std::unique_ptr<Environment> MakeEnv(uint64_t seed, uint64_t id, int steps_max) const;

  GraphWidths widths() const;
  const FeatureTable& features() const;
  std::string FeatureHash() const;
};

}  // namespace rudderfish
