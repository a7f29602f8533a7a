// SPDX-License-Identifier: Apache-2.0
#include "learn/evolution.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

// Of the seed; see kChoiceStream in rollout.cc.
constexpr uint64_t kStepStream = uint64_t{7} << 40, kEpisodeStream = uint64_t{8} << 40;

constexpr size_t kUnitEpisodes = 4;       // By which units are measured.
constexpr double kLeastDeviation = 1e-6;  // Below it a feature tells no candidates apart.
constexpr float kMostOfAPair = 2;

int FeatureCount() { return static_cast<int>(PlacementTask::Features().candidate.size()); }

bool WeighsFragmentation(const PlacementWorld& world) {
  return world.task.objective().WeightOf(ObjectiveTerm::kFragmentation) > 0;
}

// What scores a candidate, as far as it is linear.
float ScoreOf(std::span<const float> weights, const float* row) {
  float sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * row[i];
  return sum;
}

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

// Plays whole episodes of one world by weights.
class Evolution::Player {
 public:
  explicit Player(const PlacementWorld& world)
      : world_(world),
        lifecycle_(world.scenario, WeighsFragmentation(world)
                                       ? Lifecycle::Measured::kAll
                                       : Lifecycle::Measured::kAllButFragmentation),
        batch_{.widths = PlacementTask::kWidths} {}

  // `seen`, if any, is told of each question with a choice.
  template <class Seen>
  LifecycleMetrics Play(std::span<const float> weights, uint64_t seed, Seen seen) {
    const auto rule = [&](const PlacementQuestion& question) {
      world_.task.Space(question, {}, &space_);
      if (space_.count() < 2) return space_.count() == 0 ? kNone : space_.candidates[0].node;
      batch_.Clear();
      world_.task.Encode(question, space_, &batch_);
      scores_.clear();
      for (int i = 0; i < space_.count(); ++i) scores_.push_back(ScoreOf(weights, Row(i)));
      seen(*this);
      const auto best = std::max_element(scores_.begin(), scores_.end());
      return space_.candidates[best - scores_.begin()].node;
    };
    const Result<LifecycleMetrics> metrics = RunPlacement(std::ref(rule), seed, &lifecycle_);
    CHECK(metrics.has_value());  // Seeds are those of episodes that can be drawn.
    return *metrics;
  }
  LifecycleMetrics Play(std::span<const float> weights, uint64_t seed) {
    return Play(weights, seed, [](const Player&) {});
  }

  uint64_t DrawableSeed(Rng rng) { return world_.DrawableSeed(rng, &lifecycle_); }

  int count() const { return space_.count(); }
  const float* Row(int candidate) const {
    return batch_.candidates.data() +
           static_cast<size_t>(candidate) * PlacementTask::kWidths.candidate;
  }
  std::span<const float> scores() const { return scores_; }
  int nodes() const { return world_.scenario->node_count(); }

 private:
  const PlacementWorld& world_;
  Lifecycle lifecycle_;
  PlacementSpace space_;
  GraphBatch batch_;
  std::vector<float> scores_;
};

struct Evolution::Episode {
  double cost = 0;  // Of the weights as they are.
  int64_t pods = 0, placed = 0;
  std::vector<double> difference;  // [pair]
};

Evolution::Evolution(const EvolutionOptions& options, std::span<const TrainingWorld> worlds,
                     uint64_t seed, nn::CandidateNet* net)
    : options_(options),
      worlds_(worlds.begin(), worlds.end()),
      seed_(seed),
      net_(net),
      units_(FeatureCount()),
      weights_(FeatureCount()),
      steps_(options.pairs, std::vector<float>(FeatureCount())),
      adam_(weights_.size(), {.beta1 = 0.8F, .beta2 = 0.95F, .max_gradient_norm = 0}),
      episodes_(options.episodes) {
  const PlacementWorld& first = *worlds_[0].placement;
  for (int s = 0; s < kPlacementScores; ++s) {  // The first features are the scores.
    const bool counts =
        s != static_cast<int>(PlacementScore::kFragmentation) || WeighsFragmentation(first);
    weights_[s] = counts ? static_cast<float>(first.reference[s]) : 0.0f;
  }
  MeasureUnits();
  for (float& one : net_->tensor("logit.weight")) one = 0;
  WriteNet();
}

Evolution::~Evolution() = default;

// And turns the weights that were begun with into units.
void Evolution::MeasureUnits() {
  const PlacementWorld& world = *worlds_[0].placement;
  Player player(world);
  Spread scores;
  std::vector<Spread> features(units_.size());
  std::vector<float> column;
  const auto look = [&](const Player& asked) {
    scores.Add(asked.scores());
    for (size_t f = 0; f < features.size(); ++f) {
      column.clear();
      for (int i = 0; i < asked.count(); ++i) column.push_back(asked.Row(i)[f]);
      features[f].Add(column);
    }
  };
  for (size_t i = 0; i < std::min(kUnitEpisodes, world.seeds.size()); ++i)
    player.Play(weights_, world.seeds[i], look);
  const double apart = scores.deviation() > kLeastDeviation ? scores.deviation() : 1.0;
  for (size_t f = 0; f < units_.size(); ++f) {
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
  return worlds_[0].placement->questions * options_.episodes * (2 * options_.pairs + 1);
}

// As features are weighed; sign 0: the weights as they are.
std::vector<float> Evolution::Tried(int pair, float sign) const {
  std::vector<float> tried(weights_.size());
  for (size_t f = 0; f < tried.size(); ++f)
    tried[f] = (weights_[f] + sign * options_.deviation * steps_[pair][f]) * units_[f];
  return tried;
}

void Evolution::Play(uint64_t iteration, int index, Player* player, Episode* episode) const {
  const uint64_t seed = player->DrawableSeed(Rng(seed_, kEpisodeStream + index, iteration));
  const auto cost = [&](const std::vector<float>& weights) {
    const LifecycleMetrics metrics = player->Play(weights, seed);
    episode->pods = metrics.bindings;
    episode->placed += metrics.bindings;
    return PlacementCost(metrics, player->nodes());
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
    for (float& one : steps_[pair]) one = static_cast<float>(rng.Normal());
  }
  while (static_cast<int>(players_.size()) < pool->size()) {
    auto& crew = players_.emplace_back();
    for (const TrainingWorld& world : worlds_)
      crew.push_back(std::make_unique<Player>(*world.placement));
  }
  pool->ParallelFor(options_.episodes, [&](int index, int worker) {
    Play(iteration, index, players_[worker][index % worlds_.size()].get(), &episodes_[index]);
  });
  const double count = options_.episodes;
  EvolutionMetrics metrics{.episodes = options_.episodes};
  std::vector<double> difference(options_.pairs);
  for (const Episode& one : episodes_) {
    metrics.cost += one.cost / count;
    metrics.pods += static_cast<double>(one.pods) / count;
    metrics.placed += one.placed;
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
