// SPDX-License-Identifier: Apache-2.0
#include "policy/greedy.h"

#include <gtest/gtest.h>

#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::Play;
using testing::Played;
using testing::RandomWorld;
using testing::WorldBuilder;

// Every move of every pod tried, in REACH's order of actions.
GreedyStep TryEveryCell(Evaluator* model, const State& state, double cost_ms, Move* chosen) {
  GreedyStep best;
  for (NodeId to = 0; to < state.nodes.size(); ++to) {
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      const Move move{state.pods.workload[pod], state.pods.node[pod], to};
      if (!MoveAllowed(state, model->placement(), move)) continue;
      const double gain_ms = model->Now().latency_ms - model->Try(move).latency_ms;
      if (gain_ms <= best.gain_ms + kTieMs) continue;
      best.gain_ms = gain_ms;
      *chosen = move;
    }
  }
  best.choice = best.gain_ms > cost_ms ? 0 : kStop;
  return best;
}

State Continuum(Rng* rng) {
  const auto pattern = static_cast<testing::Pattern>(rng->Below(3));
  return testing::ContinuumWorld({.pattern = pattern, .clouds = 4, .edges = 12}, rng);
}

TEST(Greedy, EqualsTryingEveryCell) {
  Rng rng(1);
  const MigrationTask task({.max_candidates = 100'000});
  int moves = 0;
  GreedyScratch scratch;
  for (int i = 0; i < 600; ++i) {
    const State state = i % 3 == 0 ? Continuum(&rng) : RandomWorld(&rng);
    const LatencyLaw& law = i % 2 == 0 ? LatencyLaw::Physical() : LatencyLaw::Reach();
    Evaluator model(law);
    model.Reset(state);
    ActionSpace space;
    task.Space(&model, {}, &space);
    Move expected;
    const GreedyStep every = TryEveryCell(&model, state, task.StepCost({}), &expected);
    const GreedyStep step = ChooseGreedily(&model, task, {}, space, state.pods.node, &scratch);
    ASSERT_EQ(step.choice == kStop, every.choice == kStop) << "world " << i;
    if (step.choice == kStop) continue;
    EXPECT_NEAR(step.gain_ms, every.gain_ms, kTieMs);
    EXPECT_TRUE(space.candidates[step.choice].move == expected) << "world " << i;
    ++moves;
  }
  EXPECT_GT(moves, 200);
}

TEST(Greedy, TriesFewOfManyUnderThePhysicalLaw) {
  Rng rng(5);
  const MigrationTask task({.max_candidates = 100'000});
  GreedyScratch scratch;
  size_t tried = 0, listed = 0;
  for (int i = 0; i < 30; ++i) {
    const State state = testing::ContinuumWorld({.clouds = 10, .edges = 30}, &rng);
    Evaluator model(LatencyLaw::Physical());
    model.Reset(state);
    ActionSpace space;
    task.Space(&model, {}, &space);
    ChooseGreedily(&model, task, {}, space, state.pods.node, &scratch);
    tried += scratch.tried;
    listed += space.candidates.size();
  }
  EXPECT_LT(5 * tried, listed);
}

// Pods of one service on node 0 of a slow kind, and equal fast nodes.
State SlowPods(int pods, double execution_ms) {
  WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId slow = world.Kind("slow", layer, 2), fast = world.Kind("fast", layer, 1);
  const WorkloadId client = world.Workload("client", 1, 1, false),
                   service = world.Workload("service", 100, 100);
  world.Node(slow, 10'000, 10'000);
  world.Node(fast, 10'000, 10'000);
  world.Node(fast, 10'000, 10'000);
  world.Pod(client, 0);
  for (int i = 0; i < pods; ++i) world.Pod(service, 0);
  world.Endpoint(
      {.workload = client,
       .groups = {{{.workload = service, .execution_ms = execution_ms, .data_mbytes = 0}}}});
  return world.Build();
}

TEST(Greedy, TiesGoToTheLowestNode) {
  const Played played =
      Play(GreedyPolicy(), MigrationTask({}), LatencyLaw::Reach(), SlowPods(1, 10));
  ASSERT_EQ(played.moves.size(), 1u);
  EXPECT_EQ(played.moves[0].to, 1);
}

TEST(Greedy, StopsWhenAMoveGainsNoMoreThanItCosts) {
  const MigrationTask task({.step_penalty_ms = 5, .step_penalty = StepPenalty::kConstant});
  EXPECT_EQ(Play(GreedyPolicy(), task, LatencyLaw::Reach(), SlowPods(1, 5)).moves.size(),
            0u);  // Gains 5 exactly.
  EXPECT_EQ(Play(GreedyPolicy(), task, LatencyLaw::Reach(), SlowPods(1, 5.5)).moves.size(), 1u);
}

TEST(Greedy, AGrowingCostEndsThePlanSooner) {
  // Ten pods that gain 1 ms each; the fifth move costs 1 ms.
  const MigrationTask growing({.step_penalty_ms = 0.2});
  EXPECT_EQ(Play(GreedyPolicy(), growing, LatencyLaw::Reach(), SlowPods(10, 10)).moves.size(), 4u);
  const MigrationTask constant({.step_penalty_ms = 0.2, .step_penalty = StepPenalty::kConstant});
  EXPECT_EQ(Play(GreedyPolicy(), constant, LatencyLaw::Reach(), SlowPods(10, 10)).moves.size(),
            10u);
}

TEST(Greedy, RolloutIsThePlanThatThePolicyFollows) {
  Rng rng(2);
  const MigrationTask task({});
  for (int i = 0; i < 60; ++i) {
    const State state = i % 2 == 0 ? RandomWorld(&rng) : testing::ContinuumWorld({}, &rng);
    const Played played = Play(GreedyPolicy(), task, LatencyLaw::Reach(), state);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    GreedyRollout scratch;
    Plan plan;
    RollOutGreedily(&model, task, {}, &scratch, &plan);
    EXPECT_EQ(plan.moves, played.moves);
    EXPECT_EQ(plan.latency_ms, played.final_ms);
    EXPECT_NEAR(plan.cost_ms, played.cost_ms(), 1e-9);
    EXPECT_EQ(model.Now().latency_ms, played.start_ms);
  }
}

}  // namespace
}  // namespace rudderfish
