// SPDX-License-Identifier: Apache-2.0
#include "learn/placement_player.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

constexpr size_t kUnitEpisodes = 4;  // By which units are measured.

bool WeighsFragmentation(const PlacementWorld& world) {
  return world.task.objective().WeightOf(ObjectiveTerm::kFragmentation) > 0;
}

// What scores a candidate, as far as it is linear.
float ScoreOf(std::span<const float> weights, const float* row) {
  float sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * row[i];
  return sum;
}

class PlacementPlayer final : public EpisodePlayer {
 public:
  explicit PlacementPlayer(const PlacementWorld& world)
      : world_(world),
        lifecycle_(world.scenario, WeighsFragmentation(world)
                                       ? Lifecycle::Measured::kAll
                                       : Lifecycle::Measured::kAllButFragmentation),
        batch_{.widths = PlacementTask::kWidths} {}

  EpisodeResult Play(std::span<const float> weights, uint64_t seed, const Seen& seen) override {
    const auto rule = [&](const PlacementQuestion& question) {
      world_.task.Space(question, {}, &space_);
      if (space_.count() < 2) return space_.count() == 0 ? kNone : space_.candidates[0].node;
      batch_.Clear();
      world_.task.Encode(question, space_, &batch_);
      scores_.clear();
      constexpr int kWidth = PlacementTask::kWidths.candidate;
      for (int i = 0; i < space_.count(); ++i) {
        scores_.push_back(
            ScoreOf(weights, batch_.candidates.data() + static_cast<size_t>(i) * kWidth));
      }
      if (seen) seen({scores_, batch_.candidates.data(), kWidth});
      const auto best = std::max_element(scores_.begin(), scores_.end());
      return space_.candidates[best - scores_.begin()].node;
    };
    const Result<LifecycleMetrics> metrics = RunPlacement(std::ref(rule), seed, &lifecycle_);
    CHECK(metrics.has_value());  // Seeds are those of episodes that can be drawn.
    return {.cost = PlacementCost(*metrics, world_.scenario->node_count()),
            .decisions = metrics->bindings};
  }

  uint64_t SeedOf(Rng rng) override { return world_.DrawableSeed(rng, &lifecycle_); }

 private:
  const PlacementWorld& world_;
  Lifecycle lifecycle_;
  PlacementSpace space_;
  GraphBatch batch_;
  std::vector<float> scores_;
};

}  // namespace

EvolutionStart PlacementStart(const PlacementWorld& world) {
  EvolutionStart start{
      .weights = std::vector<float>(PlacementTask::Features().candidate.size()),
      .seeds = {world.seeds.begin(), world.seeds.begin() + static_cast<long>(std::min(
                                                               kUnitEpisodes, world.seeds.size()))},
      .decisions = world.questions};
  for (int s = 0; s < kPlacementScores; ++s) {  // The first features are the scores.
    const bool counts =
        s != static_cast<int>(PlacementScore::kFragmentation) || WeighsFragmentation(world);
    start.weights[s] = counts ? static_cast<float>(world.reference[s]) : 0.0f;
  }
  return start;
}

std::unique_ptr<EpisodePlayer> NewPlacementPlayer(const PlacementWorld& world) {
  return std::make_unique<PlacementPlayer>(world);
}

}  // namespace rudderfish
