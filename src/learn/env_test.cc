// SPDX-License-Identifier: Apache-2.0
#include "learn/env.h"

#include <gtest/gtest.h>

#include "learn/placement_env.h"
#include "learn/preset_env.h"
#include "tests/support/count_allocations.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/small_arrivals.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::ShippedScenario;
using testing::TwoNodes;
using testing::WorldsOf;

Env MakeEnv(const TrainingWorlds& worlds, uint64_t id, int max_steps) {
  const TrainingWorld& at = worlds.list()[0];
  return Env(*at.world, *at.task, at.law, 11, id, max_steps);
}

// Any alternative, drawn.
int RandomChoice(const Env& env, Rng* rng) {
  const int choice = static_cast<int>(rng->Below(static_cast<uint32_t>(env.space().count()) + 1));
  return choice == env.space().count() ? kStop : choice;
}

GraphBatch Encoded(Env* env) {
  GraphBatch batch;
  batch.widths = env->task().widths();
  env->Encode(&batch);
  return batch;
}

TEST(Env, EpisodeIsAFunctionOfSeedIdAndNumber) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  Env a = MakeEnv(worlds, 3, 30), b = MakeEnv(worlds, 3, 30), other = MakeEnv(worlds, 4, 30);
  a.Reset(7);
  b.Reset(2);
  b.Step(0);
  b.Reset(7);
  other.Reset(7);
  EXPECT_EQ(Encoded(&a).candidates, Encoded(&b).candidates);
  EXPECT_NE(Encoded(&a).candidates, Encoded(&other).candidates);
}

TEST(Env, RestoredEnvironmentGoesOnToTheBit) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  Env env = MakeEnv(worlds, 0, 30), copy = MakeEnv(worlds, 0, 30);
  env.Reset(0);
  Rng rng(1);
  int compared = 0;
  for (int step = 0; step < 300; ++step) {
    if (step % 10 == 9) {
      ASSERT_TRUE(copy.Restore(env.cursor()).has_value());
      EXPECT_EQ(Encoded(&env).candidates, Encoded(&copy).candidates);
      EXPECT_EQ(Encoded(&env).context, Encoded(&copy).context);
      EXPECT_EQ(env.model().Now().latency_ms, copy.model().Now().latency_ms);
      EXPECT_EQ(env.state().pods.node, copy.state().pods.node);
      compared += env.cursor().moves.size() > 2;
    }
    const StepResult result = env.Step(RandomChoice(env, &rng));
    if (result.terminated || result.truncated) env.Reset();
  }
  EXPECT_GT(compared, 5);
}

TEST(Env, CursorWithAnImpossibleMoveIsRefused) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  Env env = MakeEnv(worlds, 0, 6);
  const Result<void> result =
      env.Restore({.episode = 1, .moves = {{.workload = 1, .from = 0, .to = 2}}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kCorruption);
  EXPECT_NE(result.error().message.find("cannot be repeated"), std::string::npos)
      << result.error().message;
}

TEST(Env, CursorWithMoreMovesThanAnEpisodeHasIsRefused) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  Env env = MakeEnv(worlds, 0, 3);
  env.Reset(0);
  EnvCursor cursor{.episode = 0};
  for (int i = 0; i < 3; ++i) {
    cursor.moves.push_back(env.space().candidates[0].move);
    env.Step(0);
  }
  EXPECT_FALSE(env.Restore(cursor).has_value());
  cursor.moves.pop_back();
  EXPECT_TRUE(env.Restore(cursor).has_value());
}

TEST(Env, StopTerminatesWithoutReward) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  Env env = MakeEnv(worlds, 0, 6);
  env.Reset(0);
  const StepResult result = env.Step(kStop);
  EXPECT_TRUE(result.terminated);
  EXPECT_FALSE(result.truncated);
  EXPECT_EQ(result.reward, 0);
}

TEST(Env, LastStepTruncatesAndLeavesAQuestion) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  Env env = MakeEnv(worlds, 0, 3);
  env.Reset(0);
  for (int step = 0; step < 3; ++step) {
    ASSERT_GT(env.space().count(), 0);
    const StepResult result = env.Step(0);
    EXPECT_FALSE(result.terminated);
    EXPECT_EQ(result.truncated, step == 2);
  }
  EXPECT_GT(env.space().count(), 0);
  EXPECT_EQ(env.walk().steps(), 3);
}

TEST(Env, AWalkEndsWithItsLastStep) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  Env env = MakeEnv(worlds, 0, 100);
  env.Reset(0);
  const int last = env.walk().steps_max();
  EXPECT_EQ(last, 30);
  for (int step = 1; step <= last; ++step) {
    const StepResult result = env.Step(0);
    EXPECT_EQ(result.terminated, step == last);
    EXPECT_FALSE(result.truncated);
  }
}

TEST(Env, RewardsAddUpToTheFallOfTheBestObjectiveLessThePriceOfSteps) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  Env env = MakeEnv(worlds, 0, 100);
  Rng rng(2);
  for (uint64_t episode = 0; episode < 20; ++episode) {
    env.Reset(episode);
    double rewards = 0;
    for (StepResult result; !result.terminated;) {
      result = env.Step(RandomChoice(env, &rng));
      rewards += result.reward;
    }
    const Walk& walk = env.walk();
    EXPECT_NEAR(100 * rewards,
                walk.start_ms() - walk.best_objective_ms() - Walk::kStepMs * walk.steps(), 1e-9);
    EXPECT_EQ(env.figures().final, walk.best_latency_ms());
    EXPECT_EQ(env.figures().moves, walk.best_displaced());
  }
}

TEST(Env, StepResetAndEncodeAllocateNothingOnceWarm) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  Env env = MakeEnv(worlds, 0, 30);
  GraphBatch batch;
  batch.widths = env.task().widths();
  env.Reset(0);
  Rng rng(1);
  const auto play = [&](int steps) {
    for (int step = 0; step < steps; ++step) {
      batch.Clear();
      env.Encode(&batch);
      const StepResult result = env.Step(RandomChoice(env, &rng));
      if (result.terminated || result.truncated) env.Reset();
    }
  };
  play(20000);
  const long before = allocation_count;
  play(5000);
  EXPECT_EQ(allocation_count - before, 0);
}

TEST(PlacementEnv, StepAllocatesNothingOnceAnEpisodeHasBeenSeen) {
  Scenario scenario = *testing::ArrivalsScenario(R"(
  streams:
    - {workloads: {web: 3, batch: 1, learner: 1}, interval: {exponential: 5s},
        lifetime: {exponential: 40s}, count: 300}
  start_delay: 1s
)");
  scenario.objective = Objective::Of(ObjectiveTerm::kEnergy);
  ThreadPool pool(1);
  const Result<PlacementWorld> world =
      PlacementWorld::Make(std::make_shared<const Scenario>(std::move(scenario)), &pool);
  ASSERT_TRUE(world.has_value());
  PlacementEnv env(*world, 1, 1, 1 << 20);
  GraphBatch batch{.widths = PlacementTask::kWidths};
  const auto play = [&] {
    env.Reset(1);
    for (bool over = false; !over;) {
      batch.Clear();
      env.Encode(&batch);
      over = env.Step(env.candidate_count() - 1).terminated;
    }
  };
  play();
  const long before = allocation_count;
  play();
  EXPECT_EQ(allocation_count - before, 0);
}

TEST(PresetEnv, StepAllocatesNothingOnceItsWorldHasBeenSeen) {
  ThreadPool pool(1);
  const auto scenario = testing::ShippedScenario("drs-even");
  for (const PlacementPreset preset : {PlacementPreset::kThesisLb, PlacementPreset::kDrsPaper}) {
    const Result<PlacementWorld> world = PlacementWorld::Make(scenario, &pool, preset);
    ASSERT_TRUE(world.has_value());
    PresetEnv env(*world, 1, 1, EpisodeStepsOf(preset));
    GraphBatch batch{.widths = PlacementTask::Widths(preset)};
    const auto play = [&](int steps) {
      for (Rng rng(1); steps > 0; --steps) {
        batch.Clear();
        env.Encode(&batch);
        const StepResult result =
            env.Step(static_cast<int>(rng.Below(static_cast<uint32_t>(env.candidate_count()))));
        if (result.terminated || result.truncated) env.Reset();
      }
    };
    env.Reset(0);
    play(5000);
    const long before = allocation_count;
    play(1000);
    EXPECT_EQ(allocation_count - before, 0) << PlacementPresetName(preset);
  }
}

}  // namespace
}  // namespace rudderfish
