// SPDX-License-Identifier: Apache-2.0
#include "control/controller.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "policy/baselines.h"
#include "policy/greedy.h"
#include "policy/registry.h"
#include "sim/sim_cluster.h"
#include "task/migration.h"
#include "tests/support/slow_greedy.h"
#include "tests/support/small_world.h"

// The Controller over the simulated cluster. It stands here because control may not include sim.

namespace rudderfish {
namespace {

using std::chrono::seconds;

State DrawStart(uint64_t seed) {
  Rng rng(seed);
  return testing::ContinuumWorld({}, &rng);
}

// Always proposes the first candidate; never stops.
class FirstCandidate final : public Policy {
 public:
  std::string_view name() const override { return "first"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i)
      answers[i].choice = asks[i].space->count() > 0 ? 0 : kStop;
  }
};

// Finds every candidate as good as stopping, to the last digit of a float, and takes the last.
class LastOfEquals final : public Policy {
 public:
  std::string_view name() const override { return "last"; }
  std::unique_ptr<Memory> NewMemory(uint64_t) const override { return std::make_unique<Memory>(); }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    for (size_t i = 0; i < asks.size(); ++i) {
      const int count = asks[i].space->count();
      answers[i].choice = count - 1;
      answers[i].scores.assign(count + 1, 2.5f);
      answers[i].scores[count - 1] = std::nextafter(2.5f, 0.0f);
    }
  }
};

class ControllerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Controller> Make(Cluster* cluster, const Policy& policy,
                                   const GuardOptions& guard, ControllerOptions options = {}) {
    return std::make_unique<Controller>(cluster, &task_, LatencyLaw::Reach(), &policy, guard,
                                        &journal_, std::move(options));
  }

  MigrationTask task_{MigrationOptions{}};
  MemoryJournal journal_;
  GreedyPolicy greedy_;
  StayPolicy stay_;
  FirstCandidate first_;
};

TEST_F(ControllerTest, GreedyPlanEndsBelowWhereItBegan) {
  SimCluster cluster(DrawStart(1));
  auto controller = Make(&cluster, greedy_, {});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kStopped);
  const auto rows = journal_.rows();
  ASSERT_GT(rows.size(), 1u);
  EXPECT_EQ(controller->steps(), static_cast<int>(rows.size()) - 1);
  EXPECT_LT(controller->terms().latency_ms, rows.front().seen.latency_ms);
  EXPECT_EQ(controller->state().pods.node, cluster.state().pods.node);
}

TEST_F(ControllerTest, JournalTellsWhatWasSeenPredictedAndMeasured) {
  SimCluster cluster(DrawStart(1));
  Make(&cluster, greedy_, {}, {.baseline = &stay_})->RunPlan().value();
  const auto rows = journal_.rows();
  ASSERT_GT(rows.size(), 1u);
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    const JournalRow& row = rows[i];
    EXPECT_EQ(row.step, static_cast<int>(i));
    EXPECT_EQ(row.policy, "greedy");
    EXPECT_EQ(row.baseline, "stay");
    EXPECT_TRUE(row.baseline_choice.empty());
    ASSERT_EQ(row.chosen.size(), 1u);
    EXPECT_TRUE(row.verdict.allowed);
    EXPECT_EQ(row.fate, Fate::kDone);
    ASSERT_TRUE(row.measured.has_value());
    EXPECT_EQ(row.measured->latency_ms, row.predicted.latency_ms)
        << "the simulated cluster obeys the Model";
    EXPECT_EQ(row.measured->latency_ms, rows[i + 1].seen.latency_ms);
    EXPECT_EQ(row.predicted_gain_ms, row.seen.latency_ms - row.predicted.latency_ms);
    EXPECT_GT(row.predicted_gain_ms, row.step_cost_ms);
    EXPECT_GT(row.allowed_cells, 1);
    ASSERT_FALSE(row.considered.empty());
    EXPECT_EQ(row.considered.front().move, row.chosen.front()) << "greedy's best is what it chose";
    EXPECT_EQ(row.considered.front().predicted.latency_ms, row.predicted.latency_ms);
  }
  EXPECT_EQ(rows.back().fate, Fate::kStayed);
  EXPECT_TRUE(rows.back().chosen.empty());
  EXPECT_FALSE(rows.back().considered.front().move.has_value()) << "stopping was best";
}

// Both from the same state and after as many moves.
TEST_F(ControllerTest, ThePlansLastRowComparesItWithTheBaselines) {
  SimCluster cluster(DrawStart(1));
  Make(&cluster, first_, {.benefit_factor = std::nullopt}, {.max_steps = 3, .baseline = &greedy_})
      ->RunPlan()
      .value();
  const std::vector<JournalRow> rows(journal_.rows().begin(), journal_.rows().end());
  ASSERT_EQ(rows.size(), 3u);
  double costs_ms = 0;
  for (const JournalRow& row : rows) costs_ms += row.step_cost_ms;
  EXPECT_FALSE(rows[0].plan_gain_ms || rows[1].plan_gain_ms);
  EXPECT_DOUBLE_EQ(*rows[2].plan_gain_ms,
                   rows[0].seen.latency_ms - rows[2].predicted.latency_ms - costs_ms);
  SimCluster other(DrawStart(1));
  Make(&other, greedy_, {}, {.max_steps = 3})->RunPlan().value();
  EXPECT_EQ(rows[2].baseline_plan_gain_ms, journal_.rows().back().plan_gain_ms);
  EXPECT_GT(*rows[2].baseline_plan_gain_ms, *rows[2].plan_gain_ms);
}

TEST_F(ControllerTest, APlanThatStopsSaysWhatItHasGained) {
  SimCluster cluster(DrawStart(1));
  Make(&cluster, greedy_, {}, {.baseline = &greedy_})->RunPlan().value();
  const JournalRow& last = journal_.rows().back();
  ASSERT_EQ(last.fate, Fate::kStayed);
  EXPECT_GT(*last.plan_gain_ms, 0);
  EXPECT_DOUBLE_EQ(*last.plan_gain_ms, *last.baseline_plan_gain_ms);
}

TEST_F(ControllerTest, AlternativesAreTheBestByScoreAndNoMoreThanAsked) {
  SimCluster cluster(DrawStart(2));
  Make(&cluster, greedy_, {}, {.alternatives_kept = 3})->Turn().value();
  const auto& considered = journal_.rows()[0].considered;
  ASSERT_EQ(considered.size(), 3u);
  EXPECT_GE(considered[0].score, considered[1].score);
  EXPECT_GE(considered[1].score, considered[2].score);
}

TEST_F(ControllerTest, OfEqualAlternativesTheOneThatWasChosenComesFirst) {
  SimCluster cluster(DrawStart(2));
  Make(&cluster, LastOfEquals(), {.benefit_factor = std::nullopt})->Turn().value();
  const JournalRow& row = journal_.rows()[0];
  ASSERT_GT(row.considered.size(), 1u);
  EXPECT_EQ(row.considered[0].move, row.chosen.at(0));
  EXPECT_NE(row.considered[1].move, row.chosen.at(0));
}

TEST_F(ControllerTest, RefusalByTheGuardEndsThePlanAndTouchesNothing) {
  SimCluster cluster(DrawStart(3));
  auto controller = Make(&cluster, greedy_, {.benefit_factor = 1e9});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kRefused);
  ASSERT_EQ(journal_.rows().size(), 1u);
  const JournalRow& row = journal_.rows()[0];
  EXPECT_EQ(row.fate, Fate::kRefused);
  EXPECT_FALSE(row.verdict.allowed);
  EXPECT_NE(row.verdict.reason, "");
  EXPECT_FALSE(row.measured.has_value());
  EXPECT_EQ(cluster.state().pods.node, DrawStart(3).pods.node);
}

TEST_F(ControllerTest, PlanEndsWhenItsStepsAreUsedUp) {
  SimCluster cluster(DrawStart(4));
  auto controller = Make(&cluster, first_, {.benefit_factor = std::nullopt}, {.max_steps = 3});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kExhausted);
  EXPECT_EQ(controller->steps(), 3);
  EXPECT_EQ(journal_.rows().size(), 3u);
}

TEST_F(ControllerTest, BudgetOfTheGuardLeavesNothingToChooseAndEndsThePlan) {
  SimCluster cluster(DrawStart(4));
  auto controller = Make(&cluster, first_, {.benefit_factor = std::nullopt, .moves_per_plan = 2},
                         {.refusals_kept = 10});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kStopped);
  EXPECT_EQ(controller->steps(), 2);
  const JournalRow& last = journal_.rows().back();
  EXPECT_EQ(last.allowed_cells, 1) << "to stop";
  ASSERT_FALSE(last.refused.empty());
  EXPECT_EQ(last.refused[0], (Refusal{"", "", "the plan has made 2 of its 2 moves"}));
}

TEST_F(ControllerTest, WaitsForWhatIsInFlightBeforeItDecidesAgain) {
  SimCluster cluster(DrawStart(1), seconds(20));
  auto controller = Make(&cluster, greedy_, {});
  EXPECT_EQ(*controller->Turn(), TurnResult::kWaiting);
  EXPECT_EQ(*controller->Turn(), TurnResult::kWaiting);
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kWaiting) << "no time passes";
  EXPECT_EQ(cluster.moves_in_flight(), 1);
  EXPECT_EQ(journal_.rows().size(), 1u);
  EXPECT_EQ(journal_.rows()[0].fate, Fate::kInFlight);
  cluster.Advance(seconds(20));
  EXPECT_EQ(*controller->Turn(), TurnResult::kMoved);
  EXPECT_EQ(journal_.rows()[0].fate, Fate::kDone);
  EXPECT_EQ(controller->steps(), 1);
}

TEST_F(ControllerTest, WaitLetsAWholePlanRunOverASlowCluster) {
  SimCluster quick(DrawStart(1)), slow(DrawStart(1), seconds(20));
  Make(&quick, greedy_, {})->RunPlan().value();
  auto controller = Make(&slow, greedy_, {}, {.wait = [&] { slow.Advance(seconds(7)); }});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kStopped);
  EXPECT_EQ(slow.state().pods.node, quick.state().pods.node);
  EXPECT_EQ(slow.Now(), controller->steps() * seconds(21));
}

// Pods moved by the rows, each as often as it was.
std::vector<std::string> PodsMoved(std::span<const JournalRow> rows) {
  std::vector<std::string> pods;
  for (const JournalRow& row : rows) {
    if (!row.chosen.empty()) pods.push_back(row.chosen[0].pod);
  }
  return pods;
}

TEST_F(ControllerTest, PlanGoesOnWithOtherPodsWhileOneRests) {
  SimCluster cluster(DrawStart(4));
  auto controller =
      Make(&cluster, first_, {.benefit_factor = std::nullopt, .pod_cooldown = seconds(60)},
           {.refusals_kept = 100});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kStopped)
      << "in the end all rest: time stands still";
  const auto rows = journal_.rows();
  const std::vector<std::string> moved = PodsMoved(rows);
  ASSERT_GT(moved.size(), 2u);
  for (size_t i = 0; i < moved.size(); ++i) {
    EXPECT_EQ(std::count(moved.begin(), moved.end(), moved[i]), 1);
    const auto resting = std::count_if(rows[i].refused.begin(), rows[i].refused.end(),
                                       [](const Refusal& one) { return !one.pod.empty(); });
    EXPECT_EQ(resting, static_cast<int64_t>(i)) << "all pods that were moved before";
  }
  const Refusal& why = rows[1].refused[0];
  EXPECT_EQ(why.pod, moved[0]);
  EXPECT_EQ(why.reason, "was moved just before and rests for 60 s");
  EXPECT_TRUE(moved[0].starts_with(why.workload));
}

TEST_F(ControllerTest, RestHoldsAcrossPlansAndEndsWithItsTime) {
  SimCluster cluster(DrawStart(4));
  auto controller =
      Make(&cluster, first_, {.benefit_factor = std::nullopt, .pod_cooldown = seconds(60)},
           {.max_steps = 1, .refusals_kept = 100});
  TurnResult result = TurnResult::kExhausted;
  while (result == TurnResult::kExhausted) result = *controller->RunPlan();
  EXPECT_EQ(result, TurnResult::kStopped);
  const size_t rested = PodsMoved(journal_.rows()).size();
  cluster.Advance(seconds(59));
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kStopped);
  EXPECT_EQ(journal_.rows().back().refused[0].reason, "was moved 59 s ago and rests for 60 s");
  cluster.Advance(seconds(1));
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kExhausted);
  EXPECT_EQ(PodsMoved(journal_.rows()).size(), rested + 1);
}

// Every policy keeps to what is left, also one that plans several moves ahead.
TEST_F(ControllerTest, NoPolicyAsksForAPodThatRests) {
  for (const char* name :
       {"greedy", "random", "kube-default", "lookahead:evaluations=2000", "exact"}) {
    const auto policy = MakePolicy(name, task_).value();
    for (uint64_t seed = 1; seed < 12; ++seed) {
      SimCluster cluster(DrawStart(seed));
      MemoryJournal journal;
      Controller controller(&cluster, &task_, LatencyLaw::Physical(), policy.get(),
                            {.benefit_factor = std::nullopt, .pod_cooldown = seconds(60)}, &journal,
                            {});
      for (int plan = 0; plan < 3; ++plan) {
        EXPECT_NE(*controller.RunPlan(), TurnResult::kRefused)
            << name << ": " << journal.rows().back().verdict.reason;
        cluster.Advance(seconds(7));
      }
      const std::vector<std::string> moved = PodsMoved(journal.rows());
      for (const std::string& pod : moved) {
        EXPECT_EQ(std::count(moved.begin(), moved.end(), pod), 1) << name;
      }
    }
  }
}

// Moves a pod behind the controller's back, between its look and its act.
class MeddlingPolicy final : public Policy {
 public:
  MeddlingPolicy(const Policy* policy, SimCluster* cluster) : policy_(policy), cluster_(cluster) {}
  std::string_view name() const override { return "meddling"; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override {
    return policy_->NewMemory(seed);
  }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    policy_->Decide(asks, answers);
    if (meddled_ || answers[0].choice == kStop) return;
    meddled_ = true;
    const Ask& ask = asks[0];
    Decision decision;
    ask.task->Decode(ask.model->state(), *ask.space, answers[0].choice, &decision);
    const Intent intent{decision[0],
                        {.state_version = 0, .pod_was_on = std::get<Migrate>(decision[0]).from}};
    Completions completions;
    cluster_->Submit({&intent, 1}, &completions);
    CHECK(completions[0].outcome.has_value());
  }

 private:
  const Policy* policy_;
  SimCluster* cluster_;
  mutable bool meddled_ = false;
};

TEST_F(ControllerTest, GuardLooksAtTheStateAsItIsAfterDeciding) {
  SimCluster cluster(DrawStart(1));
  const MeddlingPolicy meddling(&greedy_, &cluster);
  auto controller = Make(&cluster, meddling, {});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kRefused);
  EXPECT_NE(journal_.rows()[0].verdict.reason.find(" by now"), std::string::npos)
      << journal_.rows()[0].verdict.reason;
}

// A cluster that cannot be reached, and one that changes its mind.
class FailingCluster final : public Cluster {
 public:
  explicit FailingCluster(State start) : cluster_(std::move(start)) {}
  Result<void> Refresh(State* state) override {
    if (unreachable) return Fail(ErrorCode::kUnavailable, "no route to the cluster");
    return cluster_.Refresh(state);
  }
  void Submit(std::span<const Intent> intents, Completions* completions) override {
    if (refusals-- <= 0) return cluster_.Submit(intents, completions);
    for (const Intent& intent : intents) {
      completions->push_back({intent, Fail(ErrorCode::kConflict, "the pod has changed")});
    }
  }
  std::chrono::nanoseconds Now() const override { return cluster_.Now(); }

  bool unreachable = false;
  int refusals = 0;

 private:
  SimCluster cluster_;
};

TEST_F(ControllerTest, DecidesNothingWhileTheClusterCannotBeObserved) {
  FailingCluster cluster(DrawStart(1));
  cluster.unreachable = true;
  auto controller = Make(&cluster, greedy_, {});
  const auto result = controller->Turn();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(journal_.rows().empty());
  cluster.unreachable = false;
  EXPECT_EQ(*controller->Turn(), TurnResult::kMoved);
}

TEST_F(ControllerTest, ARefusalByTheClusterIsWrittenDownAndThePlanGoesOn) {
  FailingCluster cluster(DrawStart(1));
  cluster.refusals = 2;
  auto controller = Make(&cluster, greedy_, {});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kStopped);
  const auto rows = journal_.rows();
  ASSERT_GT(rows.size(), 3u);
  EXPECT_EQ(rows[0].fate, Fate::kFailed);
  EXPECT_EQ(rows[0].failure, "the pod has changed");
  EXPECT_EQ(rows[0].measured->latency_ms, rows[0].seen.latency_ms);
  EXPECT_EQ(rows[1].fate, Fate::kFailed);
  EXPECT_EQ(rows[2].fate, Fate::kDone);
  EXPECT_EQ(rows[2].step, 0) << "a step counts when it was carried out";
  EXPECT_EQ(rows[2].chosen, rows[0].chosen);
}

TEST_F(ControllerTest, AClusterThatRefusesForeverUsesUpThePlan) {
  FailingCluster cluster(DrawStart(1));
  cluster.refusals = 1000;
  auto controller = Make(&cluster, greedy_, {}, {.max_steps = 5});
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kExhausted);
  EXPECT_EQ(controller->steps(), 0);
  EXPECT_EQ(journal_.rows().size(), 5u);
}

// A policy that would never move anything.
TEST_F(ControllerTest, ANodeThatLeavesIsEmptiedAndNothingElseIsMoved) {
  SimCluster cluster(DrawStart(4));
  const State start = cluster.state();
  const auto movable_on = [](const State& state, NodeId node) {
    int count = 0;
    for (PodId pod = 0; pod < state.pods.size(); ++pod)
      count += state.pods.node[pod] == node && state.workload_of(pod).movable;
    return count;
  };
  NodeId node = kNone;  // With the fewest: the others have no room for more.
  for (NodeId one = 0; one < start.nodes.size(); ++one) {
    const int count = movable_on(start, one);
    if (count > 0 && (node == kNone || count < movable_on(start, node))) node = one;
  }
  GuardOptions guard;
  guard.leaves = [name = NodeName(start, node)](std::string_view one) { return one == name; };
  auto controller = Make(&cluster, stay_, guard);
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kStopped);
  EXPECT_EQ(controller->steps(), movable_on(start, node));
  EXPECT_EQ(movable_on(cluster.state(), node), 0);
  for (PodId pod = 0; pod < start.pods.size(); ++pod) {
    if (start.pods.node[pod] != node) {
      EXPECT_EQ(cluster.state().pods.node[pod], start.pods.node[pod]);
    }
  }
}

TEST_F(ControllerTest, APolicyThatIsAskedOnAWorkerDoesNotBlockTheController) {
  Worker worker;
  const SlowGreedy slow;
  SimCluster cluster(DrawStart(1)), other(DrawStart(1));
  const auto controller = Make(&cluster, slow, {}, {.baseline = &stay_, .thinker = &worker});
  EXPECT_EQ(*controller->Turn(), TurnResult::kThinking);
  EXPECT_TRUE(controller->is_thinking());
  EXPECT_EQ(*controller->Turn(), TurnResult::kThinking);
  EXPECT_FALSE(controller->DropThought());
  EXPECT_TRUE(journal_.rows().empty());
  slow.GoOn(1000);
  EXPECT_EQ(*controller->RunPlan(), TurnResult::kStopped);
  EXPECT_FALSE(controller->is_thinking());

  MemoryJournal journal;
  Controller direct(&other, &task_, LatencyLaw::Reach(), &greedy_, {}, &journal,
                    {.baseline = &stay_});
  EXPECT_EQ(*direct.RunPlan(), TurnResult::kStopped);
  ASSERT_EQ(journal_.rows().size(), journal.rows().size());
  for (size_t i = 0; i < journal.rows().size(); ++i) {
    EXPECT_EQ(journal_.rows()[i].chosen, journal.rows()[i].chosen);
    EXPECT_EQ(journal_.rows()[i].considered.size(), journal.rows()[i].considered.size());
  }
  EXPECT_EQ(cluster.state().pods.node, other.state().pods.node);
}

TEST_F(ControllerTest, AControllerEndsOnceThePolicyThatItAsksHasAnswered) {
  Worker worker;
  const SlowGreedy slow;
  SimCluster cluster(DrawStart(1));
  auto controller = Make(&cluster, slow, {}, {.thinker = &worker});
  EXPECT_EQ(*controller->Turn(), TurnResult::kThinking);
  const std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    slow.GoOn();
  });
  controller.reset();
  EXPECT_TRUE(journal_.rows().empty());
}

}  // namespace
}  // namespace rudderfish
