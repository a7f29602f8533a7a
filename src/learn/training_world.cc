// SPDX-License-Identifier: Apache-2.0
#include "learn/training_world.h"

#include <algorithm>

namespace rudderfish {

std::unique_ptr<Environment> TrainingWorld::MakeEnv(uint64_t seed, uint64_t id,
                                                    int steps_max) const {
  if (places()) return std::make_unique<PlacementEnv>(*placement, seed, id, steps_max);
  return std::make_unique<Env>(*world, *task, law, seed, id,
                               std::min(steps_max, task->max_steps()));
}

}  // namespace rudderfish
