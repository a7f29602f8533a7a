// SPDX-License-Identifier: Apache-2.0
#include "policy/exact.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::Play;

// The cost of the best plan of at most `depth` moves, all of them tried; a placement again only if
// it is reached sooner, or pods have left other nodes on the way.
class Enumeration {
 public:
  Enumeration(Evaluator* model, const Task& task) : model_(model), task_(task) {}

  double Best(int depth) {
    best_ms_ = model_->Now().latency_ms;
    Visit(0, 0, depth);
    return best_ms_;
  }

 private:
  void Visit(int made, double steps_ms, int depth) {
    best_ms_ = std::min(best_ms_, model_->Now().latency_ms + steps_ms);
    if (made == depth) return;
    const auto [seen, is_new] = soonest_.try_emplace({Fingerprint(*model_), Left()}, made);
    if (!is_new && seen->second <= made) return;
    seen->second = made;
    ActionSpace space;
    task_.Space(model_, {made}, &space);
    for (const Candidate& candidate : space.candidates) {
      model_->Commit(candidate.move);
      Visit(made + 1, steps_ms + task_.StepCost({made}), depth);
      model_->Undo();
    }
  }

  std::vector<bool> Left() const {
    const Placement& placement = model_->placement();
    std::vector<bool> left;
    for (WorkloadId w = 0; w < model_->state().catalog->workload_count(); ++w) {
      for (NodeId node = 0; node < model_->state().nodes.size(); ++node)
        left.push_back(placement.has_left(w, node));
    }
    return left;
  }

  Evaluator* model_;
  const Task& task_;
  double best_ms_ = 0;
  std::map<std::pair<uint64_t, std::vector<bool>>, int> soonest_;
};

TEST(Exact, EqualsTryingAllPlans) {
  Rng rng(1);
  const MigrationTask task({.step_penalty_ms = 1});
  int proven = 0;
  for (int i = 0; i < 200; ++i) {
    constexpr testing::Pattern kPatterns[] = {testing::Pattern::kChain,
                                              testing::Pattern::kParallel};
    const State state = ContinuumWorld(
        {.pattern = kPatterns[i % 2], .clouds = 1, .edges = 2, .replicas_max = 2}, &rng);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    const ExactResult exact = PlanExactly(&model, task, {});
    const double best_ms = Enumeration(&model, task).Best(12);
    EXPECT_LE(exact.bound_ms, best_ms + exact.tolerance_ms);
    if (exact.proven) {
      EXPECT_NEAR(exact.plan.cost_ms, best_ms, exact.tolerance_ms);
    } else {  // The best placement is reached only by pods that return to a node.
      EXPECT_EQ(exact.reason, "a better plan has moves that are not among the alternatives");
      EXPECT_LE(best_ms, exact.plan.cost_ms + exact.tolerance_ms);
    }
    proven += exact.proven;
  }
  EXPECT_GE(proven, 180);
}

TEST(Exact, ProvesNothingUnderALawThatLooksAtNodes) {
  Rng rng(2);
  Evaluator model(LatencyLaw::Physical());
  const State state = ContinuumWorld({}, &rng);
  model.Reset(state);
  const ExactResult exact = PlanExactly(&model, MigrationTask({}), {});
  EXPECT_FALSE(exact.proven);
  EXPECT_FALSE(exact.reason.empty());
  EXPECT_LE(exact.plan.cost_ms, model.Now().latency_ms);
}

TEST(Exact, SaysWhichLimitKeptItFromAProof) {
  Rng rng(3);
  const State state = ContinuumWorld({}, &rng);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  const MigrationTask task({});
  EXPECT_EQ(PlanExactly(&model, task, {}, {.ends = 1}).reason, "too many ends");
  int stopped_short = 0;
  for (int i = 0; i < 20; ++i) {
    const State other = ContinuumWorld({}, &rng);
    model.Reset(other);
    const ExactResult exact = PlanExactly(&model, task, {}, {.placements = 0, .width = 1});
    EXPECT_EQ(exact.proven, exact.reason.empty());
    stopped_short += exact.reason == "too many placements";
  }
  EXPECT_GT(stopped_short, 0);
}

TEST(Exact, PolicyFollowsItsProvenPlan) {
  Rng rng(4);
  const MigrationTask task({});
  const ExactPolicy policy;
  for (int i = 0; i < 5; ++i) {
    const State state = ContinuumWorld({.replicas_max = 3}, &rng);
    const auto memory = policy.NewMemory(1);
    const testing::Played played = Play(policy, task, LatencyLaw::Reach(), state, memory.get());
    const ExactResult& result = ExactPolicy::ResultOf(*memory);
    EXPECT_TRUE(result.proven);
    EXPECT_EQ(played.moves, result.plan.moves);
    EXPECT_NEAR(played.cost_ms(), result.plan.cost_ms, 1e-9);
  }
}

}  // namespace
}  // namespace rudderfish
