// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "learn/placement_env.h"
#include "policy/registry.h"
#include "sim/held_out.h"
#include "sim/placement_run.h"

// Which heuristic, and which mix of simple scores, does best on training seeds: what learning
// starts from, and what it is measured against while it learns.

namespace rudderfish {
namespace {

constexpr uint64_t kClimbStream = (uint64_t{6} << 40) + 1;  // Of the scenario's seed.
constexpr size_t kTrialEpisodes = 16;
constexpr int kEpisodesSought = 64;  // At most, to find those in which there is a choice.
constexpr int kTrialsARound = 8;
constexpr int64_t kPodsOfAllTrials = 1'200'000;  // Fewer rounds where episodes are long.
constexpr int kRoundsMax = 10, kRoundsMin = 2;
constexpr double kSmallWeight = 0.1;
constexpr int64_t kQuestionsKept = 200;  // Of an episode, of which ranges of features are made.

struct Trial {
  PlacementPolicy policy;
  PlacementMix mix{};
  double cost = 0;
};

class Trials {
 public:
  Trials(std::shared_ptr<const Scenario> scenario, std::vector<uint64_t> seeds, ThreadPool* pool)
      : scenario_(std::move(scenario)), seeds_(std::move(seeds)), pool_(pool) {
    for (size_t i = 0; i < seeds_.size(); ++i)
      worlds_.push_back(std::make_unique<Lifecycle>(scenario_));
  }

  // The same episodes for all, one a thread at a time.
  Result<void> Run(Trial* trial) {
    std::vector<Result<LifecycleMetrics>> results(seeds_.size(), LifecycleMetrics());
    pool_->ParallelFor(episodes(), [&](int episode, int) {
      results[episode] =
          RunPlacement(trial->policy.start(), seeds_[episode], worlds_[episode].get());
    });
    trial->cost = 0;
    for (Result<LifecycleMetrics>& result : results) {
      TRY_ASSIGN(const LifecycleMetrics metrics, std::move(result));
      trial->cost += PlacementCost(metrics, scenario_->node_count()) / episodes();
      last_ = metrics;
    }
    return {};
  }

  // What questions the same episodes ask, placed by each of these.
  Familiarity Look(const PlacementTask& task, const std::vector<PlacementPolicy>& policies,
                   int64_t questions);

  const LifecycleMetrics& last() const { return last_; }
  int episodes() const { return static_cast<int>(seeds_.size()); }

 private:
  std::shared_ptr<const Scenario> scenario_;
  std::vector<uint64_t> seeds_;
  ThreadPool* pool_;
  std::vector<std::unique_ptr<Lifecycle>> worlds_;
  LifecycleMetrics last_;
};

Familiarity Trials::Look(const PlacementTask& task, const std::vector<PlacementPolicy>& policies,
                         int64_t questions) {
  const int64_t stride = std::max<int64_t>(1, questions / kQuestionsKept);
  std::vector<FamiliaritySample> samples(seeds_.size());
  pool_->ParallelFor(episodes(), [&](int episode, int) {
    PlacementSpace space;
    GraphBatch batch{.widths = PlacementTask::kWidths};
    for (const PlacementPolicy& policy : policies) {
      const PlacementRule rule = policy.start();
      int64_t asked = 0;
      const auto watched = [&](const PlacementQuestion& question) {
        const NodeId node = rule(question);
        if (node == kNone || asked++ % stride != 0) return node;
        task.Space(question, {}, &space);
        batch.Clear();
        task.Encode(question, space, &batch);
        samples[episode].Add(batch, space.candidate_of[node]);
        return node;
      };
      const auto ran = RunPlacement(watched, seeds_[episode], worlds_[episode].get());
      CHECK(ran.has_value());  // It has run before.
    }
  });
  FamiliaritySample all;
  for (const FamiliaritySample& sample : samples) all.Append(sample);
  return all.Ranges();
}

// A step away from the best so far: some weights changed, never all.
PlacementMix Mutated(const PlacementMix& from, Rng* rng) {
  PlacementMix mix = from;
  for (int changes = 1 + static_cast<int>(rng->Below(2)); changes > 0; --changes) {
    double& weight = mix[rng->Below(kPlacementScores)];
    weight = rng->Uniform() < 0.25 ? 0 : weight + 0.4 * rng->Normal();
  }
  return mix;
}

Result<void> Climb(const PlacementTask& task, int rounds, uint64_t seed, Trials* trials,
                   Trial* best) {
  Rng rng(seed, kClimbStream);
  for (int round = 0; round < rounds; ++round) {
    Trial winner = *best;
    for (int i = 0; i < kTrialsARound; ++i) {
      Trial trial{.mix = Mutated(best->mix, &rng)};
      if (trial.mix == PlacementMix{}) continue;  // Would leave it to the order of the nodes.
      trial.policy = MixedPlacement("mixed", task, trial.mix);
      TRY(trials->Run(&trial));
      if (trial.cost < winner.cost) winner = std::move(trial);
    }
    *best = std::move(winner);
  }
  return {};
}

// In what is left of the episode.
bool SomePodHasAChoice(const PlacementTask& task, Lifecycle* lifecycle, PlacementSpace* space) {
  while (lifecycle->NextPending()) {
    task.Space({lifecycle->state(), lifecycle->totals(), lifecycle->pending_workload()}, {}, space);
    if (space->count() > 1) return true;
    lifecycle->Bind(space->count() == 0 ? kNone : space->candidates[0].node);
  }
  return false;
}

// Of the first episodes for trials, those that can be drawn and in which some pod has a choice.
Result<std::vector<uint64_t>> SeedsWithChoice(const PlacementWorld& world) {
  const Scenario& scenario = *world.scenario;
  Lifecycle lifecycle(world.scenario);
  PlacementSpace space;
  std::vector<uint64_t> seeds;
  Result<void> drawn;
  int undrawn = 0;
  for (int i = 0; i < kEpisodesSought && seeds.size() < kTrialEpisodes; ++i) {
    const uint64_t seed = TrialSeed(scenario.seed, i);
    if (Result<void> started = lifecycle.Start(seed); !started) {
      drawn = std::move(started);
      ++undrawn;
    } else if (SomePodHasAChoice(world.task, &lifecycle, &space)) {
      seeds.push_back(seed);
    }
  }
  if (!seeds.empty()) return seeds;
  if (undrawn == kEpisodesSought) return tl::unexpected(drawn.error());
  return Fail(ErrorCode::kFailedPrecondition,
              "{}: in none of {} episodes has a pod that arrives a choice of nodes (equal ones are "
              "no choice): there is nothing to learn",
              scenario.name, kEpisodesSought - undrawn);
}

}  // namespace

uint64_t PlacementWorld::SeedOf(int attempt, Rng* rng) const {
  return attempt < kSeedsOfAnEpisode ? rng->Next64() : seeds[0];
}

uint64_t PlacementWorld::DrawableSeed(Rng rng, Lifecycle* lifecycle) const {
  for (int attempt = 0;; ++attempt) {
    const uint64_t seed = SeedOf(attempt, &rng);
    if (lifecycle->Start(seed)) return seed;
  }
}

Result<PlacementWorld> PlacementWorld::Make(std::shared_ptr<const Scenario> scenario,
                                            ThreadPool* pool,
                                            std::optional<PlacementPreset> preset) {
  if (!scenario->objective) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: says nothing of what placing pods is to make small; give it an `objective`, "
                "or name one by --objective",
                scenario->name);
  }
  PlacementWorld made{.scenario = scenario,
                      .task = PlacementTask(*scenario->objective, preset),
                      .facts = {.types = {},
                                .laws = PlacementLawsOf(*scenario),
                                .has_calls = !scenario->patterns.empty()}};
  for (const NodeKind& kind : scenario->catalog->kinds) made.facts.types.push_back(kind.name);
  if (preset) TRY(CheckPresetSuits(*preset, *scenario));
  TRY_ASSIGN(made.seeds, SeedsWithChoice(made));
  if (preset) return made;
  Trials trials(scenario, made.seeds, pool);
  double least = std::numeric_limits<double>::infinity();
  for (const std::string_view name : PlacementHeuristics()) {
    TRY_ASSIGN(PlacementPolicy policy, MakePlacementPolicy(name, made.task));
    Trial trial{.policy = std::move(policy)};
    TRY(trials.Run(&trial));
    if (trial.cost < least) made.heuristic = name;
    least = std::min(least, trial.cost);
  }
  const LifecycleMetrics& seen = trials.last();
  made.questions = std::max<int64_t>(1, seen.bindings);
  made.horizon_s =
      std::max(1e-3, kHorizonQuestions * seen.seconds / static_cast<double>(made.questions));

  Trial best{.cost = std::numeric_limits<double>::infinity()};
  const auto consider = [&](const PlacementMix& mix) -> Result<void> {
    Trial trial{.policy = MixedPlacement("mixed", made.task, mix), .mix = mix};
    TRY(trials.Run(&trial));
    if (trial.cost < best.cost) best = std::move(trial);
    return {};
  };
  for (int score = 0; score <= static_cast<int>(PlacementScore::kFullest); ++score) {
    PlacementMix mix{};
    mix[score] = 1;
    TRY(consider(mix));
    // What equals greedily, broken by another score.
    mix[score] = kSmallWeight;
    mix[static_cast<int>(PlacementScore::kGreedy)] = 1;
    TRY(consider(mix));
  }
  const int64_t pods_a_round = made.questions * trials.episodes() * kTrialsARound;
  const int rounds = static_cast<int>(
      std::clamp<int64_t>(kPodsOfAllTrials / pods_a_round, kRoundsMin, kRoundsMax));
  TRY(Climb(made.task, rounds, scenario->seed, &trials, &best));
  made.reference = best.mix;
  double most = 0;
  for (const double weight : made.reference) most = std::max(most, std::abs(weight));
  for (double& weight : made.reference) weight /= most;
  std::vector<PlacementPolicy> lookers{MixedPlacement("mixed", made.task, made.reference)};
  for (const std::string_view name : PlacementHeuristics())
    lookers.push_back(*MakePlacementPolicy(name, made.task));
  made.seen = trials.Look(made.task, lookers, made.questions);
  return made;
}

}  // namespace rudderfish
