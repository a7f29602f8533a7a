// SPDX-License-Identifier: Apache-2.0
#include "policy/lookahead.h"

#include <gtest/gtest.h>

#include "policy/exact.h"
#include "policy/greedy.h"
#include "policy/walks.h"
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

LookaheadOptions BesideWalk(double temperature_ms) {
  LookaheadOptions options{.budget = {.width = 32}};
  options.stepper = std::make_shared<testing::SoftmaxPolicy>(temperature_ms);
  return options;
}

TEST(Lookahead, IsNeverWorseThanGreedyOrStaying) {
  for (const LookaheadOptions& options :
       {LookaheadOptions{.budget = {.width = 1}}, LookaheadOptions{.budget = {.width = 32}},
        BesideWalk(10)}) {
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

TEST(Lookahead, ReplansFromWhereItFindsItself) {
  Rng rng(5);
  const LookaheadPolicy lookahead("lookahead", {.budget = {.width = 32}});
  const MigrationTask task({});
  State state = ContinuumWorld({}, &rng);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  ActionSpace space;
  const auto used = lookahead.NewMemory(1), fresh = lookahead.NewMemory(1);
  Answer first, again, replanned;
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
  lookahead.Decide({&ask, 1}, {&replanned, 1});
  EXPECT_EQ(again.choice, replanned.choice);
  EXPECT_EQ(again.value, replanned.value);
}

TEST(Lookahead, IsNeverWorseThanTheWalkBesideIt) {
  const auto stepper = std::make_shared<testing::SoftmaxPolicy>(10);
  const LookaheadPolicy both("both", {.budget = {.width = 1}, .stepper = stepper});
  const WalkPolicy walk("walk", stepper);
  const MigrationTask task({});
  for (const State& state : Worlds(40, 6)) {
    EXPECT_LE(Play(both, task, LatencyLaw::Reach(), state).cost_ms(),
              Play(walk, task, LatencyLaw::Reach(), state).cost_ms() + 1e-9);
  }
}

}  // namespace
}  // namespace rudderfish
