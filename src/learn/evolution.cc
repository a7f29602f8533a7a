// SPDX-License-Identifier: Apache-2.0
#include "learn/evolution.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"

namespace rudderfish {
namespace {

// Of the seed; see kChoiceStream in rollout.cc.
constexpr uint64_t kStepStream = uint64_t{7} << 40, kEpisodeStream = uint64_t{8} << 40;

constexpr double kLeastDeviation = 1e-6;  // Below it a feature tells no candidates apart.
constexpr float kMostOfAPair = 2;

// How far values of a question are apart: sums over questions.
struct Spread {
  double squares = 0;
  int64_t questions = 0;

  void Add(std::span<const float> values) {
    double mean = 0, sum = 0;
    for (const float value : values) mean += value / static_cast<double>(values.size());
    for (const float value : values) sum += (value - mean) * (value - mean);
    squares += sum / static_cast<double>(values.size());
    ++questions;
  }
  double deviation() const {
    return questions > 0 ? std::sqrt(squares / static_cast<double>(questions)) : 0;
  }
};

}  // namespace

struct Evolution::Episode {
  double cost = 0;  // Of the weights as they are.
  int64_t decisions = 0, tried = 0;
  std::vector<double> difference;  // [pair]
};

Evolution::Evolution(const EvolutionOptions& options, std::span<const TrainingWorld> worlds,
                     uint64_t seed, nn::CandidateNet* net)
    : options_(options),
      worlds_(worlds.begin(), worlds.end()),
      seed_(seed),
      net_(net),
      start_(worlds[0].EvolutionBegins()),
      units_(start_.weights.size()),
      weights_(start_.weights),
      steps_(options.pairs, std::vector<float>(start_.weights.size())),
      adam_(weights_.size(), {.beta1 = 0.8F, .beta2 = 0.95F, .max_gradient_norm = 0}),
      episodes_(options.episodes) {
  MeasureUnits();
  for (float& one : net_->tensor("logit.weight")) one = 0;
  WriteNet();
}

Evolution::~Evolution() = default;

// And turns the weights that were begun with into units.
void Evolution::MeasureUnits() {
  const std::unique_ptr<EpisodePlayer> player = worlds_[0].NewPlayer();
  // Of each feature, in the questions that are asked of it.
  std::vector<Spread> scores(units_.size()), features(units_.size());
  std::vector<float> column;
  const auto look = [&](const EpisodePlayer::Question& question) {
    const size_t last = std::min(features.size(), static_cast<size_t>(question.last));
    for (auto f = static_cast<size_t>(question.first); f < last; ++f) {
      scores[f].Add(question.scores);
      column.clear();
      for (size_t i = 0; i < question.scores.size(); ++i)
        column.push_back(question.rows[i * static_cast<size_t>(question.width) + f]);
      features[f].Add(column);
    }
  };
  for (const uint64_t seed : start_.seeds) player->Play(weights_, seed, look);
  for (size_t f = 0; f < units_.size(); ++f) {
    const double of_scores = scores[f].deviation();
    const double apart = of_scores > kLeastDeviation ? of_scores : 1.0;
    const double deviation = features[f].deviation();
    const bool tells = deviation > kLeastDeviation;
    units_[f] = tells ? static_cast<float>(apart / deviation) : 0.0f;
    weights_[f] = tells ? weights_[f] / units_[f] : 0.0f;
  }
}

void Evolution::WriteNet() {
  const std::span<float> skip = net_->tensor("logit.skip");
  for (size_t f = 0; f < weights_.size(); ++f) skip[f] = weights_[f] * units_[f];
}

void Evolution::SetWeights(std::span<const float> weights) {
  CHECK_EQ(weights.size(), weights_.size());
  std::copy(weights.begin(), weights.end(), weights_.begin());
  WriteNet();
}

int64_t Evolution::steps_per_iteration() const {
  return start_.decisions * options_.episodes * (2 * options_.pairs + 1);
}

// As features are weighed; sign 0: the weights as they are.
std::vector<float> Evolution::Tried(int pair, float sign) const {
  std::vector<float> tried(weights_.size());
  for (size_t f = 0; f < tried.size(); ++f)
    tried[f] = (weights_[f] + sign * options_.deviation * steps_[pair][f]) * units_[f];
  return tried;
}

void Evolution::Play(uint64_t iteration, int index, EpisodePlayer* player, Episode* episode) const {
  const uint64_t seed = player->SeedOf(Rng(seed_, kEpisodeStream + index, iteration));
  const auto cost = [&](const std::vector<float>& weights) {
    const EpisodeResult played = player->Play(weights, seed, {});
    episode->decisions = played.decisions;
    episode->tried += played.decisions;
    return played.cost;
  };
  *episode = {};
  for (int pair = 0; pair < options_.pairs; ++pair)
    episode->difference.push_back(cost(Tried(pair, 1)) - cost(Tried(pair, -1)));
  episode->cost = cost(Tried(0, 0));
  for (double& one : episode->difference) one /= std::max(episode->cost, 1e-9);
}

EvolutionMetrics Evolution::Iterate(uint64_t iteration, double progress, ThreadPool* pool) {
  for (int pair = 0; pair < options_.pairs; ++pair) {
    Rng rng(seed_, kStepStream + pair, iteration);
    for (size_t f = 0; f < steps_[pair].size(); ++f) {
      const auto step = static_cast<float>(rng.Normal());
      steps_[pair][f] = start_.from.empty() || start_.from[f] <= progress ? step : 0;
    }
  }
  while (static_cast<int>(players_.size()) < pool->size()) {
    auto& crew = players_.emplace_back();
    for (const TrainingWorld& world : worlds_) crew.push_back(world.NewPlayer());
  }
  pool->ParallelFor(options_.episodes, [&](int index, int worker) {
    Play(iteration, index, players_[worker][index % worlds_.size()].get(), &episodes_[index]);
  });
  const double count = options_.episodes;
  EvolutionMetrics metrics{.episodes = options_.episodes};
  std::vector<double> difference(options_.pairs);
  for (const Episode& one : episodes_) {
    metrics.cost += one.cost / count;
    metrics.decisions += static_cast<double>(one.decisions) / count;
    metrics.tried += one.tried;
    for (int pair = 0; pair < options_.pairs; ++pair)
      difference[pair] += one.difference[pair] / count;
  }
  for (const double one : difference) metrics.rms += one * one / options_.pairs;
  metrics.rms = std::sqrt(metrics.rms);
  std::vector<float> gradient(weights_.size());
  for (int pair = 0; pair < options_.pairs && metrics.rms > 0; ++pair) {
    const float weight =
        std::clamp(static_cast<float>(difference[pair] / metrics.rms), -kMostOfAPair, kMostOfAPair);
    for (size_t f = 0; f < gradient.size(); ++f) {
      if (units_[f] > 0)
        gradient[f] += weight * steps_[pair][f] / static_cast<float>(options_.pairs);
    }
  }
  const auto fall = static_cast<float>(std::clamp(progress, 0.0, 1.0));
  const float rate = options_.learning_rate_start +
                     fall * (options_.learning_rate_end - options_.learning_rate_start);
  metrics.gradient_norm = adam_.Step(weights_, gradient, rate);
  metrics.learning_rate = rate;
  WriteNet();
  return metrics;
}

}  // namespace rudderfish
