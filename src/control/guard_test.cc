// SPDX-License-Identifier: Apache-2.0
#include "control/guard.h"

#include <gtest/gtest.h>

#include <memory>

#include "task/migration.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using std::chrono::seconds;
using testing::WorldBuilder;

// A client in the cloud calls a worker; two workers are on the edge, 50 ms away, of which one fills
// its node.
std::optional<Move> StopsAtOnce(const Question&) { return std::nullopt; }

class GuardTest : public ::testing::Test {
 protected:
  GuardTest()
      : task_(MigrationOptions{.step_penalty = StepPenalty::kConstant}),
        model_(LatencyLaw::Reach()) {
    WorldBuilder world;
    const LayerId cloud = world.Layer("cloud"), edge = world.Layer("edge"),
                  outside = world.Layer("client", false);
    const KindId fast = world.Kind("cloud", cloud), slow = world.Kind("edge", edge),
                 client = world.Kind("client", outside);
    world.LatencyBothWays(cloud, edge, 50);
    world.LatencyBothWays(outside, edge, 50);
    worker_ = world.Workload("worker", 500, 512);
    const WorkloadId caller = world.Workload("caller", 100, 100, false);
    roomy_ = world.Node(fast, 600, 4096);
    full_ = world.Node(fast, 400, 4096);
    here_ = world.Node(slow, 1000, 4096);
    beyond_ = world.Node(client, 4000, 4096);
    first_ = world.Pod(worker_, here_);
    second_ = world.Pod(worker_, here_);
    caller_ = world.Pod(caller, beyond_);
    world.Endpoint(
        {.workload = caller, .execution_ms = 0, .data_mbytes = 0.1, .groups = {{{worker_, 10}}}});
    state_ = world.Build();
    model_.Reset(state_);
  }

  Verdict Review(const Guard& guard, const Decision& decision, int step = 0,
                 const NextMove& next = StopsAtOnce) {
    return guard.Review(state_, &model_, task_, {step}, decision, next);
  }

  State state_;
  MigrationTask task_;
  Evaluator model_;
  WorkloadId worker_;
  NodeId roomy_, full_, here_, beyond_;
  PodId first_, second_, caller_;
};

TEST_F(GuardTest, AllowsAMoveThatPays) {
  const Verdict verdict = Review(Guard({}), {Migrate{first_, here_, roomy_}});
  EXPECT_TRUE(verdict.allowed) << verdict.reason;
  EXPECT_EQ(verdict.reason, "");
}

TEST_F(GuardTest, AllowsStayingWhateverTheBudget) {
  EXPECT_TRUE(Review(Guard({.moves_per_plan = 0}), {}).allowed);
}

TEST_F(GuardTest, LeavesTheModelAsItWas) {
  const Terms before = model_.Now();
  Review(Guard({}), {Migrate{first_, here_, roomy_}});
  Review(Guard({}), {Migrate{first_, here_, roomy_}, Migrate{second_, here_, roomy_}});
  EXPECT_EQ(model_.Now().latency_ms, before.latency_ms);
  EXPECT_EQ(model_.placement().on_node(worker_, here_), 2);
}

TEST_F(GuardTest, RefusesANodeWithoutRoomAndSaysWhatIsFree) {
  const Verdict verdict = Review(Guard({}), {Migrate{first_, here_, full_}});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.reason,
            "worker-1 asks for 500m CPU and 536870912 bytes, cloud-2 has 400m and 4294967296 free");
}

TEST_F(GuardTest, RefusesTheSecondMoveOfADecisionWhenTheFirstTookTheRoom) {
  const Verdict verdict =
      Review(Guard({}), {Migrate{first_, here_, roomy_}, Migrate{second_, here_, roomy_}});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.reason,
            "worker-2 asks for 500m CPU and 536870912 bytes, cloud-1 has 100m and 3758096384 free");
}

TEST_F(GuardTest, RefusesAPodThatHasMovedMeanwhile) {
  MovePod(first_, roomy_, &state_);
  model_.Reset(state_);
  EXPECT_EQ(Review(Guard({}), {Migrate{first_, here_, full_}}).reason,
            "worker-1 is on cloud-1 by now");
}

TEST_F(GuardTest, RefusesPodsAndNodesThatAreGone) {
  EXPECT_EQ(Review(Guard({}), {Migrate{99, here_, roomy_}}).reason, "there is no pod 99 any more");
  EXPECT_EQ(Review(Guard({}), {Migrate{-1, here_, roomy_}}).reason, "there is no pod -1 any more");
  EXPECT_EQ(Review(Guard({}), {Migrate{first_, here_, 4}}).reason, "there is no node 4 any more");
  EXPECT_EQ(Review(Guard({}), {Migrate{first_, here_, -1}}).reason, "there is no node -1 any more");
}

TEST_F(GuardTest, RefusesWhatTheMaskForbids) {
  EXPECT_EQ(Review(Guard({}), {Migrate{caller_, beyond_, roomy_}}).reason,
            "caller-1 may not be moved");
  EXPECT_EQ(Review(Guard({}), {Migrate{first_, here_, beyond_}}).reason,
            "client-4 does not accept pods that are moved");
  EXPECT_EQ(Review(Guard({}), {Migrate{first_, here_, here_}}).reason,
            "worker-1 is on edge-3 already");
}

TEST_F(GuardTest, RefusesAMoveThatGainsLessThanItsCostTimesTheFactor) {
  const Migrate move{first_, here_, roomy_};
  const double gain_ms = model_.Now().latency_ms - model_.Try(Action{move}).latency_ms;
  ASSERT_GT(gain_ms, task_.StepCost({0}));
  const double factor_that_is_met = gain_ms / task_.StepCost({0});
  EXPECT_TRUE(Review(Guard({.benefit_factor = factor_that_is_met * 0.999}), {move}).allowed);
  const Verdict verdict = Review(Guard({.benefit_factor = factor_that_is_met * 1.001}), {move});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_TRUE(verdict.reason.starts_with("a predicted gain of ")) << verdict.reason;
}

TEST_F(GuardTest, RefusesAMoveThatMakesThingsWorseUnlessTheGainIsNotAsked) {
  MovePod(first_, roomy_, &state_);
  model_.Reset(state_);
  const Decision back{Migrate{first_, roomy_, here_}};
  EXPECT_FALSE(Review(Guard({}), back).allowed);
  EXPECT_TRUE(Review(Guard({.benefit_factor = std::nullopt}), back).allowed);
}

TEST_F(GuardTest, RefusesASecondMoveOfAPodWithinItsCooldown) {
  Guard guard({.benefit_factor = std::nullopt, .pod_cooldown = seconds(60)});
  state_.at = seconds(100);
  guard.Note(state_, {Migrate{first_, here_, roomy_}});
  MovePod(first_, roomy_, &state_);
  model_.Reset(state_);
  const Decision back{Migrate{first_, roomy_, here_}};

  state_.at = seconds(159);
  EXPECT_EQ(Review(guard, back).reason, "worker-1 was moved 59 s ago and rests for 60 s");
  guard.BeginPlan();
  EXPECT_FALSE(Review(guard, back).allowed) << "a new plan does not end a cooldown";
  state_.at = seconds(160);
  EXPECT_TRUE(Review(guard, back).allowed);
}

// A first step that loses 50 ms, and a second that wins them and the rest.
TEST_F(GuardTest, JudgesAPlanByAllItsMoves) {
  MovePod(first_, roomy_, &state_);
  model_.Reset(state_);
  const double before_ms = model_.Now().latency_ms;
  const Decision worse{Migrate{first_, roomy_, here_}};
  const NextMove goes_on = [&](const Question& question) {
    EXPECT_EQ(question.step, 1);
    return std::optional<Move>({worker_, here_, roomy_});
  };
  EXPECT_FALSE(Review(Guard({.benefit_factor = 0}), worse).allowed);
  EXPECT_TRUE(Review(Guard({.benefit_factor = 0}), worse, 0, goes_on).allowed);
  EXPECT_EQ(model_.Now().latency_ms, before_ms) << "left as it was found";
  const Verdict verdict = Review(Guard({}), worse, 0, [&](const Question& question) {
    return question.step == 1 ? goes_on(question) : std::nullopt;
  });
  EXPECT_FALSE(verdict.allowed) << "two steps that win nothing together";
  EXPECT_TRUE(verdict.reason.starts_with("the plan's 2 moves are predicted to gain 0.000 ms"))
      << verdict.reason;
  EXPECT_FALSE(Review(Guard({.benefit_factor = 0, .moves_per_plan = 1}), worse, 0, goes_on).allowed)
      << "the second move is beyond the budget";
  GuardOptions slow{.benefit_factor = 0, .horizon = seconds(600)};
  slow.start_time = [](WorkloadId) { return seconds(290); };
  EXPECT_TRUE(Review(Guard(slow), worse, 0, goes_on).allowed);
  slow.start_time = [](WorkloadId) { return seconds(310); };
  const NextMove goes_on_once = [&](const Question& question) {
    return question.step == 1 ? goes_on(question) : std::nullopt;
  };
  EXPECT_FALSE(Review(Guard(slow), worse, 0, goes_on_once).allowed) << "one pod after the other";
}

TEST_F(GuardTest, RefusesToReturnWhereThePlanCameFrom) {
  Guard guard({.benefit_factor = std::nullopt});
  guard.Note(state_, {Migrate{first_, here_, roomy_}});
  MovePod(first_, roomy_, &state_);
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_FALSE(guard.Hold(&state_)) << "the same as before";
  model_.Reset(state_);
  model_.Leave(guard.left_cells());
  const Decision back{Migrate{first_, roomy_, here_}};
  EXPECT_EQ(Review(guard, back).reason,
            "pods of worker left edge-3 earlier in this plan and do not return");
  guard.BeginPlan();
  EXPECT_TRUE(guard.Hold(&state_)) << "another plan has left nothing";
  model_.Reset(state_);
  EXPECT_TRUE(Review(guard, back).allowed);
}

TEST_F(GuardTest, NoPodOfTheWorkloadReturnsUntilTheCooldownIsOver) {
  Guard guard({.benefit_factor = std::nullopt, .return_cooldown = std::chrono::hours(1)});
  guard.Note(state_, {Migrate{first_, here_, roomy_}});
  MovePod(first_, roomy_, &state_);
  guard.BeginPlan();
  state_.at += std::chrono::minutes(59);
  guard.Hold(&state_);
  model_.Reset(state_);
  model_.Leave(guard.left_cells());
  const Decision back{Migrate{first_, roomy_, here_}};
  EXPECT_EQ(Review(guard, back).reason,
            "a pod of worker was moved away from edge-3 less than 3600 s ago");
  state_.at += std::chrono::minutes(1);
  EXPECT_TRUE(guard.Hold(&state_));
  model_.Reset(state_);
  EXPECT_TRUE(Review(guard, back).allowed);
  guard.Note(state_, back);
  guard.ForgetMoves();
  guard.BeginPlan();
  guard.Hold(&state_);
  EXPECT_TRUE(guard.left_cells().empty()) << "what was imagined";
}

TEST_F(GuardTest, MovesOfAnHourAreCountedOverAllPlans) {
  Guard guard({.benefit_factor = std::nullopt, .moves_per_hour = {.application = 2}}, "shop");
  const Decision decision{Migrate{first_, here_, roomy_}};
  for (int move = 0; move < 2; ++move) {
    EXPECT_TRUE(Review(guard, decision).allowed);
    guard.Note(state_, decision);
    guard.BeginPlan();
    state_.at += std::chrono::minutes(20);
  }
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_EQ(guard.WhyNothingMoves(), "shop had 2 moves within the last hour, as many as may be");
  EXPECT_EQ(Review(guard, decision).reason, guard.WhyNothingMoves());
  EXPECT_TRUE(state_.pods.is_held(first_));
  state_.at += std::chrono::minutes(20);
  EXPECT_TRUE(guard.Hold(&state_)) << "the first one was an hour ago";
  EXPECT_EQ(guard.WhyNothingMoves(), "");
  EXPECT_TRUE(Review(guard, decision).allowed);
}

// A node is left and entered; what other applications move counts for it, too.
TEST_F(GuardTest, MovesOfANodeAreCountedOverAllApplications) {
  MoveLedger ledger;
  Guard guard({.benefit_factor = std::nullopt, .moves_per_hour = {.node = 2, .cluster = 4}}, "shop",
              &ledger);
  const Decision decision{Migrate{first_, here_, roomy_}};
  EXPECT_TRUE(Review(guard, decision).allowed);
  const std::string node = NodeName(state_, roomy_);
  for (const char* other : {"a", "b"})
    ledger.Note(
        {.application = other, .workload = "x", .from = "far", .to = node, .at = state_.at});
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_FALSE(state_.pods.is_held(first_)) << "it may leave for another node";
  for (const LeftCell& cell : guard.left_cells()) EXPECT_EQ(cell.node, roomy_);
  EXPECT_EQ(guard.left_cells().size(), static_cast<size_t>(state_.catalog->workload_count()));
  model_.Reset(state_);
  model_.Leave(guard.left_cells());
  EXPECT_EQ(Review(guard, decision).reason,
            node + " had 2 moves within the last hour, as many as may be");

  for (int i = 0; i < 2; ++i)
    ledger.Note({.application = "a",
                 .workload = "x",
                 .from = NodeName(state_, here_),
                 .to = "far",
                 .at = state_.at});
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_EQ(guard.WhyNothingMoves(),
            "the cluster had 4 moves within the last hour, as many as may be");
  state_.at += std::chrono::hours(1);
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_TRUE(guard.left_cells().empty());
}

TEST_F(GuardTest, PodsOfANodeOrWorkloadThatHadItsMovesAreHeld) {
  MoveLedger ledger;
  Guard by_node({.benefit_factor = std::nullopt, .moves_per_hour = {.node = 1}}, "shop", &ledger);
  Guard by_workload({.benefit_factor = std::nullopt, .moves_per_hour = {.workload = 1}}, "shop",
                    &ledger);
  const std::string workload = state_.workload_of(first_).name;
  ledger.Note({.application = "shop",
               .workload = workload,
               .from = NodeName(state_, here_),
               .to = "far",
               .at = state_.at});
  EXPECT_TRUE(by_node.Hold(&state_));
  EXPECT_TRUE(state_.pods.is_held(first_));
  EXPECT_EQ(by_node.WhyHeld(state_, first_),
            "is on " + NodeName(state_, here_) +
                ", which had 1 move within the last hour, as many as may be");
  EXPECT_TRUE(by_workload.Hold(&state_));
  EXPECT_TRUE(state_.pods.is_held(first_));
  EXPECT_EQ(by_workload.WhyHeld(state_, first_),
            "is of " + workload + ", which had 1 move within the last hour, as many as may be");
}

TEST_F(GuardTest, CooldownOfOnePodLeavesOthersFree) {
  Guard guard({.benefit_factor = std::nullopt, .pod_cooldown = seconds(60)});
  guard.Note(state_, {Migrate{second_, here_, roomy_}});
  EXPECT_TRUE(Review(guard, {Migrate{first_, here_, roomy_}}).allowed);
}

TEST_F(GuardTest, HoldsWhoRestsUntilTheRestIsOver) {
  Guard guard({.benefit_factor = std::nullopt, .pod_cooldown = seconds(60)});
  EXPECT_FALSE(guard.Hold(&state_)) << "no pod was held, none is";
  EXPECT_TRUE(state_.pods.held.empty());
  guard.Note(state_, {Migrate{first_, here_, roomy_}});
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_EQ(state_.pods.held, (std::vector<uint8_t>{1, 0, 0}));
  EXPECT_EQ(guard.WhyHeld(state_, first_), "was moved just before and rests for 60 s");
  EXPECT_EQ(guard.WhyHeld(state_, second_), "");
  EXPECT_FALSE(guard.Hold(&state_)) << "the same as before";
  state_.at += seconds(60);
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_TRUE(state_.pods.held.empty());
}

TEST_F(GuardTest, KnowsWhoRestsByNameWhereverItStands) {
  Guard guard({.pod_cooldown = seconds(60)});
  auto names = std::make_shared<Names>(*state_.names);
  names->pods = {"a", "b", "c"};
  state_.names = names;
  guard.Note(state_, {Migrate{first_, here_, roomy_}});
  names->pods = {"new", "a", "c"};
  guard.Hold(&state_);
  EXPECT_EQ(state_.pods.held, (std::vector<uint8_t>{0, 1, 0}));
  names->pods = {"new", "b", "c"};
  guard.Hold(&state_);
  EXPECT_EQ(state_.pods.held, (std::vector<uint8_t>{0, 0, 0})) << "it is gone";
}

TEST_F(GuardTest, HoldsEveryPodOnceThePlanHasMadeItsMoves) {
  Guard guard({.moves_per_plan = 1});
  EXPECT_EQ(guard.WhyNothingMoves(), "");
  guard.Note(state_, {Migrate{first_, here_, roomy_}});
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_EQ(state_.pods.held, (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(guard.WhyNothingMoves(), "the plan has made 1 of its 1 moves");
  guard.BeginPlan();
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_TRUE(state_.pods.held.empty());
}

TEST_F(GuardTest, RefusesMoreMovesThanThePlansBudget) {
  Guard guard({.benefit_factor = std::nullopt, .moves_per_plan = 1});
  const Decision move{Migrate{first_, here_, roomy_}};
  EXPECT_TRUE(Review(guard, move).allowed);
  guard.Note(state_, move);
  EXPECT_EQ(Review(guard, move).reason, "the plan has made 1 of its 1 moves");
  guard.BeginPlan();
  EXPECT_TRUE(Review(guard, move).allowed);
}

TEST_F(GuardTest, DescribesDecisionsByName) {
  EXPECT_EQ(DescribeDecision(state_, {}), "stay");
  EXPECT_EQ(DescribeDecision(state_, {Migrate{second_, here_, roomy_}}),
            "worker-2 from edge-3 to cloud-1");
}

// Of ten minutes that a move is counted on to hold, those in which its pod starts gain nothing.
TEST_F(GuardTest, TheTimeInWhichAPodStartsGainsNothing) {
  const Migrate move{first_, here_, roomy_};
  const double before = model_.Now().latency_ms;
  model_.Commit(move);
  const double gain = before - model_.Now().latency_ms;
  model_.Undo();
  const double cost = task_.StepCost({0});
  GuardOptions options{.benefit_factor = 0.5 * gain / cost, .horizon = seconds(600)};
  const auto with_start = [&](int s) {
    options.start_time = [s](WorkloadId) { return seconds(s); };
    return Review(Guard(options), {move});
  };
  EXPECT_TRUE(with_start(0).allowed);
  EXPECT_TRUE(with_start(299).allowed);
  const Verdict late = with_start(301);
  EXPECT_FALSE(late.allowed);
  EXPECT_NE(late.reason.find("counted for 299 of 600 s as its pod starts for 301 s"),
            std::string::npos)
      << late.reason;
  EXPECT_FALSE(with_start(6000).allowed);
  options.benefit_factor = 0;
  EXPECT_FALSE(with_start(600).allowed) << "it would never gain anything";
  options.horizon = seconds(0);
  EXPECT_TRUE(with_start(6000).allowed) << "not counted";
}

TEST_F(GuardTest, MovesOfANamespaceAreCountedOverItsWorkloads) {
  MoveLedger ledger;
  Guard guard({.benefit_factor = std::nullopt,
               .namespaces = {"shop", "users"},
               .moves_per_hour = {.name_space = 1}},
              "shop", &ledger);
  EXPECT_TRUE(Review(guard, {Migrate{first_, here_, roomy_}}).allowed);
  ledger.Note({.application = "other", .workload = "w", .name_space = "shop", .at = state_.at});
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_EQ(guard.WhyHeld(state_, first_),
            "is in the namespace shop, which had 1 move within the last hour, as many as may be");
  EXPECT_EQ(guard.WhyHeld(state_, caller_), "") << "another namespace";
}

TEST_F(GuardTest, PodsOfANodeThatLeavesGoFirstAndNeedNoGain) {
  MovePod(first_, roomy_, &state_);
  model_.Reset(state_);
  const Decision worse{Migrate{first_, roomy_, here_}};
  GuardOptions options;
  std::string leaving = "cloud-1";
  options.leaves = [&](std::string_view node) { return node == leaving; };
  Guard guard(options);
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_TRUE(guard.has_leaving());
  EXPECT_TRUE(Review(guard, worse).allowed) << "it loses 50 ms";
  EXPECT_EQ(guard.WhyHeld(state_, second_),
            "waits until pods of nodes that are being emptied were moved");
  EXPECT_EQ(guard.WhyHeld(state_, first_), "");
  guard.GiveUpLeaving();
  EXPECT_TRUE(guard.Hold(&state_));
  EXPECT_FALSE(guard.has_leaving());
  EXPECT_FALSE(Review(guard, worse).allowed);
  guard.BeginPlan();
  guard.Hold(&state_);
  EXPECT_TRUE(guard.has_leaving());
  leaving = "client-1";  // Whose pod may not be moved.
  guard.Hold(&state_);
  EXPECT_FALSE(guard.has_leaving());
}

TEST_F(GuardTest, APodThatRestsRestsOnANodeThatLeaves) {
  GuardOptions options{.benefit_factor = std::nullopt, .pod_cooldown = seconds(60)};
  options.leaves = [](std::string_view node) { return node == "cloud-1"; };
  Guard guard(options);
  guard.Note(state_, {Migrate{first_, here_, roomy_}});
  MovePod(first_, roomy_, &state_);
  guard.Hold(&state_);
  EXPECT_FALSE(guard.has_leaving());
}

}  // namespace
}  // namespace rudderfish
