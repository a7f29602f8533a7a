// SPDX-License-Identifier: Apache-2.0
#include "learn/dqn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "learn/learner.h"
#include "tests/support/tiny_scenario.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::ShippedScenario;
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
    const auto value = static_cast<float>(rng.Uniform(-1, 1)), target = static_cast<float>(rng.Uniform(-3, 3));
    const DuelingLoss loss = HuberLoss(scores, value, choice, target);
    constexpr float kStep = 1e-2f;
    const auto slope = [&](auto&& change) {
      std::vector<float> above = scores, below = scores;
      float value_above = value, value_below = value;
      change(&above, &value_above, kStep);
      change(&below, &value_below, -kStep);
      return (HuberLoss(above, value_above, choice, target).loss - HuberLoss(below, value_below, choice, target).loss) /
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

constexpr ReplayOptions kSmallReplay{.envs = 8, .envs_per_slice = 4, .steps = 5, .episode_steps_max = 4,
                                     .samples_max = 120};

TEST(Replay, KeepsTheNewestPages) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  const nn::CandidateNet net = FlatNet(worlds.task().widths(), 0);
  Replay replay(worlds.list(), 1, kSmallReplay);
  ThreadPool pool(1);
  for (uint64_t page = 0; page < 7; ++page) {
    replay.Collect(net, page, 1.0f, &pool);
    EXPECT_EQ(replay.samples(), 40 * std::min<int64_t>(3, static_cast<int64_t>(page) + 1));
  }
  // The oldest page still there is that of iteration 4: a second memory that saw the same has it as its fifth.
  Replay longer(worlds.list(), 1, {.envs = 8, .envs_per_slice = 4, .steps = 5, .episode_steps_max = 4,
                                   .samples_max = 4000});
  for (uint64_t page = 0; page < 7; ++page) longer.Collect(net, page, 1.0f, &pool);
  const std::vector<int32_t> kept = replay.Choices(), all = longer.Choices();
  EXPECT_EQ(kept, std::vector<int32_t>(all.end() - 120, all.end()));
}

TEST(Replay, LargeQuestionsShortenTheMemory) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  ReplayOptions options = kSmallReplay;
  options.samples_max = 1 << 20;
  options.bytes_max = 200'000;
  Replay replay(worlds.list(), 1, options);
  ThreadPool pool(1);
  for (uint64_t page = 0; page < 60; ++page) {
    replay.Collect(FlatNet(worlds.task().widths(), 0), page, 1.0f, &pool);
  }
  EXPECT_GE(replay.pages_max(), 2);
  EXPECT_LT(replay.samples(), 60 * 40);
}

// Rewards of n steps, added up from those of single steps.
TEST(Replay, StepsOfOneSampleAddUpUntilTheEpisodeEnds) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  Replay replay(worlds.list(), 1, kSmallReplay);
  ThreadPool pool(1);
  const nn::CandidateNet net = FlatNet(worlds.task().widths(), 0);
  for (uint64_t page = 0; page < 3; ++page) replay.Collect(net, page, 1.0f, &pool);
  constexpr float kGamma = 0.5f;
  int unfinished = 0, across_pages = 0, ended = 0, beyond = 0;
  for (int64_t sample = 0; sample < replay.samples(); ++sample) {
    Transition one, three;
    if (!replay.Find(sample, 1, kGamma, &one)) {
      EXPECT_GE(sample % 40 % 20, 16);  // The last step of the newest page.
      EXPECT_GE(sample, 80);
      continue;
    }
    if (!replay.Find(sample, 3, kGamma, &three)) {
      ++unfinished;
      continue;
    }
    // Walks the same way by single steps.
    float reward = 0, discount = 1;
    Transition step = one;
    int64_t at = sample;
    const GraphBatch* next = nullptr;
    for (int k = 0;; ++k) {
      reward += discount * step.reward;
      discount *= step.discount;
      next = step.next_questions;
      const bool on = k < 2 && step.discount > 0 && next->samples == 20;
      if (!on) break;
      at = at % 20 + 4 < 20 ? at + 4 : at + 40 - 16;
      across_pages += at / 40 != sample / 40;
      ASSERT_TRUE(replay.Find(at, 1, kGamma, &step));
    }
    EXPECT_FLOAT_EQ(three.reward, reward);
    EXPECT_FLOAT_EQ(three.discount, discount);
    EXPECT_EQ(three.next_questions, discount > 0 ? next : nullptr);
    ended += discount == 0;
    beyond += discount > 0 && next->samples != 20;
  }
  EXPECT_GT(unfinished, 0);
  EXPECT_GT(across_pages, 0);
  EXPECT_GT(ended, 0);
  EXPECT_GT(beyond, 0);
}

TEST(Replay, RefilledMemoryHoldsTheSameQuestionsAndGoesOn) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  ReplayOptions options = kSmallReplay;
  const nn::CandidateNet net = MakeNet({.seed = 3, .hidden = 16}, worlds.task().widths());
  Replay original(worlds.list(), 1, options), refilled(worlds.list(), 1, options);
  ThreadPool pool(2);
  for (uint64_t page = 0; page < 5; ++page) original.Collect(net, page, 0.5f, &pool);
  const Result<void> result =
      refilled.Refill(original.OldestCursors(), original.Choices(), original.pages_max(), &pool);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(original.samples(), refilled.samples());
    for (int64_t sample = 0; sample < original.samples(); ++sample) {
      Transition a, b;
      ASSERT_EQ(original.Find(sample, 2, 1, &a), refilled.Find(sample, 2, 1, &b));
      EXPECT_EQ(a.reward, b.reward);
      EXPECT_EQ(a.questions->candidates, b.questions->candidates);
      if (a.next_questions == nullptr) continue;
      EXPECT_EQ(a.next_questions->context, b.next_questions->context);
    }
    original.Collect(net, 5, 0.5f, &pool);
    refilled.Collect(net, 5, 0.5f, &pool);
  }
}

TEST(Replay, ChoicesThatNoQuestionOffersAreRefused) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  Replay original(worlds.list(), 1, kSmallReplay), refilled(worlds.list(), 1, kSmallReplay);
  ThreadPool pool(1);
  for (uint64_t page = 0; page < 2; ++page) original.Collect(FlatNet(worlds.task().widths(), 0), page, 1.0f, &pool);
  std::vector<int32_t> choices = original.Choices();
  choices[37] = 100;
  const Result<void> wrong = refilled.Refill(original.OldestCursors(), choices, original.pages_max(), &pool);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kCorruption);
  choices.pop_back();
  EXPECT_FALSE(refilled.Refill(original.OldestCursors(), choices, original.pages_max(), &pool).has_value());
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
  // Q is 0 everywhere, so the loss is about 1000 where the plan goes on and about 0 where it has stopped.
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

TEST(Dqn, WeightsAreTheSameForAnyNumberOfThreads) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  const TrainOptions options = SmallOptions(Algorithm::kDqn);
  std::vector<std::vector<float>> weights;
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const std::unique_ptr<Learner> learner = MakeLearner(options, worlds.list());
    for (uint64_t iteration = 1; iteration <= 8; ++iteration) learner->Iterate(iteration, 0.1, &pool);
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
