// SPDX-License-Identifier: Apache-2.0
#include "policy/lookahead.h"

#include <gtest/gtest.h>

#include "policy/exact.h"
#include "policy/greedy.h"
#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::Pattern;
using testing::Play;
using testing::Played;
using testing::RandomWorld;

std::vector<State> Worlds(int count, uint64_t seed) {
  Rng rng(seed);
  std::vector<State> worlds;
  constexpr Pattern kPatterns[] = {Pattern::kChain, Pattern::kSequential, Pattern::kParallel};
  for (int i = 0; i < count; ++i) {
    worlds.push_back(i % 2 == 0 ? RandomWorld(&rng)
                                : ContinuumWorld({.pattern = kPatterns[i / 2 % 3]}, &rng));
  }
  return worlds;
}

LookaheadOptions WithPrior(double temperature_ms) {
  LookaheadOptions options;
  options.prior = std::make_shared<testing::SoftmaxPolicy>(temperature_ms);
  return options;
}

TEST(Lookahead, IsNeverWorseThanGreedyOrStaying) {
  for (const LookaheadOptions& options :
       {LookaheadOptions{.budget = {.width = 1}}, LookaheadOptions{.budget = {.width = 32}},
        WithPrior(10)}) {
    const LookaheadPolicy lookahead("lookahead", options);
    for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
      for (const State& state : Worlds(40, 1)) {
        const MigrationTask task({});
        const Played ours = Play(lookahead, task, *law, state);
        EXPECT_LE(ours.cost_ms(), Play(GreedyPolicy(), task, *law, state).cost_ms() + 1e-9);
        EXPECT_LE(ours.cost_ms(), ours.start_ms + 1e-9);
      }
    }
  }
}

TEST(Lookahead, IsNeverWorseThanGreedyAmongRepresentatives) {
  const LookaheadPolicy lookahead("lookahead", {.budget = {.width = 16}});
  const MigrationTask task({.max_candidates = 6});
  for (const State& state : Worlds(40, 2)) {
    const double ours = Play(lookahead, task, LatencyLaw::Reach(), state).cost_ms();
    EXPECT_LE(ours, Play(GreedyPolicy(), task, LatencyLaw::Reach(), state).cost_ms() + 1e-9);
  }
}

TEST(Lookahead, FindsTheOptimumOfSmallWorlds) {
  Rng rng(3);
  const LookaheadPolicy lookahead("lookahead", {.budget = {.width = 256, .patience = 6}});
  const MigrationTask task({});
  int proven = 0;
  for (int i = 0; i < 40; ++i) {
    const State state = ContinuumWorld({.clouds = 1, .edges = 3, .replicas_max = 2}, &rng);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    const ExactResult exact = PlanExactly(&model, task, {});
    if (!exact.proven) continue;
    ++proven;
    EXPECT_NEAR(Play(lookahead, task, LatencyLaw::Reach(), state).cost_ms(), exact.plan.cost_ms,
                exact.tolerance_ms);
  }
  EXPECT_GE(proven, 35);
}

TEST(Lookahead, FollowsThePlanItMade) {
  const LookaheadPolicy lookahead("lookahead", {.budget = {.width = 32}});
  const MigrationTask task({});
  for (const State& state : Worlds(20, 4)) {
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    ActionSpace space;
    task.Space(&model, {}, &space);
    const auto memory = lookahead.NewMemory(1);
    Ask ask{&model, &task, {}, &space, memory.get()};
    Answer answer;
    lookahead.Decide({&ask, 1}, {&answer, 1});
    const std::vector<Move> planned = LookaheadPolicy::PlanOf(*memory).moves;
    const Played played = Play(lookahead, task, LatencyLaw::Reach(), state);
    EXPECT_EQ(played.moves, planned);
    EXPECT_NEAR(answer.value, played.start_ms - played.cost_ms(), 1e-9);
  }
}

TEST(Lookahead, PlansAnewFromWhereItFindsItself) {
  Rng rng(5);
  const LookaheadPolicy lookahead("lookahead", {.budget = {.width = 32}});
  const MigrationTask task({});
  State state = ContinuumWorld({}, &rng);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  ActionSpace space;
  const auto used = lookahead.NewMemory(1), fresh = lookahead.NewMemory(1);
  Answer first, again, anew;
  task.Space(&model, {}, &space);
  Ask ask{&model, &task, {}, &space, used.get()};
  lookahead.Decide({&ask, 1}, {&first, 1});
  ASSERT_NE(first.choice, kStop);
  // Somebody else moves another pod.
  int other = 0;
  while (other == first.choice) ++other;
  Decision decision;
  task.Decode(state, space, other, &decision);
  const Migrate migrate = std::get<Migrate>(decision[0]);
  MovePod(migrate.pod, migrate.to, &state);
  model.Reset(state);
  task.Space(&model, {1}, &space);
  ask.question.step = 1;
  lookahead.Decide({&ask, 1}, {&again, 1});
  ask.memory = fresh.get();
  lookahead.Decide({&ask, 1}, {&anew, 1});
  EXPECT_EQ(again.choice, anew.choice);
  EXPECT_EQ(again.value, anew.value);
}

TEST(GuidedBeam, ASharpPriorLeadsWhereGainAloneDoesNot) {
  // With one child by gain and one by prior a state, a uniform prior adds chance moves only; the
  // plan is at least as good as without any children by prior.
  double with_prior = 0, without = 0;
  for (const State& state : Worlds(30, 6)) {
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    const testing::SoftmaxPolicy prior(10);
    GuidedBeam beam(prior);
    beam.Search(&model, MigrationTask({}), {},
                {.width = 8, .moves_by_prior = 4, .moves_by_gain = 1});
    with_prior += beam.plan().cost_ms;
    GuidedBeam narrow(prior);
    narrow.Search(&model, MigrationTask({}), {},
                  {.width = 1, .moves_by_prior = 0, .moves_by_gain = 1});
    without += narrow.plan().cost_ms;
  }
  EXPECT_LT(with_prior, without);
}

TEST(GuidedBeam, CostsItsPlanExactly) {
  for (const State& state : Worlds(30, 7)) {
    const testing::SoftmaxPolicy prior(10);
    for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
      Evaluator model(*law);
      model.Reset(state);
      GuidedBeam beam(prior);
      beam.Search(&model, MigrationTask({}), {}, {});
      Plan plan = beam.plan();
      AppraisePlan(&model, MigrationTask({}), {}, &plan);
      EXPECT_EQ(plan.moves, beam.plan().moves);
      EXPECT_NEAR(plan.cost_ms, beam.plan().cost_ms, 1e-9);
    }
  }
}

}  // namespace
}  // namespace rudderfish
