// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "learn/rollout.h"
#include "nn/adam.h"
#include "nn/candidate_net.h"

// Proximal policy optimisation (Schulman et al. 2017) with the clipped objective over the allowed
// alternatives. Invalid moves are not among the alternatives, so nothing is masked after the fact.
// A net that remembers learns from sequences of questions of one environment, each from what was
// remembered before it; gradients go back through the sequence (truncated backpropagation through
// time; M. Hausknecht, P. Stone, "Deep recurrent Q-learning", 2015, for replayed memory).
// Gradients are summed in slices of fixed size and order: the same seed gives the same weights for
// any number of threads.

namespace rudderfish {

// What of the policy's gain is raised. kClipped: the ratio of probabilities times the advantage, up
// to the clip, so that several passes over the same experience do no harm. kLogLikelihood: the
// logarithm of the probability times the advantage, as advantage actor-critic does (V. Mnih et al.,
// "Asynchronous methods for deep reinforcement learning", ICML 2016, synchronous), with one pass
// over everything at once. At the first step of the first pass both have the same gradient (S.
// Huang et al., "A2C is a special case of PPO", 2022).
enum class Surrogate { kClipped, kLogLikelihood };

struct PpoOptions {
  Surrogate surrogate = Surrogate::kClipped;  // Not written: the algorithm says it.
  int epochs = 2;
  int minibatch = 512;
  int sequence = 16;  // Questions through which gradients go back, of a net that remembers.
  float clip = 0.2f;
  float value_weight = 0.5f;
  float entropy_start = 0.02f;  // Falls linearly to 0.
  float learning_rate_start = 4e-3f;
  float learning_rate_end = 4e-4f;
  float max_gradient_norm = 0.5f;

  // Where a few episodes are far out: normalised advantages count up to so much, and beyond this
  // error the loss of the value grows linearly (Huber); 0: no limit.
  float advantage_max = 0;
  float value_error_max = 0;

  // Weight of the feature gain_relative in a fresh policy's logits, if the task has it: a policy
  // that begins by liking what gains most has less to find out.
  float gain_prior = 2;
};

struct PpoMetrics {
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;
  double approx_kl =
      0;  // mean of (ratio - 1) - log ratio (Schulman, "Approximating KL divergence", 2020)
  double clip_fraction = 0;
  double explained_variance = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
};

// What was recorded of one question, with its advantage normalised.
struct PpoSample {
  int choice = 0;  // Alternative.
  float log_probability = 0;
  float advantage = 0;
  float target = 0;  // Of the value: the return.
};

// The loss of one sample, with p the policy now, A the advantage, r = p(a) / p_old(a), R the
// return:
//   L = -min(r A, clip(r) A) + value_weight (V - R)² - entropy_weight H(p), with Huber's loss in
//   place of the square where value_error_max is given, and -A log p(a) in place of the first term
//   for Surrogate::kLogLikelihood
//   dL/dlogit_j = dL/dlog p(a) (1[j = a] - p_j) + entropy_weight p_j (log p_j + H)
struct PpoLoss {
  float policy = 0;
  float value = 0;  // (V - R)², unweighted.
  float entropy = 0;
  float approx_kl = 0;
  bool clipped = false;
  float dvalue = 0;

  // `log_p` and `p` of all alternatives, stop last; writes as many derivatives.
  static PpoLoss Of(const PpoOptions& options, float entropy_weight, std::span<const float> log_p,
                    std::span<const float> p, float value, const PpoSample& sample,
                    std::span<float> dlogits);
};

class Ppo {
 public:
  static constexpr int kChunkSamples =
      64;  // The unit of summation, whatever the number of threads.

  Ppo(const PpoOptions& options, uint64_t seed, nn::CandidateNet* net);

  // Advantage actor-critic of these options: one pass over a rollout of so many samples, not
  // clipped.
  static PpoOptions ActorCritic(PpoOptions options, int samples);

  // One pass over what `envs` collected. `progress` in [0, 1] places the schedules.
  PpoMetrics Update(VectorEnv* envs, uint64_t iteration, double progress, ThreadPool* pool);

  nn::Adam& adam() { return adam_; }
  const nn::Adam& adam() const { return adam_; }
  const PpoOptions& options() const { return options_; }

  void AddWorkspaces(std::vector<nn::Workspace*>* all);

 private:
  struct Chunk {
    GraphBatch questions;
    std::vector<int32_t> samples;  // Of all environments, in the order of the questions.
    std::vector<float> before;     // [sequence][memory] What is remembered before it,
    std::vector<uint8_t> fresh;    // [sample] and whether an episode begins.
    std::vector<float> gradient;
    std::vector<float> log_probabilities, probabilities, derivatives;
    std::vector<float> no_stop;  // Scores of stop where that is no alternative.
    double policy_loss = 0, value_loss = 0, entropy = 0, approx_kl = 0, clipped = 0;
    std::unique_ptr<nn::Workspace> workspace;
  };
  struct Weights {
    float entropy;
    float per_sample;
  };

  void Normalise(VectorEnv* envs, PpoMetrics* metrics);
  void Shuffle(uint64_t iteration, int epoch);
  void Gather(VectorEnv* envs, std::span<const int32_t> sequences, Chunk* chunk) const;
  void Accumulate(VectorEnv* envs, std::span<const int32_t> sequences, const Weights& weights,
                  Chunk* chunk);

  PpoOptions options_;
  uint64_t seed_;
  nn::CandidateNet* net_;
  int sequence_;  // 1 of a net that remembers nothing: every question for itself.
  nn::Adam adam_;
  std::vector<int32_t> order_;     // Of sequences.
  std::vector<float> advantages_;  // Normalised, by global sample.
  std::vector<Chunk> chunks_;
  std::vector<float> gradient_;
};

}  // namespace rudderfish
