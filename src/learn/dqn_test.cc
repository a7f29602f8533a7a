// SPDX-License-Identifier: Apache-2.0
#include "learn/dqn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "learn/learner.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::SmallOptions;
using testing::TwoNodes;
using testing::WorldsOf;

TEST(HuberLoss, ThreeAlternativesWorkedOutByHand) {
  // A = 1, 2, 6: mean 3. Q(2) = 10 + 6 - 3 = 13.
  const std::vector<float> scores{1, 2, 6};
  const DuelingLoss near = HuberLoss(scores, 10, 2, 12.5f);
  EXPECT_FLOAT_EQ(near.q, 13);
  EXPECT_FLOAT_EQ(near.loss, 0.125f);
  EXPECT_FLOAT_EQ(near.slope, 0.5f);
  const DuelingLoss far = HuberLoss(scores, 10, 0, 12);  // Q(0) = 8
  EXPECT_FLOAT_EQ(far.q, 8);
  EXPECT_FLOAT_EQ(far.loss, 3.5f);
  EXPECT_FLOAT_EQ(far.slope, -1);
}

TEST(HuberLoss, SlopeIsThatOfTheLossByScoresAndValue) {
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(1 + rng.Below(5));
    for (float& score : scores) score = static_cast<float>(rng.Uniform(-1, 1));
    const int choice = static_cast<int>(rng.Below(static_cast<uint32_t>(scores.size())));
    const auto value = static_cast<float>(rng.Uniform(-1, 1)),
               target = static_cast<float>(rng.Uniform(-3, 3));
    const DuelingLoss loss = HuberLoss(scores, value, choice, target);
    constexpr float kStep = 1e-2f;
    const auto slope = [&](auto&& change) {
      std::vector<float> above = scores, below = scores;
      float value_above = value, value_below = value;
      change(&above, &value_above, kStep);
      change(&below, &value_below, -kStep);
      return (HuberLoss(above, value_above, choice, target).loss -
              HuberLoss(below, value_below, choice, target).loss) /
             (2 * kStep);
    };
    EXPECT_NEAR(loss.slope, slope([](auto*, float* v, float by) { *v += by; }), 6e-3);
    for (size_t j = 0; j < scores.size(); ++j) {
      const float share = 1.0f / static_cast<float>(scores.size());
      const float expected = loss.slope * ((static_cast<int>(j) == choice ? 1.0f : 0.0f) - share);
      EXPECT_NEAR(expected, slope([&](auto* s, float*, float by) { (*s)[j] += by; }), 6e-3);
    }
  }
}

nn::CandidateNet FlatNet(const GraphWidths& widths, float value) {
  nn::CandidateNet net({.widths = widths, .hidden = 16});
  net.tensor("value.bias")[0] = value;
  return net;
}

TEST(Dqn, TargetIsTheDelayedNetsValueWherePlansGoOn) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  DqnOptions options = SmallOptions(Algorithm::kDqn).dqn;
  options.n_step = 1;
  options.updates = 8;
  options.epsilon_start = options.epsilon_end = 1;
  options.learning_rate_start = options.learning_rate_end = 0;
  options.target_rate = 0;
  nn::CandidateNet net = FlatNet(worlds.task().widths(), 0);
  Dqn dqn(options, worlds.list(), 1, &net);
  dqn.target().tensor("value.bias")[0] = 1000;
  ThreadPool pool(1);
  for (uint64_t iteration = 0; iteration < 4; ++iteration) dqn.Collect(iteration, 0, &pool);
  // Q is 0 everywhere, so the loss is about 1000 where the plan goes on and about 0 where it has
  // stopped.
  double going_on = 0, usable = 0;
  for (int64_t sample = 0; sample < dqn.replay().samples(); ++sample) {
    Transition transition;
    if (!dqn.replay().Find(sample, 1, options.gamma, &transition)) continue;
    ++usable;
    going_on += transition.discount > 0;
  }
  ASSERT_GT(going_on, 0.3 * usable);
  ASSERT_LT(going_on, 0.95 * usable);
  EXPECT_NEAR(dqn.Update(4, 0, &pool).loss / 1000, going_on / usable, 0.06);
}

TEST(Dqn, TargetFollowsTheNetwork) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  DqnOptions options = SmallOptions(Algorithm::kDqn).dqn;
  options.updates = 1;
  options.target_rate = 0.25f;
  options.learning_rate_start = options.learning_rate_end = 0;
  options.warm_up_samples = 1;
  nn::CandidateNet net = FlatNet(worlds.task().widths(), 8);
  Dqn dqn(options, worlds.list(), 1, &net);
  dqn.target().tensor("value.bias")[0] = 0;
  ThreadPool pool(1);
  dqn.Collect(0, 0, &pool);
  dqn.Update(0, 0, &pool);
  EXPECT_FLOAT_EQ(dqn.target().tensor("value.bias")[0], 2);
}

TEST(Dqn, TargetIsCopiedOnceInSoManyUpdates) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  DqnOptions options = SmallOptions(Algorithm::kDqn).dqn;
  options.updates = 1;
  options.minibatch = Dqn::kChunkSamples / 2;  // Less than a unit of summation.
  options.target_rate = 1;
  options.target_every = 3;
  options.learning_rate_start = options.learning_rate_end = 0;
  options.warm_up_samples = 1;
  nn::CandidateNet net = FlatNet(worlds.task().widths(), 8);
  Dqn dqn(options, worlds.list(), 1, &net);
  dqn.target().tensor("value.bias")[0] = 0;
  ThreadPool pool(1);
  for (const uint64_t iteration : {1, 2, 3}) {
    dqn.Collect(iteration, 0, &pool);
    EXPECT_GT(dqn.Update(iteration, 0, &pool).loss, 0);
    EXPECT_FLOAT_EQ(dqn.target().tensor("value.bias")[0], iteration < 3 ? 0 : 8);
  }
}

TEST(Dqn, WeightsAreTheSameForAnyNumberOfThreads) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  const TrainOptions options = SmallOptions(Algorithm::kDqn);
  std::vector<std::vector<float>> weights;
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const std::unique_ptr<Learner> learner = MakeLearner(options, worlds.list());
    for (uint64_t iteration = 1; iteration <= 8; ++iteration)
      learner->Iterate(iteration, 0.1, &pool);
    weights.emplace_back(learner->net().parameters().begin(), learner->net().parameters().end());
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
}

TEST(Dqn, ExplorationFallsInTheFirstPartOfTheRun) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  TrainOptions options = SmallOptions(Algorithm::kDqn);
  options.dqn.epsilon_start = 0.9f;
  options.dqn.epsilon_end = 0.1f;
  options.dqn.epsilon_fall = 0.5f;
  ThreadPool pool(1);
  const std::unique_ptr<Learner> learner = MakeLearner(options, worlds.list());
  EXPECT_FLOAT_EQ(learner->Iterate(1, 0, &pool).epsilon, 0.9f);
  EXPECT_FLOAT_EQ(learner->Iterate(2, 0.25, &pool).epsilon, 0.5f);
  EXPECT_FLOAT_EQ(learner->Iterate(3, 0.75, &pool).epsilon, 0.1f);
}

}  // namespace
}  // namespace rudderfish
