// SPDX-License-Identifier: Apache-2.0
#include "learn/replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "learn/learner.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::ShippedScenario;
using testing::TwoNodes;
using testing::WorldsOf;

nn::CandidateNet FlatNet(const GraphWidths& widths) {
  return nn::CandidateNet({.widths = widths, .hidden = 16});
}

constexpr ReplayOptions kSmallReplay{
    .envs = 8, .envs_per_slice = 4, .steps = 5, .episode_steps_max = 4, .samples_max = 120};

TEST(Replay, KeepsTheNewestPages) {
  const TrainingWorlds worlds = WorldsOf(TwoNodes().scenario);
  const nn::CandidateNet net = FlatNet(worlds.task().widths());
  Replay replay(worlds.list(), 1, kSmallReplay);
  ThreadPool pool(1);
  for (uint64_t page = 0; page < 7; ++page) {
    replay.Collect(net, page, 1.0f, &pool);
    EXPECT_EQ(replay.samples(), 40 * std::min<int64_t>(3, static_cast<int64_t>(page) + 1));
  }
  // The oldest page still there is that of iteration 4: a second memory that saw the same has it as
  // its fifth.
  Replay longer(
      worlds.list(), 1,
      {.envs = 8, .envs_per_slice = 4, .steps = 5, .episode_steps_max = 4, .samples_max = 4000});
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
    replay.Collect(FlatNet(worlds.task().widths()), page, 1.0f, &pool);
  }
  EXPECT_GE(replay.pages_max(), 2);
  EXPECT_LT(replay.samples(), 60 * 40);
}

// Rewards of n steps, added up from those of single steps.
TEST(Replay, StepsOfOneSampleAddUpUntilTheEpisodeEnds) {
  const TrainingWorlds worlds = WorldsOf(ShippedScenario("continuum-7x21"));
  Replay replay(worlds.list(), 1, kSmallReplay);
  ThreadPool pool(1);
  const nn::CandidateNet net = FlatNet(worlds.task().widths());
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
  for (uint64_t page = 0; page < 2; ++page)
    original.Collect(FlatNet(worlds.task().widths()), page, 1.0f, &pool);
  std::vector<int32_t> choices = original.Choices();
  choices[37] = 100;
  const Result<void> wrong =
      refilled.Refill(original.OldestCursors(), choices, original.pages_max(), &pool);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kCorruption);
  choices.pop_back();
  EXPECT_FALSE(
      refilled.Refill(original.OldestCursors(), choices, original.pages_max(), &pool).has_value());
}

}  // namespace
}  // namespace rudderfish
