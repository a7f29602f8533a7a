// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/thread_pool.h"
#include "learn/scaling_env.h"
#include "learn/train_options.h"
#include "nn/candidate_net.h"
#include "policy/neural_scaling.h"

// At which price a trained network keeps the limit on late requests at the least cost, and whether
// it then does better than the autoscaler it is to beat: on validation episodes of the event
// simulator, which neither training nor evaluation has. Where an autoscaler was calibrated, they
// are those it was chosen on.
//
// What is allowed is the limit, but no more than 0.05 points above the autoscaler's own violations
// (AllowedAgainst),
// so that a net is cheaper by being better and not by being late. Where no autoscaler keeps the
// limit, the network that does decides; where neither does, what the autoscaler has is allowed
// (LimitAmong, ScalingRival::allowed), and the cheaper of the two within that is better.
//
// How violations fall with the price the Model tells, in an instant; how far it is off, a few runs
// on requests: of a quarter of the episodes first, then of all, which alone count. So it is found
// too whether the network is cheaper with pods for a minimum rate, as autoscalers have minReplicas:
// shares of the highest rates there are, and none unless it is worth it.
//
// Where late requests have a weight (ScalingObjective) there is no limit and nothing to find but
// the minimum: better is what makes cost and late requests, by weight, less.

namespace rudderfish {

struct ScalingChoiceOptions {
  double violations_max = 0.01;
  int episodes = 16;  // Of each load; those of the rival, if there is one. At least 4.
  uint64_t seed = 1;
  std::optional<ScalingRival> rival;  // None: the best of 21 settings is found first.
};

// The same for any number of threads.
ScalingVerdict ChooseScaling(const ScalingWorld& world,
                             const std::shared_ptr<const nn::CandidateNet>& net,
                             const ScalingChoiceOptions& options, ThreadPool* pool);

}  // namespace rudderfish
