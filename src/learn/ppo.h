// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "learn/rollout.h"
#include "nn/adam.h"
#include "nn/candidate_net.h"

// Proximal policy optimisation (Schulman et al. 2017) with the clipped objective over the allowed alternatives.
// Invalid moves are not among the alternatives, so nothing is masked after the fact. Gradients are summed in slices of
// fixed size and order: the same seed gives the same weights for any number of threads.

namespace rudderfish {

struct PpoOptions {
  int epochs = 2;
  int minibatch = 512;
  float clip = 0.2f;
  float value_weight = 0.5f;
  float entropy_start = 0.02f;  // Falls linearly to 0.
  float learning_rate_start = 4e-3f;
  float learning_rate_end = 4e-4f;
  float max_gradient_norm = 0.5f;
};

struct PpoMetrics {
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;
  double approx_kl = 0;      // mean of (ratio - 1) - log ratio (Schulman, "Approximating KL divergence", 2020)
  double clip_fraction = 0;
  double explained_variance = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
};

class Ppo {
 public:
  Ppo(const PpoOptions& options, uint64_t seed, nn::CandidateNet* net);

  // One pass over what `envs` collected. `progress` in [0, 1] places the schedules.
  PpoMetrics Update(VectorEnv* envs, uint64_t iteration, double progress, ThreadPool* pool);

  nn::Adam& adam() { return adam_; }
  const nn::Adam& adam() const { return adam_; }
  const PpoOptions& options() const { return options_; }

  // Counts time and work of the dense products of all threads from now on.
  void Profile();
  nn::DenseProfile profile() const;

 private:
  static constexpr int kChunkSamples = 64;  // The unit of summation, whatever the number of threads.

  struct Chunk {
    GraphBatch questions;
    std::vector<float> gradient;
    std::vector<float> log_probabilities, probabilities;
    std::vector<int32_t> samples;
    double policy_loss = 0, value_loss = 0, entropy = 0, approx_kl = 0, clipped = 0;
    std::unique_ptr<nn::Workspace> workspace;
  };
  struct Weights {
    float entropy;
    float per_sample;
  };

  void Normalise(VectorEnv* envs, PpoMetrics* metrics);
  void Shuffle(uint64_t iteration, int epoch);
  void Accumulate(VectorEnv* envs, std::span<const int32_t> samples, const Weights& weights, Chunk* chunk);

  PpoOptions options_;
  uint64_t seed_;
  nn::CandidateNet* net_;
  nn::Adam adam_;
  std::vector<int32_t> order_;
  std::vector<float> advantages_;  // Normalised, by global sample.
  std::vector<Chunk> chunks_;
  std::vector<float> gradient_;
};

}  // namespace rudderfish
