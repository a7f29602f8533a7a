// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "learn/learner.h"
#include "learn/placement_env.h"
#include "learn/preset_env.h"
#include "learn/training_worlds.h"
#include "learn/validation.h"
#include "sim/held_out.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// Nodes of one kind and pods of one kind; `base` is there from the start.
std::shared_ptr<const Scenario> Plain(std::string_view nodes, std::string_view arrivals,
                                      int base_replicas = 0) {
  const std::string base = base_replicas == 0 ? "" : fmt::format(", replicas: {}", base_replicas);
  const std::string text = fmt::format(R"(rudderfish: scenario/v1
name: plain
objective: balance
retries: 1
layers: {{site: {{}}}}
latency: {{site: {{site: 1ms}}}}
node_types: {{worker: {{layer: site, cpu_type: any, bandwidth: 1Gbit}}}}
nodes: [{{type: worker, {}, memory: 32Gi}}]
workloads:
  base: {{requests: {{cpu: 3500m, memory: 1Gi}}{}}}
  web: {{requests: {{cpu: 500m, memory: 100Mi}}}}
arrivals: {{{}}}
)",
                                       nodes, base, arrivals);
  Result<Scenario> scenario = ParseScenario(text, "plain.yaml");
  if (!scenario) fmt::print("{}\n", scenario.error().message);
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*std::move(scenario));
}

// A few large nodes that cost less for what they hold come first: none does better for cost than
// who takes the first that fits.
std::shared_ptr<const Scenario> BestByFirstFit() {
  Result<Scenario> scenario = ParseScenario(R"(rudderfish: scenario/v1
name: first-fit
seed: 6
objective: cost
layers: {site: {}}
latency: {site: {site: 1ms}}
node_types:
  big: {layer: site, cpu_type: any, bandwidth: 1Gbit, price_per_hour: 1}
  small: {layer: site, cpu_type: any, bandwidth: 1Gbit, price_per_hour: 0.3}
nodes:
  - {type: big, count: 4, cpu: 32, memory: 64Gi}
  - {type: small, count: 20, cpu: 4, memory: 8Gi}
workloads:
  web: {requests: {cpu: 1, memory: 2Gi}}
arrivals:
  streams:
    - {workloads: web, interval: {exponential: 20s}, count: 100, lifetime: {exponential: 400s}}
)",
                                            "first-fit.yaml");
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*std::move(scenario));
}

// Two pods at the same time are rare: most episodes leave no pod a choice.
std::shared_ptr<const Scenario> Quiet() {
  return Plain(
      "count: 3, cpu: 8",
      "streams: [{workloads: web, interval: {exponential: 60s}, count: 3, lifetime: 20s}]");
}

// The pods that are there from the start find room in six draws of ten.
std::shared_ptr<const Scenario> Cramped() {
  return Plain("count: 4, cpu: [4, 8, 12]",
               "streams: [{workloads: web, interval: {exponential: 5s}, count: 9, lifetime: 60s}]",
               8);
}

Result<PlacementWorld> WorldOf(std::shared_ptr<const Scenario> scenario,
                               std::optional<PlacementPreset> preset = {}) {
  ThreadPool pool(1);
  return PlacementWorld::Make(std::move(scenario), &pool, preset);
}

bool AsksSomething(const PlacementWorld& world, uint64_t seed) {
  Lifecycle lifecycle(world.scenario);
  PlacementSpace space;
  if (!lifecycle.Start(seed)) return false;
  while (lifecycle.NextPending()) {
    world.task.Space({lifecycle.state(), lifecycle.totals(), lifecycle.pending_workload()}, {},
                     &space);
    if (space.count() > 1) return true;
    lifecycle.Bind(space.count() == 0 ? kNone : space.candidates[0].node);
  }
  return false;
}

// How many of the first episodes of an environment are of use as they were drawn first.
int FirstDrawsOfUse(const PlacementWorld& world, uint64_t seed, uint64_t id, int episodes) {
  int count = 0;
  for (int episode = 0; episode < episodes; ++episode) {
    Rng rng(seed, id, static_cast<uint64_t>(episode));
    count += AsksSomething(world, rng.Next64()) ? 1 : 0;
  }
  return count;
}

TEST(PlacementWorld, WhereNoPodEverHasAChoiceIsRefused) {
  const std::string_view one_at_a_time =
      "streams: [{workloads: web, interval: 100s, count: 50, lifetime: 10s}]";
  const std::string_view many =
      "streams: [{workloads: web, interval: 20s, count: 50, lifetime: 50s}]";
  for (const auto preset : {std::optional<PlacementPreset>(), {PlacementPreset::kThesisLb}}) {
    const auto one_node = WorldOf(Plain("count: 1, cpu: 8", many), preset);
    ASSERT_FALSE(one_node.has_value());
    EXPECT_THAT(one_node.error().message, HasSubstr("in none of 64 episodes has a pod"));
  }
  const auto equal_nodes = WorldOf(Plain("count: 3, cpu: 8", one_at_a_time));
  ASSERT_FALSE(equal_nodes.has_value());
  EXPECT_THAT(equal_nodes.error().message, HasSubstr("there is nothing to learn"));
}

TEST(PlacementWorld, ThatCannotBeDrawnIsRefusedInTheWorldsWords) {
  const auto none = WorldOf(Plain("count: 4, cpu: [4, 8]",
                                  "streams: [{workloads: web, count: 5,"
                                  " interval: 1s}]",
                                  9));
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message, HasSubstr("some pod found no node with room"));
}

TEST(PlacementWorld, IsTriedOnEpisodesThatAskSomething) {
  for (const auto& scenario : {Quiet(), Cramped()}) {
    const PlacementWorld world = WorldOf(scenario).value();
    ASSERT_GT(world.seeds.size(), 3u);
    EXPECT_NE(world.seeds.back(),
              TrialSeed(scenario->seed, static_cast<int>(world.seeds.size()) - 1));
    for (const uint64_t seed : world.seeds) EXPECT_TRUE(AsksSomething(world, seed));
  }
}

// No mix at all would leave it to the order of the nodes, which is nothing to begin with.
TEST(PlacementWorld, ReferenceIsAMixOfSomethingWhereFirstFitIsBest) {
  const PlacementWorld world = WorldOf(BestByFirstFit()).value();
  double most = 0;
  for (const double weight : world.reference) {
    ASSERT_TRUE(std::isfinite(weight));
    most = std::max(most, std::abs(weight));
  }
  EXPECT_EQ(most, 1);
}

TEST(PlacementEnv, RedrawsWhatCannotBeDrawnOrAsksNothing) {
  constexpr int kEpisodes = 20;
  for (const auto& scenario : {Quiet(), Cramped()}) {
    const PlacementWorld world = WorldOf(scenario).value();
    ASSERT_LT(FirstDrawsOfUse(world, 7, 2, kEpisodes), kEpisodes);
    PlacementEnv env(world, 7, 2, 1000);
    for (uint64_t episode = 0; episode < kEpisodes; ++episode) {
      env.Reset(episode);
      EXPECT_EQ(env.cursor().episode, episode);
      EXPECT_GT(env.candidate_count(), 1);
      PlacementEnv other(world, 7, 2, 1000);
      ASSERT_TRUE(other.Restore(env.cursor()).has_value());
      EXPECT_EQ(other.lifecycle().state().at, env.lifecycle().state().at);
    }
  }
}

TEST(PlacementWorld, AfterManySeedsGivesOneThatServed) {
  PlacementWorld world = WorldOf(Quiet()).value();
  Rng rng(1), same(1);
  for (int attempt = 0; attempt < PlacementWorld::kSeedsOfAnEpisode; ++attempt)
    EXPECT_EQ(world.SeedOf(attempt, &rng), same.Next64());
  EXPECT_EQ(world.SeedOf(PlacementWorld::kSeedsOfAnEpisode, &rng), world.seeds[0]);
}

TrainOptions SmallOptionsFor(Algorithm algorithm) {
  TrainOptions options;
  UsePlacementDefaults(&options);
  UseEvolutionDefaults(&options);
  options.algorithm = algorithm;
  options.hidden = 16;
  options.rollout = {.envs = 8, .steps = 16, .envs_per_slice = 4};
  options.ppo.minibatch = 64;
  options.dqn.replay = {.envs = 8, .envs_per_slice = 4, .steps = 16, .samples_max = 1024};
  options.dqn.warm_up_samples = 64;
  options.dqn.minibatch = 64;
  options.es.pairs = 3;
  options.es.episodes = 5;
  return options;
}

class LearningInACrampedWorld : public ::testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, LearningInACrampedWorld,
                         ::testing::Values(Algorithm::kPpo, Algorithm::kDqn, Algorithm::kEvolution),
                         [](const auto& info) { return std::string(AlgorithmName(info.param)); });

TEST_P(LearningInACrampedWorld, GoesOnAndIsValidatedTheSameForAnyNumberOfThreads) {
  std::vector<std::vector<float>> weights;
  std::vector<double> objectives;
  for (const int threads : {1, 3}) {
    const TrainingWorlds worlds = TrainingWorlds::Make({{Cramped()}}, 0, threads).value();
    Validation validation = Validation::Draw(worlds.originals(), 4, 16).value();
    ThreadPool pool(threads);
    const auto learner = MakeLearner(SmallOptionsFor(GetParam()), worlds.list());
    for (int iteration = 1; iteration <= 4; ++iteration) learner->Iterate(iteration, 0, &pool);
    const auto parameters = learner->net().parameters();
    weights.emplace_back(parameters.begin(), parameters.end());
    const ValidationFigures figures = validation.Run(learner->net(), &pool);
    EXPECT_EQ(figures.moves, 9);
    objectives.push_back(figures.objective_ms);
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(objectives[0], objectives[1]);
}

TEST(PresetEnv, RedrawsWhatCannotBeDrawn) {
  const PlacementWorld world = WorldOf(Cramped(), PlacementPreset::kThesisLb).value();
  ASSERT_LT(FirstDrawsOfUse(world, 7, 2, 20), 20);
  PresetEnv env(world, 7, 2, 1000);
  env.Reset(0);
  for (int i = 0; i < 20 * 9; ++i) {
    ASSERT_GT(env.candidate_count(), 0);
    const StepResult result = env.Step(0);
    if (result.terminated || result.truncated) env.Reset();
  }
  EXPECT_GE(env.cursor().episode >> 32, 19u);
  PresetEnv other(world, 7, 2, 1000);
  ASSERT_TRUE(other.Restore(env.cursor()).has_value());
  EXPECT_EQ(other.lifecycle().state().at, env.lifecycle().state().at);
}

}  // namespace
}  // namespace rudderfish
