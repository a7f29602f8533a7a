// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "learn/training_world.h"
#include "nn/workspace.h"

// Environments that one thread steps side by side, so that a network answers all their questions in
// one pass. Training splits its environments into slices of fixed size; a slice runs all its steps
// without waiting for others. Which thread runs it is chance, results are not: every environment
// has its own random streams, and a network's answer to a question does not depend on its batch.

namespace rudderfish {

// Sums over the steps of a rollout, and over the episodes that ended in it.
struct EpisodeTotals {
  int64_t episodes = 0;
  int64_t steps = 0;
  double rewards = 0;
  double initial = 0;
  double final = 0;
  double moves = 0;
  int64_t truncated = 0;

  void Add(const EpisodeTotals& other);
};

struct EnvSlice {
  // Environments first_id, first_id + 1 ... of the run, each in its first episode. Environment i
  // plays in world i modulo their number. REQUIRES: equal feature tables of the worlds' tasks.
  EnvSlice(std::span<const TrainingWorld> worlds, uint64_t seed, uint64_t first_id, int count,
           int episode_steps_max);

  // Counts what environment `i` did; where that ended its episode, the next one begins.
  void EndStep(int i, const StepResult& result);

  // Puts every environment where its cursor stands.
  Result<void> Restore(std::span<const EnvCursor> cursors);

  std::vector<std::unique_ptr<Environment>> envs;
  EpisodeTotals totals;  // Since they were last set to zero.

  // Answers of a network to one question of each environment, and its scratch space.
  std::vector<float> logits, stop, value;
  std::unique_ptr<nn::Workspace> workspace;
};

}  // namespace rudderfish
