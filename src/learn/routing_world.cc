// SPDX-License-Identifier: Apache-2.0
#include "learn/routing_world.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "policy/registry.h"
#include "sim/routing_evaluation.h"

namespace rudderfish {
namespace {

// Of the seed; see kChoiceStream in rollout.cc.
constexpr uint64_t kLookStream = uint64_t{9} << 40, kRoutingValidationStream = uint64_t{10} << 40,
                   kJudgeStream = uint64_t{11} << 40;
constexpr int kLooks = 4;
constexpr double kScaleFrom = 0.5;  // Of a training of both tiers.
constexpr double kMoreLate = 0.1;   // Percentage points.
constexpr double kMostWorse = 0.5;  // Percent, in any variant.

uint64_t SeedAt(uint64_t stream, uint64_t seed, int episode) {
  return Rng(seed, stream + static_cast<uint64_t>(episode)).Next64();
}

// By how many standard errors a mean may be off at 95 %: Abramowitz and Stegun, 26.7.5, to its
// second term.
double Student95(double freedom) {
  constexpr double kNormal = 1.959964;
  const double cube = kNormal * kNormal * kNormal, fifth = cube * kNormal * kNormal;
  return kNormal + (cube + kNormal) / (4 * freedom) +
         (5 * fifth + 16 * cube + 3 * kNormal) / (96 * freedom * freedom);
}

void AddName(const std::string& name, std::string* list) {
  if (!list->empty()) *list += ", ";
  *list += name;
}

// What is to be made small: the objective, by the prices of the rule that is begun with. Where
// there are limits, these are the multipliers that calibration found for them.
double PricedCost(const RoutingWorld& world, const RoutingFigures& figures) {
  const RoutingPrices& prices = world.rule.split.prices;
  const double unit = world.world->network->unit_dollars();
  double cost = figures.objective();
  if (prices.late) {
    double late = 0;  // By the unit of each service.
    for (size_t s = 0; s < world.laws.size(); ++s)
      late += figures.services[s].late_requests * world.laws[s]->unit() / unit;
    cost += figures.PerRequest(*prices.late * late - figures.late);
  }
  if (prices.carbon_per_kg) {
    const double carbon = *prices.carbon_per_kg * figures.carbon_kg / unit;
    cost += figures.PerRequest(carbon - figures.carbon);
  }
  return cost;
}

class RoutingPlayer final : public EpisodePlayer {
 public:
  explicit RoutingPlayer(const RoutingWorld& world)
      : world_(world), simulator_(world.world, world.laws) {}

  EpisodeResult Play(std::span<const float> weights, uint64_t seed, const Seen& seen) override {
    PlannedRouting rule = world_.rule;
    rule.planning.weights.assign(weights.begin(), weights.end());
    if (seen) {
      rule.planning.seen = [&](const ScoredRows& question) {
        const auto all = static_cast<int>(RegionScalingTask::Features().candidate.size());
        const int first_of_pairs = all - RegionScalingTask::kPairFeatures;
        seen({.scores = question.scores,
              .rows = question.rows,
              .width = RegionScalingTask::kWidths.candidate,
              .first = static_cast<int>(question.first),
              .last = question.first == 0 ? first_of_pairs : all});
      };
    }
    const auto policy = MakePlannedRouting(rule);
    const RoutingFigures figures = RunRouting(*policy, {world_.variant, seed}, &simulator_);
    return {.cost = PricedCost(world_, figures), .decisions = DecisionsOf(world_)};
  }

  uint64_t SeedOf(Rng rng) override { return rng.Next64(); }

  static int64_t DecisionsOf(const RoutingWorld& world) {
    const double each = std::max(1.0, world.rule.planning.hold_s / world.world->interval_s);
    const auto services = static_cast<double>(world.laws.size());
    return static_cast<int64_t>(services * world.world->steps() * world.world->network->size() /
                                each);
  }

 private:
  const RoutingWorld& world_;
  RegionSimulator simulator_;
};

// [policy][world x episode]
std::vector<std::vector<RoutingFigures>> FiguresOf(
    std::span<const RoutingWorld* const> worlds,
    std::span<const std::shared_ptr<const RoutingPolicy>> policies, int episodes, uint64_t stream,
    uint64_t seed, ThreadPool* pool) {
  const int each = static_cast<int>(worlds.size()) * episodes;
  std::vector<std::vector<RoutingFigures>> figures(policies.size());
  for (auto& row : figures) row.resize(static_cast<size_t>(each));
  pool->ParallelFor(each, [&](int index, int) {
    const RoutingWorld& world = *worlds[static_cast<size_t>(index / episodes)];
    RegionSimulator simulator(world.world, world.laws);
    for (size_t p = 0; p < policies.size(); ++p) {
      figures[p][static_cast<size_t>(index)] =
          RunRouting(*policies[p], {world.variant, SeedAt(stream, seed, index)}, &simulator);
    }
  });
  return figures;
}

RoutingMeans MeansOf(const std::vector<RoutingFigures>& figures) {
  RoutingMeans means;
  for (const RoutingFigures& one : figures) means.Add(one, 1 / static_cast<double>(figures.size()));
  return means;
}

std::shared_ptr<const RoutingPolicy> LearnedOf(const RoutingWorld& world,
                                               const std::vector<float>& weights) {
  PlannedRouting rule = world.rule;
  rule.planning.weights = weights;
  return MakePlannedRouting(rule);
}

}  // namespace

EvolutionStart RoutingWorld::Start() const {
  EvolutionStart start{.weights = rule.planning.weights,
                       .from = {},
                       .seeds = {},
                       .decisions = RoutingPlayer::DecisionsOf(*this)};
  const size_t count = rule.planning.weights.size(),
               first_of_pairs = count - RegionScalingTask::kPairFeatures;
  // Prices of pairs first: they are few, and what is learned of nodes depends on where requests go.
  const double of_pairs = tiers.route ? 0 : EvolutionStart::kNever,
               of_choices = !tiers.scale  ? EvolutionStart::kNever
                            : tiers.route ? kScaleFrom
                                          : 0;
  start.from.assign(count, of_choices);
  std::fill(start.from.begin() + static_cast<long>(first_of_pairs), start.from.end(), of_pairs);
  for (int i = 0; i < kLooks; ++i) start.seeds.push_back(SeedAt(kLookStream, world->seed, i));
  return start;
}

std::unique_ptr<EpisodePlayer> RoutingWorld::NewPlayer() const {
  return std::make_unique<RoutingPlayer>(*this);
}

RoutingValidation ValidateRouting(std::span<const RoutingWorld* const> worlds,
                                  const std::vector<float>& weights, int episodes, uint64_t seed,
                                  ThreadPool* pool) {
  const std::shared_ptr<const RoutingPolicy> learned[] = {LearnedOf(*worlds[0], weights)};
  const auto figures = FiguresOf(worlds, learned, episodes, kRoutingValidationStream, seed, pool);
  RoutingValidation mean;
  const double share = 1 / static_cast<double>(figures[0].size());
  for (const RoutingFigures& one : figures[0]) {
    mean.objective += share * PricedCost(*worlds[0], one);
    mean.changes += share * one.changes;
    mean.late_share += share * one.late_share();
  }
  return mean;
}

RoutingVerdict JudgeRouting(std::span<const RoutingWorld* const> worlds,
                            const std::vector<float>& weights,
                            const std::vector<std::string>& rules, int episodes, uint64_t seed,
                            ThreadPool* pool) {
  CHECK(!rules.empty());
  std::vector<std::shared_ptr<const RoutingPolicy>> policies = {LearnedOf(*worlds[0], weights)};
  for (const std::string& rule : rules) policies.push_back(MakeRoutingRule(rule).value());
  const auto figures = FiguresOf(worlds, policies, episodes, kJudgeStream, seed, pool);
  const RoutingLimits& limits = worlds[0]->world->network->limits;
  std::vector<RoutingMeans> means;
  for (const auto& row : figures) means.push_back(MeansOf(row));
  const auto rank = [&](const RoutingMeans& one) {
    return std::pair(BeyondLimits(limits, one), one.objective);
  };
  size_t best = 1;
  for (size_t p = 2; p < policies.size(); ++p) {
    if (rank(means[p]) < rank(means[best])) best = p;
  }
  RoutingVerdict verdict{.rule = rules[best - 1],
                         .objective = means[0].objective,
                         .of_rule = means[best].objective,
                         .late_percent = 100 * means[0].late_share,
                         .late_of_rule = 100 * means[best].late_share,
                         .episodes = static_cast<int>(figures[0].size())};
  double sum = 0, squares = 0;
  for (size_t w = 0; w < worlds.size(); ++w) {
    double learned = 0, rule = 0;
    for (size_t i = w * episodes; i < (w + 1) * episodes; ++i) {
      learned += figures[0][i].objective();
      rule += figures[best][i].objective();
      const double difference =
          100 * (figures[0][i].objective() - figures[best][i].objective()) / verdict.of_rule;
      sum += difference;
      squares += difference * difference;
    }
    if (100 * (learned - rule) > kMostWorse * rule)
      AddName(worlds[w]->variant.name, &verdict.worse_in);
  }
  const double count = verdict.episodes;
  verdict.difference = sum / count;
  const double variance = std::max(0.0, squares / count - verdict.difference * verdict.difference);
  verdict.interval = Student95(count - 1) * std::sqrt(variance / (count - 1));
  const bool is_later = limits.late_percent == RoutingLimits::kNone &&
                        verdict.late_percent > verdict.late_of_rule + kMoreLate;
  verdict.steps_back = !(verdict.difference + verdict.interval < 0) || !verdict.worse_in.empty() ||
                       is_later || BeyondLimits(limits, means[0]) > 0;
  return verdict;
}

}  // namespace rudderfish
