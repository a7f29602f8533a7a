// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "learn/env.h"
#include "learn/placement_env.h"
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

  const PlacementWorld* placement = nullptr;  // Of placing pods; then the others are not there.

  bool places() const { return placement != nullptr; }

  // Episodes are cut after `steps_max` decisions, if not before by the task.
  std::unique_ptr<Environment> MakeEnv(uint64_t seed, uint64_t id, int steps_max) const;

  GraphWidths widths() const { return places() ? PlacementTask::kWidths : task->widths(); }
  const FeatureTable& features() const {
    return places() ? PlacementTask::Features() : task->features();
  }
  std::string FeatureHash() const {
    return places() ? PlacementTask::FeatureHash() : task->FeatureHash();
  }
};

}  // namespace rudderfish
