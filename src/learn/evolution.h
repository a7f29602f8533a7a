// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "learn/episode_player.h"
#include "learn/training_world.h"
#include "nn/adam.h"
#include "nn/candidate_net.h"

// An evolution strategy (T. Salimans et al., "Evolution strategies as a scalable
// alternative to reinforcement learning", 2017): it judges whole episodes, not single choices. What
// a choice leads to hours later, through pods unknown at that time, counts in full, and nothing has
// to tell which choice it was.
//
// The policy is linear: a candidate's score is the sum of its features by weight, the network's
// skip weights, while all else of the network adds nothing. An iteration tries pairs of opposite
// steps away from the weights on the same episodes:
//
//   d_p = mean over episodes of (cost(w + s u z_p) - cost(w - s u z_p)) / cost(w)
//   g   = mean over pairs of z_p d_p / rms(d), each at most 2
//   w  -= rate u Adam(g)
//
//   cost   of an episode, as its player says (learn/episode_player.h)
//   u      unit of a weight: that by which its feature tells candidates of a question apart as much
//          as the weights did that were begun with, or by 1 where those tell none apart; 0 of
//          features that tell none apart
//
// The same for any number of threads.

namespace rudderfish {

struct EvolutionOptions {
  int pairs = 8;           // An iteration,
  int episodes = 6;        // each on so many episodes.
  float deviation = 0.3f;  // s.
  float learning_rate_start = 0.15f;
  float learning_rate_end = 0.03f;
};

struct EvolutionMetrics {
  int64_t episodes = 0;  // That w met, with these means:
  double cost = 0;
  double decisions = 0;
  int64_t tried = 0;  // Decisions of all that were tried.
  double rms = 0;     // Of d.
  double gradient_norm = 0;
  double learning_rate = 0;
};

class Evolution {
 public:
  // Sets the net to what the first world begins with. REQUIRES: worlds have players
  // (TrainingWorld::NewPlayer); they outlive it.
  Evolution(const EvolutionOptions& options, std::span<const TrainingWorld> worlds, uint64_t seed,
            nn::CandidateNet* net);
  ~Evolution();

  EvolutionMetrics Iterate(uint64_t iteration, double progress, ThreadPool* pool);

  int64_t steps_per_iteration() const;  // About.
  nn::Adam& adam() { return adam_; }
  const nn::Adam& adam() const { return adam_; }

  // Weights in their units, of which the net's are made.
  std::span<const float> weights() const { return weights_; }
  void SetWeights(std::span<const float> weights);

 private:
  struct Episode;

  void MeasureUnits();
  void Play(uint64_t iteration, int index, EpisodePlayer* player, Episode* episode) const;
  std::vector<float> Tried(int pair, float sign) const;
  void WriteNet();

  EvolutionOptions options_;
  std::vector<TrainingWorld> worlds_;
  uint64_t seed_;
  nn::CandidateNet* net_;
  EvolutionStart start_;
  std::vector<float> units_, weights_;     // [candidate feature]
  std::vector<std::vector<float>> steps_;  // [pair] z.
  nn::Adam adam_;
  std::vector<std::vector<std::unique_ptr<EpisodePlayer>>> players_;  // [thread][world]
  std::vector<Episode> episodes_;
};

}  // namespace rudderfish
