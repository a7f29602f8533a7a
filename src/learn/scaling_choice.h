// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/thread_pool.h"
#include "learn/scaling_env.h"
#include "nn/candidate_net.h"
#include "policy/neural_scaling.h"

// At which price a trained network keeps the limit on late requests at the least cost, and whether
// it then does better than autoscalers that need no learning: on validation episodes of the event
// simulator, which neither training nor evaluation nor calibration has.

namespace rudderfish {

// Every price and every autoscaler first runs a quarter of the episodes, the best two of each all
// of them. Where the best autoscaler is better the verdict steps back. The same for any number of
// threads. REQUIRES: at least 4 episodes of each load.
ScalingVerdict ChooseScaling(const ScalingWorld& world,
                             const std::shared_ptr<const nn::CandidateNet>& net,
                             double violations_max, int episodes, uint64_t seed, ThreadPool* pool);

}  // namespace rudderfish
