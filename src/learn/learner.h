// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "learn/rollout.h"
#include "learn/train_options.h"
#include "nn/adam.h"
#include "nn/candidate_net.h"
#include "nn/safetensors.h"
#include "nn/workspace.h"

// What an algorithm is to the trainer: something that acts for a while, learns from it and reports,
// one iteration after another, and whose whole state can be saved and restored. Restored into a new
// learner of the same options, it goes on to the bit; nothing it computes depends on the number of
// threads.

namespace rudderfish {

// What one iteration reports. A figure the algorithm does not have is not a number.
struct IterationFigures {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  EpisodeTotals episodes;
  int64_t env_steps = 0;
  double policy_loss = kNone;
  double value_loss = kNone;
  double entropy = kNone;
  double approx_kl = kNone;
  double clip_fraction = kNone;
  double explained_variance = kNone;
  double gradient_norm = kNone;
  double learning_rate = kNone;
  double mean_q = kNone;   // Of the alternatives that were taken.
  double epsilon = kNone;  // Share of random choices.
  Duration collecting{0};  // The rest of the iteration's time went into learning.
};

class Learner {
 public:
  virtual ~Learner() = default;

  // `progress` in [0, 1] places the schedules; it must be the same again when an iteration is
  // repeated.
  virtual IterationFigures Iterate(uint64_t iteration, double progress, ThreadPool* pool) = 0;

  virtual int64_t steps_per_iteration() const = 0;
  virtual const nn::CandidateNet& net() const = 0;

  // To begin with the weights of a checkpoint in place of fresh ones.
  virtual Result<void> BeginWith(const nn::SafetensorsFile& file) = 0;

  // Weights, moments, counters, environments: all that an iteration depends on.
  virtual void Save(nn::SafetensorsFile* file) const = 0;
  virtual Result<void> Restore(const nn::SafetensorsFile& file, ThreadPool* pool) = 0;

  // Of every thread's passes through networks, whose profiles tell what they cost.
  virtual std::vector<nn::Workspace*> Workspaces() = 0;
};

// Whether the algorithm is one for such worlds; if not, in words that say so.
Result<void> CheckCanLearn(const TrainOptions& options, const TrainingWorld& world);

// REQUIRES: `worlds` not empty, with equal feature tables, and CheckCanLearn; they outlive the
// learner.
std::unique_ptr<Learner> MakeLearner(const TrainOptions& options,
                                     std::span<const TrainingWorld> worlds);

// Fresh weights, the same for every algorithm.
nn::CandidateNet MakeNet(const TrainOptions& options, const GraphWidths& widths);

// Parts of a learner's state, as tensors PREFIX + name.
void SaveAdam(const nn::Adam& adam, nn::SafetensorsFile* file);
Result<void> RestoreAdam(const nn::SafetensorsFile& file, nn::Adam* adam);
void SaveCursors(std::span<const EnvCursor> cursors, nn::SafetensorsFile* file);
Result<std::vector<EnvCursor>> RestoreCursors(const nn::SafetensorsFile& file, int envs);

}  // namespace rudderfish
