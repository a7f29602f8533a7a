// SPDX-License-Identifier: Apache-2.0
#include "policy/rollouts.h"

#include <gtest/gtest.h>

#include "policy/greedy.h"
#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::Play;
using testing::Played;
using testing::SoftmaxPolicy;

// Wants what latency hates, and never stops.
class PerversePolicy final : public Policy {
 public:
  std::string_view name() const override { return "perverse"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i) {
      const auto& candidates = asks[i].space->candidates;
      answers[i].scores.clear();
      answers[i].choice = kStop;
      for (size_t c = 0; c < candidates.size(); ++c) {
        answers[i].scores.push_back(-candidates[c].gain_ms);
        const int best = answers[i].choice;
        if (best == kStop || candidates[c].gain_ms < candidates[best].gain_ms)
          answers[i].choice = static_cast<int>(c);
      }
      answers[i].scores.push_back(-1e9f);
    }
  }
};

TEST(BestOf, FallsBackToGreedyWhenTheInnerPolicyIsBad) {
  Rng rng(1);
  const MigrationTask task({.max_steps = 20});
  const BestOfPolicy policy("best-of", std::make_shared<PerversePolicy>(), {.samples = 3});
  for (int i = 0; i < 10; ++i) {
    const State state = ContinuumWorld({}, &rng);
    const Played greedy = Play(GreedyPolicy(), task, LatencyLaw::Reach(), state);
    EXPECT_EQ(Play(policy, task, LatencyLaw::Reach(), state).moves, greedy.moves);
  }
}

TEST(BestOf, IsNeverWorseThanGreedyAndMoreSamplesHelp) {
  Rng rng(2);
  const MigrationTask task({});
  double greedy_ms = 0, few_ms = 0, many_ms = 0;
  const BestOfPolicy few("few", std::make_shared<SoftmaxPolicy>(20), {.samples = 1});
  const BestOfPolicy many("many", std::make_shared<SoftmaxPolicy>(20), {.samples = 64});
  for (int i = 0; i < 30; ++i) {
    const State state = ContinuumWorld({}, &rng);
    const double greedy = Play(GreedyPolicy(), task, LatencyLaw::Reach(), state).cost_ms();
    const double best = Play(many, task, LatencyLaw::Reach(), state).cost_ms();
    EXPECT_LE(best, greedy + 1e-9);
    greedy_ms += greedy;
    few_ms += Play(few, task, LatencyLaw::Reach(), state).cost_ms();
    many_ms += best;
  }
  EXPECT_LT(many_ms, few_ms);
  EXPECT_LT(many_ms, greedy_ms - 1);
}

TEST(BestOf, WithoutSamplesTakesTheLikeliestPlanOrGreedys) {
  Rng rng(3);
  const MigrationTask task({});
  const BestOfPolicy policy("best-of", std::make_shared<SoftmaxPolicy>(1), {.samples = 0});
  const State state = ContinuumWorld({}, &rng);
  const Played inner = Play(SoftmaxPolicy(1), task, LatencyLaw::Reach(), state);
  EXPECT_LE(Play(policy, task, LatencyLaw::Reach(), state).cost_ms(), inner.cost_ms() + 1e-9);
}

TEST(BestOf, ChanceComesFromTheSeed) {
  Rng rng(4);
  const MigrationTask task({});
  const BestOfPolicy policy("best-of", std::make_shared<SoftmaxPolicy>(50), {.samples = 2});
  int different = 0;
  for (int i = 0; i < 10; ++i) {
    const State state = ContinuumWorld({}, &rng);
    const auto moves = Play(policy, task, LatencyLaw::Reach(), state, 1).moves;
    EXPECT_EQ(Play(policy, task, LatencyLaw::Reach(), state, 1).moves, moves);
    different += Play(policy, task, LatencyLaw::Reach(), state, 2).moves != moves;
  }
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace rudderfish
