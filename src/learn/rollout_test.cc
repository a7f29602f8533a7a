// SPDX-License-Identifier: Apache-2.0
#include "learn/rollout.h"

#include <gtest/gtest.h>

#include "learn/learner.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::ShippedScenario;
using testing::SmallOptions;
using testing::TwoNodes;
using testing::WorldsOf;

// A network that does not care what it chooses and expects `value`.
nn::CandidateNet FlatNet(const GraphWidths& widths, float value) {
  nn::CandidateNet net({.widths = widths, .hidden = 16});
  net.tensor("value.bias")[0] = value;
  return net;
}

TEST(EstimateAdvantages, FollowsTheSumWorkedOutByHand) {
  // One environment, gamma 1/2, lambda 1/2; an episode ends after the second step.
  SliceRollout rollout;
  rollout.rewards = {1, 2, 4};
  rollout.values = {3, 5, 7};
  rollout.ended = {0, 1, 0};
  rollout.last_value = {10};
  EstimateAdvantages(std::vector{0.5f}, 0.5f, &rollout);
  // delta: 1 + 5/2 - 3 = 1/2; 2 - 5 = -3; 4 + 10/2 - 7 = 2.
  EXPECT_FLOAT_EQ(rollout.advantages[2], 2);
  EXPECT_FLOAT_EQ(rollout.advantages[1], -3);
  EXPECT_FLOAT_EQ(rollout.advantages[0], 0.5f + 0.25f * -3);
  EXPECT_FLOAT_EQ(rollout.returns[0], 3 - 0.25f);
  EXPECT_FLOAT_EQ(rollout.returns[1], 2);
  EXPECT_FLOAT_EQ(rollout.returns[2], 9);
}

TEST(EstimateAdvantages, KeepsInterleavedEnvironmentsAndTheirDiscountsApart) {
  SliceRollout rollout;
  rollout.rewards = {1, 100, 2, 200};
  rollout.values = {0, 0, 0, 0};
  rollout.ended = {0, 0, 0, 0};
  rollout.last_value = {3, 300};
  EstimateAdvantages(std::vector{1.0f, 0.5f}, 1, &rollout);
  EXPECT_FLOAT_EQ(rollout.advantages[0], 6);
  EXPECT_FLOAT_EQ(rollout.advantages[1], 100 + 0.5f * (200 + 0.5f * 300));
  EXPECT_FLOAT_EQ(rollout.advantages[2], 5);
  EXPECT_FLOAT_EQ(rollout.advantages[3], 200 + 0.5f * 300);
}

TEST(VectorEnv, RolloutsAreTheSameForAnyNumberOfThreads) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  const RolloutOptions options{.envs = 24, .steps = 12, .envs_per_slice = 4};
  const nn::CandidateNet net = MakeNet({.seed = 2, .hidden = 16}, worlds.task().widths());
  VectorEnv one(worlds.list(), 9, options), three(worlds.list(), 9, options);
  ThreadPool alone(1), crew(3);
  for (uint64_t iteration = 0; iteration < 3; ++iteration) {
    one.Collect(net, iteration, &alone);
    three.Collect(net, iteration, &crew);
    for (int s = 0; s < one.slice_count(); ++s) {
      EXPECT_EQ(one.slice(s).questions.candidates, three.slice(s).questions.candidates);
      EXPECT_EQ(one.slice(s).choices, three.slice(s).choices);
      EXPECT_EQ(one.slice(s).rewards, three.slice(s).rewards);
      EXPECT_EQ(one.slice(s).log_probability, three.slice(s).log_probability);
      EXPECT_EQ(one.slice(s).advantages, three.slice(s).advantages);
    }
    EXPECT_EQ(one.totals().final, three.totals().final);
  }
}

TEST(VectorEnv, RestoredFromCursorsGoesOnToTheBit) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  const RolloutOptions options{.envs = 8, .steps = 5, .envs_per_slice = 4};
  const nn::CandidateNet net = MakeNet({.seed = 2, .hidden = 16}, worlds.task().widths());
  VectorEnv original(worlds.list(), 9, options), restored(worlds.list(), 9, options);
  ThreadPool pool(2);
  for (uint64_t iteration = 0; iteration < 4; ++iteration) original.Collect(net, iteration, &pool);
  ASSERT_TRUE(restored.Restore(original.Cursors(), &pool).has_value());
  original.Collect(net, 4, &pool);
  restored.Collect(net, 4, &pool);
  for (int s = 0; s < original.slice_count(); ++s) {
    EXPECT_EQ(original.slice(s).questions.candidates, restored.slice(s).questions.candidates);
    EXPECT_EQ(original.slice(s).rewards, restored.slice(s).rewards);
  }
}

TEST(VectorEnv, TruncationAddsTheValueBeyondAndStoppingDoesNot) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  const RolloutOptions options{
      .envs = 8, .steps = 20, .envs_per_slice = 8, .episode_steps_max = 1, .gamma = 0.5f};
  VectorEnv without(worlds.list(), 1, options), with(worlds.list(), 1, options);
  ThreadPool pool(1);
  without.Collect(FlatNet(worlds.task().widths(), 0), 0, &pool);
  with.Collect(FlatNet(worlds.task().widths(), 6), 0, &pool);
  const SliceRollout& plain = without.slice(0);
  const SliceRollout& valued = with.slice(0);
  ASSERT_EQ(plain.choices, valued.choices);
  int truncated = 0, stopped = 0;
  for (size_t t = 0; t < plain.rewards.size(); ++t) {
    const bool stop = plain.choices[t] == plain.questions.candidate_count(static_cast<int>(t));
    const bool cut = plain.ended[t] && !stop;
    EXPECT_FLOAT_EQ(valued.rewards[t], plain.rewards[t] + (cut ? 3.0f : 0.0f));
    truncated += cut;
    stopped += stop;
  }
  EXPECT_GT(truncated, 3);
  EXPECT_GT(stopped, 3);
  EXPECT_EQ(with.totals().truncated, truncated);
  EXPECT_EQ(with.totals().episodes, truncated + stopped);
}

TEST(VectorEnv, EnvironmentsTakeTheWorldsInTurn) {
  const std::shared_ptr<const Scenario> scenarios[] = {ShippedScenario("continuum-7x21"),
                                                       TwoNodes().scenario};
  const Result<TrainingWorlds> worlds = TrainingWorlds::Make(scenarios);
  ASSERT_TRUE(worlds.has_value());
  VectorEnv envs(worlds->list(), 1, {.envs = 8, .steps = 4, .envs_per_slice = 4});
  ThreadPool pool(2);
  envs.Collect(FlatNet(worlds->task().widths(), 0), 0, &pool);
  for (int s = 0; s < envs.slice_count(); ++s) {
    const GraphBatch& questions = envs.slice(s).questions;
    ASSERT_EQ(questions.samples, 16);
    for (int i = 0; i < questions.samples; ++i) {
      EXPECT_EQ(questions.node_begin[i + 1] - questions.node_begin[i], i % 2 == 0 ? 7 : 3);
    }
  }
}

}  // namespace
}  // namespace rudderfish
