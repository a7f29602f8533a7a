// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.h"

// Who plays whole episodes of one world by a linear policy, for an evolution strategy: of each
// question the candidate is taken whose features, by weight, add up to the most.

namespace rudderfish {

struct EpisodeResult {
  double cost = 0;        // Smaller is better.
  int64_t decisions = 0;  // Questions with a choice: pods placed, or regions asked about.
};

class EpisodePlayer {
 public:
  // A question: the score of each candidate, and their features, `width` floats a row, of which
  // those in [first, last) are asked of such questions.
  struct Question {
    std::span<const float> scores;
    const float* rows = nullptr;
    int width = 0;
    int first = 0, last = std::numeric_limits<int>::max();
  };
  using Seen = std::function<void(const Question&)>;

  virtual ~EpisodePlayer() = default;

  // `seen`, where it is not empty, is told of each question.
  virtual EpisodeResult Play(std::span<const float> weights, uint64_t seed, const Seen& seen) = 0;

  // The seed of an episode that can be played.
  virtual uint64_t SeedOf(Rng rng) = 0;
};

// What evolution begins with, and episodes by which it looks at features.
struct EvolutionStart {
  std::vector<float> weights;  // [feature]
  // [feature] From which share of the training on its weight is learned; kNever: it stays as it is.
  // Empty: all from the beginning.
  std::vector<double> from;
  static constexpr double kNever = 2;
  std::vector<uint64_t> seeds;  // Some.
  int64_t decisions = 1;        // Of an episode, about.
};

}  // namespace rudderfish
