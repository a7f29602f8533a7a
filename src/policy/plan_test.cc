// SPDX-License-Identifier: Apache-2.0
#include "policy/plan.h"

#include <gtest/gtest.h>

#include "tests/support/play.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::WorldBuilder;

// One pod each of two services on a slow node; two fast nodes and one that is slower still, each
// with room for both.
class PlanTest : public ::testing::Test {
 protected:
  PlanTest()
      : model_(LatencyLaw::Reach()),
        task_({.step_penalty_ms = 1, .step_penalty = StepPenalty::kConstant}) {
    WorldBuilder world;
    const LayerId layer = world.Layer("cloud");
    const KindId slow = world.Kind("slow", layer, 2), fast = world.Kind("fast", layer, 1);
    const KindId slowest = world.Kind("slowest", layer, 3);
    const WorkloadId client = world.Workload("client", 1, 1, false);
    world.Workload("a", 100, 100);
    world.Workload("b", 100, 100);
    for (KindId kind : {slow, fast, fast, slowest}) world.Node(kind, 250, 250);
    world.Pod(client, 0);
    world.Pod(1, 0);
    world.Pod(2, 0);
    world.Endpoint({.workload = client,
                    .groups = {{{.workload = 1, .execution_ms = 10, .data_mbytes = 0},
                                {.workload = 2, .execution_ms = 20, .data_mbytes = 0}}}});
    state_ = world.Build();
    model_.Reset(state_);  // 2 * 10 + 2 * 20 + two hops of 1 ms: 62.
  }

  Ask MakeAsk(int step, Memory* memory) {
    task_.Space(&model_, {step}, &space_);
    return {&model_, &task_, {step}, &space_, memory};
  }

  State state_;
  Evaluator model_;
  MigrationTask task_;
  ActionSpace space_;
  Answer answer_;
};

TEST_F(PlanTest, AppraisalCutsAPlanToItsCheapestPrefix) {
  Plan plan{.moves = {{2, 0, 1}, {1, 0, 3}}};  // 42 + 1; then 52 + 2.
  AppraisePlan(&model_, task_, {}, &plan);
  EXPECT_EQ(plan.moves.size(), 1u);
  EXPECT_DOUBLE_EQ(plan.latency_ms, 42);
  EXPECT_DOUBLE_EQ(plan.cost_ms, 43);
  EXPECT_DOUBLE_EQ(model_.Now().latency_ms, 62);
}

TEST_F(PlanTest, AppraisalKeepsAHillThatIsWorthCrossing) {
  Plan plan{.moves = {{1, 0, 3}, {2, 0, 1}}};  // 72 + 1; then 52 + 2.
  AppraisePlan(&model_, task_, {}, &plan);
  EXPECT_EQ(plan.moves.size(), 2u);
  EXPECT_DOUBLE_EQ(plan.cost_ms, 54);
}

TEST_F(PlanTest, AppraisalCutsBeforeAMoveThatIsNotAllowed) {
  Plan plan{.moves = {{2, 0, 1}, {2, 0, 2}, {1, 0, 1}}};  // The second pod to move is not there.
  AppraisePlan(&model_, task_, {}, &plan);
  EXPECT_EQ(plan.moves.size(), 1u);
}

TEST_F(PlanTest, AppraisalEndsAtTheCap) {
  Plan plan{.moves = {{2, 0, 1}, {1, 0, 1}}};
  AppraisePlan(&model_, task_, {task_.max_steps() - 1}, &plan);
  EXPECT_EQ(plan.moves.size(), 1u);
}

TEST_F(PlanTest, FingerprintKnowsAPlacementAgain) {
  const uint64_t start = Fingerprint(model_);
  model_.Commit(Move{1, 0, 1});
  const uint64_t there = Fingerprint(model_);
  EXPECT_NE(start, there);
  model_.Commit(Move{1, 1, 2});
  EXPECT_NE(Fingerprint(model_), there);  // Equal latency, another node.
  model_.Undo();
  EXPECT_EQ(Fingerprint(model_), there);
}

TEST_F(PlanTest, MemoryFollowsThePlanToItsEnd) {
  PlanMemory memory;
  EXPECT_FALSE(memory.Follow(MakeAsk(0, &memory), &answer_));
  memory.Adopt({.moves = {{2, 0, 1}, {1, 0, 1}}}, MakeAsk(0, &memory), &answer_);
  EXPECT_TRUE((space_.candidates[answer_.choice].move == Move{2, 0, 1}));
  EXPECT_DOUBLE_EQ(answer_.value, 30 - 2);
  ASSERT_TRUE(memory.Follow(MakeAsk(0, &memory), &answer_));  // Asked again: the same answer.
  EXPECT_TRUE((space_.candidates[answer_.choice].move == Move{2, 0, 1}));
  model_.Commit(Move{2, 0, 1});
  ASSERT_TRUE(memory.Follow(MakeAsk(1, &memory), &answer_));
  EXPECT_TRUE((space_.candidates[answer_.choice].move == Move{1, 0, 1}));
  EXPECT_DOUBLE_EQ(answer_.value, 10 - 1);
  model_.Commit(Move{1, 0, 1});
  ASSERT_TRUE(memory.Follow(MakeAsk(2, &memory), &answer_));
  EXPECT_EQ(answer_.choice, kStop);
  EXPECT_DOUBLE_EQ(answer_.value, 0);
}

TEST_F(PlanTest, MemoryLetsGoOfAPlanThatRealityHasLeft) {
  PlanMemory memory;
  memory.Adopt({.moves = {{2, 0, 1}, {1, 0, 1}}}, MakeAsk(0, &memory), &answer_);
  model_.Commit(Move{2, 0, 2});  // To the other node.
  EXPECT_FALSE(memory.Follow(MakeAsk(1, &memory), &answer_));
}

TEST_F(PlanTest, RestartForgetsThePlan) {
  PlanMemory memory;
  memory.Adopt({.moves = {{2, 0, 1}}}, MakeAsk(0, &memory), &answer_);
  memory.Restart();
  EXPECT_FALSE(memory.Follow(MakeAsk(0, &memory), &answer_));
}

// Lists node 1 only, though node 2 is its equal.
class Representatives final : public Task {
 public:
  explicit Representatives(const Task* all) : all_(all) {}
  std::string_view name() const override { return all_->name(); }
  int max_steps() const override { return all_->max_steps(); }
  const FeatureTable& features() const override { return all_->features(); }
  GraphWidths widths() const override { return all_->widths(); }
  void Space(Evaluator* model, const Question& question, ActionSpace* space) const override {
    all_->Space(model, question, space);
    std::erase_if(space->candidates,
                  [](const Candidate& c) { return c.move.from == 2 || c.move.to == 2; });
  }
  void Encode(Evaluator*, const Question&, ActionSpace*, GraphBatch*) const override {}
  void Decode(const State&, const ActionSpace&, int, Decision*) const override {}
  double StepCost(const Question& question) const override { return all_->StepCost(question); }

 private:
  const Task* all_;
};

TEST_F(PlanTest, FittingTakesAnEqualNodeWhereOnlyRepresentativesAreListed) {
  const Representatives listed(&task_);
  Plan plan{.moves = {{2, 0, 2}, {1, 0, 2}, {2, 2, 3}}};
  FitPlan(&model_, listed, {}, &space_, &plan);
  const std::vector<Move> expected{{2, 0, 1}, {1, 0, 1}, {2, 1, 3}};
  EXPECT_EQ(plan.moves, expected);
  EXPECT_DOUBLE_EQ(model_.Now().latency_ms, 62);
}

TEST_F(PlanTest, FittingCutsWhereNothingEqualIsListed) {
  const MigrationTask one({.max_candidates = 1});
  Plan plan{.moves = {{2, 0, 1}, {1, 0, 3}}};
  FitPlan(&model_, one, {}, &space_, &plan);
  EXPECT_EQ(plan.moves.size(), 1u);
}

}  // namespace
}  // namespace rudderfish
