// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "learn/replay.h"
#include "nn/adam.h"
#include "nn/candidate_net.h"

// Deep Q-learning over the allowed alternatives (Mnih et al. 2015), double (van Hasselt et al.
// 2016), dueling (Wang et al. 2016), with n-step returns and a slowly following target network. The
// network is the one PPO trains; its outputs read as value V and advantages A:
//
//   Q(a) = V + A(a) - mean of A over the question's alternatives, stop included where there is one
//   y    = Σ_{k<n} γ^k r_k + γ^n Q_target(s', argmax_a Q(s', a))
//   L    = Huber(Q(a) - y), slope at most 1
//
// The argmax of Q is that of A: a checkpoint acts the same whichever algorithm made it. Gradients
// are summed in slices of fixed size and order: the same seed gives the same weights for any number
// of threads.

namespace rudderfish {

struct DqnOptions {
  ReplayOptions replay;
  int warm_up_samples = 8192;  // In memory before learning starts.
  int updates = 4;             // An iteration, each of one minibatch.
  int minibatch = 512;
  int n_step = 3;
  float gamma = 1.0f;
  float target_rate = 0.02f;  // Of the way from target to network, after each update,
  int target_every = 1;       // or after one in so many.
  float epsilon_start = 0.5f;
  float epsilon_end = 0.02f;
  float epsilon_fall = 0.2f;  // Share of the run in which it falls, linearly.
  float learning_rate_start = 3e-3f;
  float learning_rate_end = 3e-4f;
  float max_gradient_norm = 1.0f;
};

struct DqnMetrics {
  double loss = 0;
  double mean_q = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  double epsilon = 0;
};

// The loss of one question: `scores` are A of its alternatives, stop last if it is one.
struct DuelingLoss {
  float loss = 0;
  float q = 0;
  float slope = 0;  // dL/dQ(choice) = dL/dV; dL/dA(a) = slope · (1[a = choice] - 1 / alternatives)
};
DuelingLoss HuberLoss(std::span<const float> scores, float value, int choice, float target);

class Dqn {
 public:
  static constexpr int kChunkSamples =
      64;  // The unit of summation, whatever the number of threads; the last may be half of it.

  Dqn(const DqnOptions& options, std::span<const TrainingWorld> worlds, uint64_t seed,
      nn::CandidateNet* net);

  // `progress` in [0, 1] places the schedules.
  void Collect(uint64_t iteration, double progress, ThreadPool* pool);
  DqnMetrics Update(uint64_t iteration, double progress, ThreadPool* pool);

  Replay& replay() { return replay_; }
  const Replay& replay() const { return replay_; }
  nn::CandidateNet& target() { return target_; }
  const nn::CandidateNet& target() const { return target_; }
  nn::Adam& adam() { return adam_; }
  const nn::Adam& adam() const { return adam_; }

  void AddWorkspaces(std::vector<nn::Workspace*>* all);

 private:
  struct Outputs {
    std::vector<float> logits, stop, value;
  };
  struct Chunk {
    GraphBatch questions, next;
    std::vector<Transition> transitions;
    std::vector<int> next_of;  // [sample] row in `next`, or -1.
    std::vector<float> targets, scores, gradient;
    Outputs online, delayed;  // Of `next`.
    double loss = 0, q = 0;
    std::unique_ptr<nn::Workspace> learning, looking;
  };

  float Epsilon(double progress) const;
  void Draw(uint64_t iteration, int update);
  void Accumulate(std::span<const Transition> part, Chunk* chunk) const;
  void Bootstrap(Chunk* chunk) const;
  void FollowTarget();

  DqnOptions options_;
  uint64_t seed_;
  nn::CandidateNet* net_;
  nn::CandidateNet target_;
  nn::Adam adam_;
  Replay replay_;
  std::vector<Transition> batch_;
  std::vector<Chunk> chunks_;
  std::vector<float> gradient_;
};

}  // namespace rudderfish
