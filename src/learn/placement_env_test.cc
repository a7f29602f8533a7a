// SPDX-License-Identifier: Apache-2.0
#include "learn/placement_env.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "learn/learner.h"
#include "learn/replay.h"
#include "learn/rollout.h"
#include "learn/training_worlds.h"
#include "nn/checkpoint.h"
#include "policy/neural_placement.h"
#include "policy/registry.h"
#include "sim/held_out.h"
#include "sim/placement_run.h"
#include "tests/support/small_arrivals.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

constexpr std::string_view kBusy = R"(
  streams:
    - {workloads: {web: 3, batch: 1, learner: 1}, interval: {exponential: 5s},
        lifetime: {exponential: 40s}, count: 120}
  start_delay: 1s
  users: users
)";

std::shared_ptr<const Scenario> Busy(ObjectiveTerm term) {
  Scenario scenario = *testing::ArrivalsScenario(kBusy);
  scenario.objective = Objective::Of(term);
  return std::make_shared<const Scenario>(std::move(scenario));
}

PlacementWorld WorldFor(ObjectiveTerm term, int threads = 1) {
  ThreadPool pool(threads);
  Result<PlacementWorld> world = PlacementWorld::Make(Busy(term), &pool);
  CHECK(world.has_value());
  return *std::move(world);
}

TEST(PlacementWorld, IsTheSameForAnyNumberOfThreads) {
  const PlacementWorld one = WorldFor(ObjectiveTerm::kCost, 1);
  const PlacementWorld three = WorldFor(ObjectiveTerm::kCost, 3);
  EXPECT_EQ(one.reference, three.reference);
  EXPECT_EQ(one.heuristic, three.heuristic);
  EXPECT_EQ(one.horizon_s, three.horizon_s);
  EXPECT_EQ(one.questions, three.questions);
}

TEST(PlacementWorld, FactsSayWhetherPodsCallEachOther) {
  ThreadPool pool(1);
  EXPECT_FALSE(WorldFor(ObjectiveTerm::kCost).facts.has_calls);
  Scenario calling = *testing::ArrivalsScenario(std::string(kBusy) + R"(
patterns:
  shop: {buy: {client: web, rate: 1, qos: 1s, calls: [batch: {execution: 1ms}]}}
)");
  calling.objective = Objective::Of(ObjectiveTerm::kCalls);
  const auto world =
      PlacementWorld::Make(std::make_shared<const Scenario>(std::move(calling)), &pool);
  ASSERT_TRUE(world.has_value()) << world.error().message;
  EXPECT_TRUE(world->facts.has_calls);
  EXPECT_EQ(world->heuristic, "greedy");
}

TEST(PlacementWorld, ReferenceIsNoWorseThanTheHeuristicsOnTheEpisodesItWasChosenBy) {
  const PlacementWorld world = WorldFor(ObjectiveTerm::kEnergy);
  Lifecycle lifecycle(world.scenario);
  const auto cost = [&](const PlacementPolicy& policy) {
    double sum = 0;
    for (int episode = 0; episode < 16; ++episode) {
      const uint64_t seed = TrialSeed(world.scenario->seed, episode);
      sum += PlacementCost(*RunPlacement(policy.start(), seed, &lifecycle), 4);
    }
    return sum;
  };
  const double reference = cost(MixedPlacement("mixed", world.task, world.reference));
  for (const std::string_view name :
       {"kube-default", "least-allocated", "most-allocated", "greedy"})
    EXPECT_LE(reference, cost(*MakePlacementPolicy(name, world.task)) + 1e-12) << name;
}

TEST(PlacementWorld, WithoutAnObjectiveIsRefused) {
  ThreadPool pool(1);
  const Result<PlacementWorld> made = PlacementWorld::Make(testing::ArrivalsScenario(kBusy), &pool);
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().message.find("--objective"), std::string::npos) << made.error().message;
}

// A policy that answers as the reference does earns nothing: both worlds are the same.
TEST(PlacementEnv, TheReferenceItselfEarnsNothing) {
  const PlacementWorld world = WorldFor(ObjectiveTerm::kBalance);
  PlacementEnv env(world, 3, 5, 1 << 20);
  env.Reset(1);
  int steps = 0;
  for (;; ++steps) {
    const StepResult result = env.Step(BestCandidate(env.space().candidates, world.reference));
    EXPECT_NEAR(result.reward, 0, 1e-9);
    EXPECT_GT(result.discount, 0);
    EXPECT_LE(result.discount, 1);
    if (result.terminated) break;
    ASSERT_FALSE(result.truncated);
  }
  EXPECT_GT(steps, 50);
  EXPECT_NEAR(env.figures().initial, env.figures().final, 1e-12);
}

// Differences from the twin's add up to how far apart both have come.
TEST(PlacementEnv, RewardsAddUpToTheDifferenceOfCosts) {
  const PlacementWorld world = WorldFor(ObjectiveTerm::kCost);
  PlacementEnv env(world, 3, 6, 1 << 20);
  env.Reset(1);
  double sum = 0;
  for (Rng rng(1);;) {
    const StepResult result =
        env.Step(static_cast<int>(rng.Below(static_cast<uint32_t>(env.candidate_count()))));
    sum += result.reward;
    if (result.terminated) break;
  }
  // In the end all pods have departed in both.
  EXPECT_NEAR(sum, 0, 1e-6);
}

TEST(PlacementEnv, CutAtItsStepsItIsTruncatedAndStillAsks) {
  const PlacementWorld world = WorldFor(ObjectiveTerm::kBalance);
  PlacementEnv env(world, 3, 7, 10);
  env.Reset(1);
  StepResult result;
  for (int i = 0; i < 10; ++i) result = env.Step(0);
  EXPECT_TRUE(result.truncated);
  EXPECT_FALSE(result.terminated);
  EXPECT_GT(env.candidate_count(), 1);
}

TEST(PlacementEnv, RestoredItGoesOnAlike) {
  const PlacementWorld world = WorldFor(ObjectiveTerm::kEnergy);
  PlacementEnv env(world, 3, 8, 1 << 20), other(world, 3, 8, 1 << 20);
  env.Reset(1);
  Rng rng(2);
  for (int i = 0; i < 20; ++i)
    env.Step(static_cast<int>(rng.Below(static_cast<uint32_t>(env.candidate_count()))));
  ASSERT_TRUE(other.Restore(env.cursor()).has_value());
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(env.candidate_count(), other.candidate_count());
    EXPECT_EQ(env.Step(i % 2).reward, other.Step(i % 2).reward);
  }
  EnvCursor wrong = env.cursor();
  wrong.moves[3].to = 1000;
  EXPECT_FALSE(other.Restore(wrong).has_value());
}

TrainOptions SmallPlacement(Algorithm algorithm = Algorithm::kPpo) {
  TrainOptions options;
  UsePlacementDefaults(&options);
  options.algorithm = algorithm;
  options.seed = 4;
  options.hidden = 16;
  options.rollout.envs = 8;
  options.rollout.envs_per_slice = 4;
  options.rollout.steps = 16;
  options.ppo.minibatch = 64;
  options.dqn.replay.envs = 8;
  options.dqn.replay.envs_per_slice = 4;
  options.dqn.warm_up_samples = 128;
  options.dqn.minibatch = 64;
  return options;
}

class LearningToPlace : public ::testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, LearningToPlace,
                         ::testing::Values(Algorithm::kPpo, Algorithm::kDqn), [](const auto& info) {
                           return info.param == Algorithm::kPpo ? "ppo" : "dqn";
                         });

// The rewards of n steps, from an environment of its own that makes the same choices.
TEST(PlacementReplay, DiscountsTheTimeThatPassesBetweenQuestions) {
  Result<TrainingWorlds> worlds = TrainingWorlds::Make({{Busy(ObjectiveTerm::kEnergy)}});
  ASSERT_TRUE(worlds.has_value());
  const ReplayOptions options{.envs = 2, .envs_per_slice = 2, .steps = 30};
  Replay replay(worlds->list(), 5, options);
  const nn::CandidateNet net({.widths = worlds->first().widths(), .hidden = 16});
  ThreadPool pool(1);
  EXPECT_FALSE(replay.may_stop());
  replay.Collect(net, 0, 1.0f, &pool);
  const std::vector<EnvCursor> cursors = replay.OldestCursors();
  const std::vector<int32_t> choices = replay.Choices();
  constexpr int kSteps = 3;
  for (int e = 0; e < options.envs; ++e) {
    PlacementEnv env(*worlds->first().placement, 5, e, options.episode_steps_max);
    ASSERT_TRUE(env.Restore(cursors[e]).has_value());
    std::vector<StepResult> results;
    for (int step = 0; step < options.steps; ++step) {
      const int32_t choice = choices[step * options.envs + e];
      ASSERT_LT(choice, env.candidate_count());  // Stop is none of the alternatives.
      results.push_back(env.Step(choice));
      if (results.back().terminated || results.back().truncated) break;
    }
    ASSERT_GT(results.size(), 10u);
    for (size_t first = 0; first + kSteps < results.size(); ++first) {
      double reward = 0, discount = 1;
      for (size_t k = first; k < first + kSteps; ++k) {
        reward += discount * results[k].reward;
        discount *= results[k].discount;
      }
      Transition found;
      ASSERT_TRUE(
          replay.Find(static_cast<int64_t>(first) * options.envs + e, kSteps, 1.0f, &found));
      EXPECT_NEAR(found.reward, reward, 1e-5);
      EXPECT_NEAR(found.discount, discount, 1e-6);
      EXPECT_LT(found.discount, 1);
    }
  }
}

TEST(PlacementLearning, BeginsAsTheReference) {
  Result<TrainingWorlds> worlds = TrainingWorlds::Make({{Busy(ObjectiveTerm::kCost)}});
  ASSERT_TRUE(worlds.has_value());
  const PlacementWorld& world = *worlds->first().placement;
  const auto learner = MakeLearner(SmallPlacement(), worlds->list());
  NeuralPlacement learned(world.task, std::make_shared<const nn::CandidateNet>(learner->net()));
  Lifecycle lifecycle(world.scenario);
  ASSERT_TRUE(lifecycle.Start(9).has_value());
  PlacementSpace space;
  int asked = 0;
  while (lifecycle.NextPending()) {
    const PlacementQuestion question{lifecycle.state(), lifecycle.totals(),
                                     lifecycle.pending_workload()};
    world.task.Space(question, {}, &space);
    const int expected = BestCandidate(space.candidates, world.reference);
    ASSERT_EQ(learned.Choose(question), expected) << asked;
    lifecycle.Bind(expected < 0 ? kNone : space.candidates[expected].node);
    ++asked;
  }
  EXPECT_GT(asked, 100);
}

TEST_P(LearningToPlace, WeightsDoNotDependOnThreadsAndNoStepStops) {
  std::vector<float> weights[2];
  for (const int threads : {1, 3}) {
    Result<TrainingWorlds> worlds =
        TrainingWorlds::Make({{Busy(ObjectiveTerm::kCost)}}, 0, threads);
    ASSERT_TRUE(worlds.has_value());
    ThreadPool pool(threads);
    const auto learner = MakeLearner(SmallPlacement(GetParam()), worlds->list());
    for (int iteration = 1; iteration <= 3; ++iteration) {
      const IterationFigures figures = learner->Iterate(iteration, 0, &pool);
      EXPECT_TRUE(std::isfinite(figures.gradient_norm));
      EXPECT_TRUE(GetParam() == Algorithm::kDqn || std::isfinite(figures.entropy));
    }
    const auto parameters = learner->net().parameters();
    weights[threads == 1 ? 0 : 1].assign(parameters.begin(), parameters.end());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_P(LearningToPlace, ARunIsTrainedResumedAndPlacesPods) {
  testing::TestFolder folder;
  Result<TrainScenario> opened = [&] {
    const std::filesystem::path path = folder / "world.yaml";
    CHECK(
        WriteFileAtomically(path, testing::ArrivalsText(kBusy) + "objective: cost\n").has_value());
    return TrainScenario::Open(path);
  }();
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  TrainJob job{
      .scenarios = {*opened}, .options = SmallPlacement(GetParam()), .folder = folder / "run"};
  job.options.steps = 128 * 4;
  job.options.evaluate_every = 128 * 2;
  Result<std::unique_ptr<Trainer>> trainer = Trainer::Open(job);
  ASSERT_TRUE(trainer.has_value()) << trainer.error().message;
  const Result<TrainSummary> summary = (*trainer)->Run();
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->ending, TrainEnding::kFinished);
  EXPECT_FALSE(std::isnan(summary->best_final_ms));
  trainer->reset();

  Result<TrainJob> more = TrainJob::ToResume(folder / "run");
  ASSERT_TRUE(more.has_value()) << more.error().message;
  more->options.steps = 128 * 6;
  Result<std::unique_ptr<Trainer>> resumed = Trainer::Open(*more);
  ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
  ASSERT_TRUE((*resumed)->Run().has_value());
  resumed->reset();

  const auto run = (folder / "run").string();
  const PlacementTask cost(Objective::Of(ObjectiveTerm::kCost));
  const Result<PlacementPolicy> policy = MakePlacementPolicy(run, cost);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  Lifecycle lifecycle(job.scenarios[0].scenario);
  const Result<LifecycleMetrics> metrics = RunPlacement(policy->start(), 1, &lifecycle);
  EXPECT_EQ(metrics->completed, 120);
  const Result<PlacementPolicy> other =
      MakePlacementPolicy(run, PlacementTask(Objective::Of(ObjectiveTerm::kEnergy)));
  ASSERT_FALSE(other.has_value());
  EXPECT_NE(other.error().message.find("trained for the objective cost, not energy"),
            std::string::npos)
      << other.error().message;
}

}  // namespace
}  // namespace rudderfish
