// SPDX-License-Identifier: Apache-2.0
#include "learn/training_world.h"

#include <algorithm>

#include "learn/placement_player.h"
#include "learn/preset_env.h"

namespace rudderfish {

std::unique_ptr<Environment> TrainingWorld::MakeEnv(uint64_t seed, uint64_t id,
                                                    int steps_max) const {
  if (places() && preset()) return std::make_unique<PresetEnv>(*placement, seed, id, steps_max);
  if (places()) return std::make_unique<PlacementEnv>(*placement, seed, id, steps_max);
  if (scales()) return std::make_unique<ScalingEnv>(*scaling, seed, id, steps_max);
  if (scales_by_preset())
    return std::make_unique<ScalingPresetEnv>(*scaling_preset, seed, id, steps_max);
  return std::make_unique<Env>(*world, *task, law, seed, id,
                               std::min(steps_max, task->max_steps()));
}

EvolutionStart TrainingWorld::EvolutionBegins() const {
  return routes() ? routing->Start() : PlacementStart(*placement);
}

std::unique_ptr<EpisodePlayer> TrainingWorld::NewPlayer() const {
  return routes() ? routing->NewPlayer() : NewPlacementPlayer(*placement);
}

GraphWidths TrainingWorld::widths() const {
  if (routes()) return RegionScalingTask::kWidths;
  if (places()) return PlacementTask::Widths(preset());
  if (scales_by_preset()) return ScalingPresetTask::kWidths;
  return scales() ? ScalingTask::Widths(scaling->task->rows()) : task->widths();
}

const FeatureTable& TrainingWorld::features() const {
  if (routes()) return RegionScalingTask::Features();
  if (places()) return PlacementTask::Features(preset());
  if (scales_by_preset()) return ScalingPresetTask::Features(scaling_preset->task->preset());
  return scales() ? ScalingTask::Features(scaling->task->rows()) : task->features();
}

std::string TrainingWorld::FeatureHash() const {
  if (routes()) return RegionScalingTask::FeatureHash();
  if (places()) return PlacementTask::FeatureHash(preset());
  if (scales_by_preset()) return ScalingPresetTask::FeatureHash(scaling_preset->task->preset());
  return scales() ? ScalingTask::FeatureHash(scaling->task->rows()) : task->FeatureHash();
}

}  // namespace rudderfish
