// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/graph_batch.h"
#include "base/thread_pool.h"
#include "learn/env_slice.h"
#include "nn/candidate_net.h"

// Many environments stepped together, in slices (env_slice.h), and what they saw: the experience of
// an on-policy algorithm. The same for any number of threads.

namespace rudderfish {

// What one slice recorded: question after question, time-major (step, environment), then the state
// of each environment after the last step is the next rollout's first.
struct SliceRollout {
  GraphBatch questions;
  std::vector<int32_t> choices;  // Alternative: candidate index, or the candidate count for stop.
  std::vector<float> log_probability;  // Of the choice, when it was made.
  std::vector<float> values;
  std::vector<float> rewards;    // With the value beyond a truncation added.
  std::vector<uint8_t> ended;    // After this step a new episode began.
  std::vector<float> discounts;  // Of what follows the step, for the time that passed; empty: 1.
  std::vector<float> memory;  // [sample][net's memory()] What was remembered before each question.
  std::vector<float> last_value;  // Per environment, of the question after the last step.
  std::vector<float> advantages;
  std::vector<float> returns;
};

struct RolloutOptions {
  int envs = 256;
  int steps = 32;
  int envs_per_slice = 16;
  int episode_steps_max = 100;  // Training episodes are cut here, if not before by the task.
  float gamma = 1.0f;           // Times the task's own discount.
  float lambda = 0.85f;
};

// Generalised advantage estimation (Schulman et al. 2016) over a time-major rollout of
// environments, each with its gamma, which is times the discount of the step:
//   A_t = delta_t + gamma lambda A_{t+1} within an episode, delta_t = r_t + gamma V_{t+1} - V_t
void EstimateAdvantages(std::span<const float> gammas, float lambda, SliceRollout* rollout);

class VectorEnv {
 public:
  // REQUIRES of `worlds`: as EnvSlice. `memory`: shape().memory() of the nets that will answer.
  VectorEnv(std::span<const TrainingWorld> worlds, uint64_t seed, const RolloutOptions& options,
            int memory = 0);

  // Runs options.steps steps in every environment with the net's stochastic policy and estimates
  // advantages. `iteration` keys the choices' randomness.
  void Collect(const nn::CandidateNet& net, uint64_t iteration, ThreadPool* pool);

  const RolloutOptions& options() const { return options_; }
  bool may_stop() const { return may_stop_; }
  int slice_count() const { return static_cast<int>(slices_.size()); }
  SliceRollout& slice(int index) { return slices_[index].rollout; }
  const EpisodeTotals& totals() const { return totals_; }  // Of the last Collect.

  // Where all environments stand, and back.
  std::vector<EnvCursor> Cursors() const;
  Result<void> Restore(std::span<const EnvCursor> cursors, ThreadPool* pool);

  // [environment][memory] What is remembered of the episodes under way, and back.
  std::vector<float> Memory() const;
  void RestoreMemory(std::span<const float> memory);

  void AddWorkspaces(std::vector<nn::Workspace*>* all);

 private:
  struct Slice : EnvSlice {
    using EnvSlice::EnvSlice;

    std::vector<float> gammas;  // Of the environments.
    SliceRollout rollout;
    GraphBatch beyond;  // Questions after truncation and after the last step.
    std::vector<float> log_probabilities, probabilities;
    std::vector<float> remembered;  // [environment][memory]
    std::vector<float> recalled;    // [memory] A copy that may be changed.
  };

  void CollectSlice(const nn::CandidateNet& net, uint64_t iteration, int index);
  float ValueOf(const nn::CandidateNet& net, int i, Slice* slice);

  RolloutOptions options_;
  uint64_t seed_;
  int memory_;
  bool may_stop_;  // Whether stop is among the alternatives; else its score counts as -infinity.
  std::vector<Slice> slices_;
  EpisodeTotals totals_;
};

}  // namespace rudderfish
