// SPDX-License-Identifier: Apache-2.0
#include "task/walk.h"

#include <gtest/gtest.h>

#include <map>

#include "task/migration.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;

// Numbers of pods by workload and node.
std::vector<int> CountsOf(const Evaluator& model) {
  std::vector<int> counts;
  for (WorkloadId w = 0; w < model.placement().workload_count(); ++w) {
    for (NodeId node = 0; node < model.placement().node_count(); ++node)
      counts.push_back(model.placement().on_node(w, node));
  }
  return counts;
}

int Displaced(const std::vector<int>& before, const std::vector<int>& now) {
  int displaced = 0;
  for (size_t i = 0; i < now.size(); ++i) displaced += std::max(0, now[i] - before[i]);
  return displaced;
}

struct Walker {
  explicit Walker(const State& start, const MigrationOptions& options = {})
      : state(start), task(options), model(LatencyLaw::Reach()) {
    model.Reset(state);
    model.ImagineMoves();
    walk.Begin(model, task, {});
    before = CountsOf(model);
    task.Space(&model, walk.question(), &space);
  }
  double Go(const Move& move) {
    model.CommitForGood(move);
    const double reward = walk.Note(model, move);
    task.Space(&model, walk.question(), &space);
    return reward;
  }
  const Move& Any(Rng* rng) {
    return space.candidates[rng->Below(static_cast<uint32_t>(space.count()))].move;
  }

  State state;
  MigrationTask task;
  Evaluator model;
  Walk walk;
  ActionSpace space;
  std::vector<int> before;
};

TEST(Walk, EntersNoPlacementTwiceAndMissesNoOther) {
  Rng rng(1);
  for (int world = 0; world < 10; ++world) {
    Walker walker(ContinuumWorld({.clouds = 1, .edges = 2, .replicas_max = 2}, &rng));
    std::map<std::vector<int>, bool> been{{walker.before, true}};
    for (int step = 0; step < 30 && walker.space.count() > 0; ++step) {
      ActionSpace all;
      walker.task.Space(&walker.model, {}, &all);
      int fresh = 0;
      for (const Candidate& candidate : all.candidates) {
        walker.model.Commit(candidate.move);
        const bool is_fresh = !been.contains(CountsOf(walker.model));
        walker.model.Undo();
        fresh += is_fresh;
        EXPECT_EQ(FindCandidate(walker.space, candidate.move) != kStop, is_fresh);
      }
      EXPECT_EQ(walker.space.count(), fresh);
      walker.Go(walker.Any(&rng));
      EXPECT_TRUE(been.insert({CountsOf(walker.model), true}).second);
    }
  }
}

TEST(Walk, MayReturnToANodeThatItLeft) {
  Rng rng(2);
  int returns = 0;
  for (int world = 0; world < 10; ++world) {
    Walker walker(ContinuumWorld({}, &rng));
    std::vector<Move> made;
    for (int step = 0; step < 20 && walker.space.count() > 0; ++step) {
      const Move move = walker.Any(&rng);
      for (const Move& earlier : made)
        returns += earlier.workload == move.workload && earlier.from == move.to;
      walker.Go(move);
      made.push_back(move);
    }
  }
  EXPECT_GT(returns, 0);
}

TEST(Walk, CountsPodsThatAreElsewhereAndPricesThemOnly) {
  Rng rng(3);
  for (const StepPenalty penalty : {StepPenalty::kGrowing, StepPenalty::kConstant}) {
    Walker walker(ContinuumWorld({}, &rng), {.step_penalty = penalty});
    double best = walker.model.Now().latency_ms;
    for (int step = 1; step <= 25 && walker.space.count() > 0; ++step) {
      const double reward = walker.Go(walker.Any(&rng));
      const int displaced = Displaced(walker.before, CountsOf(walker.model));
      EXPECT_EQ(walker.walk.displaced(), displaced);
      EXPECT_EQ(walker.walk.question().step, displaced);
      double objective = walker.model.Now().latency_ms;
      for (int i = 0; i < displaced; ++i) objective += walker.task.StepCost({i});
      EXPECT_NEAR(walker.walk.objective_ms(), objective, 1e-9);
      EXPECT_NEAR(reward, std::max(0.0, best - objective) - Walk::kStepMs, 1e-9);
      if (objective < best - 1e-9) {
        EXPECT_EQ(walker.walk.best_steps(), step);
        EXPECT_EQ(walker.walk.best_displaced(), displaced);
        EXPECT_EQ(walker.walk.best_latency_ms(), walker.model.Now().latency_ms);
      }
      best = std::min(best, objective);
      EXPECT_NEAR(walker.walk.best_objective_ms(), best, 1e-9);
    }
  }
}

TEST(Walk, IsAsLongAsItsPodsAreManyAndNoLongerThanTheTask) {
  Rng rng(4);
  const State state = ContinuumWorld({}, &rng);
  EXPECT_EQ(Walker(state).walk.steps_max(), 30);
  EXPECT_EQ(Walker(state, {.max_steps = 7}).walk.steps_max(), 7);
  Walk late;
  Walker walker(state, {.max_steps = 7});
  late.Begin(walker.model, walker.task, {5});
  EXPECT_EQ(late.steps_max(), 2);
  EXPECT_EQ(late.question().step, 5);
}

}  // namespace
}  // namespace rudderfish
