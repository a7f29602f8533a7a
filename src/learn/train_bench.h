// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "learn/learner.h"

// How fast this machine learns. Wall time of the real thing, nothing left out: `bench env` steps
// environments, `bench train` runs whole iterations of the learner that `train` runs.

namespace rudderfish {

// One core: step, reset where an episode ends, question and its encoding, moves drawn at random
// among the allowed alternatives. Runs for `seconds` after a warm-up.
double MeasureEnvStepsPerSecond(std::span<const TrainingWorld> worlds, uint64_t seed,
                                double seconds);

// Likewise of scaling, but what the Model advises is chosen, as training begins: rungs at random
// leave an application in overload half of the time, of which a step takes twice as long.
double MeasureScalingStepsPerSecond(const ScalingWorld& world, uint64_t seed, double seconds);

struct TrainBench {
  double env_steps_per_second = 0;
  int threads = 0;
  int epochs = 0;               // Passes over what was collected.
  double mflop_per_sample = 0;  // Dense products of one forward pass of one question.
  double mflop_per_step = 0;    // The same of all that is done for one environment step.
  double dense_share = 0;       // Of the threads' wall time, spent in dense products.
  double dense_gflops = 0;      // Their rate, of one thread.
};

// Measures the rate for `seconds`, then, in half of that, what the clock says of the kernels:
// reading it costs time.
TrainBench MeasureTraining(const TrainOptions& options, std::span<const TrainingWorld> worlds,
                           double seconds);

}  // namespace rudderfish
