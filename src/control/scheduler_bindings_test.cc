// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scheduler_fixture.h"

// What becomes of Bindings: that no word of the API server's leads to a pod that is bound twice, is
// lost, or whose room is given away.

namespace rudderfish {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::SchedulerNode;

class SchedulerBindings : public testing::SchedulerTest {};

TEST_F(SchedulerBindings, AnUnclearBindingIsSentAgainToTheSameNodeUntilItIsClear) {
  scheduler->NodeSeen(SchedulerNode("a"));
  scheduler->NodeSeen(SchedulerNode("b"));
  See("x", Shape(700));
  Turn();
  const std::string node = server.asked[0].node;
  server.Answer(BindingOutcome::kUnclear);  // It was bound, but the answer was lost.
  Turn();
  EXPECT_TRUE(server.asked.empty());
  TurnAfter(seconds(1));
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].node, node);
  server.Answer();  // A conflict, with itself.
  EXPECT_EQ(scheduler->counts().conflicts, 1);
  EXPECT_EQ(FreeCpu(node), 300) << "the room is kept";
  server.SayWhereTheyAre();
  EXPECT_EQ(scheduler->counts().bound, 1);
  EXPECT_THAT(server.told, ElementsAre("x on " + node));
  See("x", Shape(700), node);
  EXPECT_THAT(server.told, ElementsAre("x on " + node)) << "it is told once";
  ASSERT_TRUE(scheduler->WriteEnds().has_value());
  EXPECT_EQ(journal.rows()[0].fate, Fate::kDone);
  TurnAfter(seconds(100));
  EXPECT_TRUE(server.asked.empty());
  EXPECT_TRUE(server.looked_up.empty());
  EXPECT_TRUE(scheduler->is_idle());
}

// An overloaded API server may answer 504 and bind the pod all the same, while its watch lags: no
// other pod gets the room of the bound pod.
TEST_F(SchedulerBindings, TheRoomOfAPodWithAConflictIsKeptUntilTheServerSaysWhereItIs) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(900));
  Turn();
  server.Answer(BindingOutcome::kUnclear);
  TurnAfter(seconds(1));
  server.Answer();
  See("y", Shape(900));
  for (int i = 0; i < 100; ++i) {
    server.SayNothing();
    TurnAfter(seconds(10));
    EXPECT_EQ(FreeCpu("a"), 100);
    EXPECT_TRUE(server.asked.empty());
    EXPECT_EQ(server.looked_up.size(), 1) << "it is asked again and again";
  }
  server.SayWhereTheyAre();
  EXPECT_EQ(scheduler->counts().bound, 1);
  TurnAfter(seconds(10));
  EXPECT_EQ(FreeCpu("a"), 100);
  EXPECT_TRUE(server.asked.empty());
}

TEST_F(SchedulerBindings, TheRoomOfABoundPodIsKeptHoweverLongTheWatchIsSilent) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(900));
  Turn();
  server.Answer();
  See("y", Shape(900));
  for (int i = 0; i < 20; ++i) {
    TurnAfter(minutes(1));
    EXPECT_EQ(FreeCpu("a"), 100);
    EXPECT_TRUE(server.asked.empty());
    EXPECT_EQ(server.looked_up.size(), 1) << "once a minute";
    server.SayWhereTheyAre();
  }
  EXPECT_EQ(scheduler->counts().bound, 1);
  scheduler->PodGone("default/x");  // As a relist has it.
  TurnAfter(seconds(10));
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].pod.name, "y");
}

// An API server whose store was set back to a backup has forgotten what it said.
TEST_F(SchedulerBindings, APodWhoseBindingTheApiServerHasForgottenIsDecidedAgain) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(900));
  Turn();
  server.Answer();
  server.bound.clear();
  TurnAfter(minutes(1));
  server.SayWhereTheyAre();
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].pod.name, "x");
}

TEST_F(SchedulerBindings, AfterAConflictOfAPodThatHasNoNodeItBacksOff) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(900));
  Turn();
  server.Refuse(BindingOutcome::kConflict);
  TurnAfter(minutes(1));
  EXPECT_TRUE(server.asked.empty()) << "it is not known yet";
  EXPECT_EQ(FreeCpu("a"), 100);
  server.SayWhereTheyAre();
  EXPECT_EQ(FreeCpu("a"), 1000);
  Turn();
  EXPECT_TRUE(server.asked.empty());
  TurnAfter(seconds(1));
  ASSERT_EQ(server.asked.size(), 1);
  server.Refuse(BindingOutcome::kConflict);
  server.SayWhereTheyAre();
  TurnAfter(seconds(1));
  EXPECT_TRUE(server.asked.empty()) << "twice as long";
}

TEST_F(SchedulerBindings, AfterAConflictWithAnotherNodeTheRoomThatCountsIsThere) {
  scheduler->NodeSeen(SchedulerNode("a"));
  scheduler->NodeSeen(SchedulerNode("b", 800));
  See("x", Shape(600));
  Turn();
  ASSERT_EQ(server.asked[0].node, "a");
  server.bound["default/x"] = "b";  // Somebody else was faster.
  server.Answer();
  server.SayWhereTheyAre();
  EXPECT_EQ(FreeCpu("a"), 1000);
  EXPECT_EQ(FreeCpu("b"), 200);
  EXPECT_EQ(scheduler->counts().bound_elsewhere, 1);
  See("x", Shape(600));  // The watch tells of something older.
  EXPECT_EQ(FreeCpu("b"), 200);
  TurnAfter(seconds(20));
  EXPECT_TRUE(server.asked.empty());
  See("x", Shape(600), "b");
  EXPECT_EQ(scheduler->counts().bound_elsewhere, 1);
  EXPECT_EQ(scheduler->counts().bound, 0);
  EXPECT_TRUE(server.told.empty());
  ASSERT_TRUE(scheduler->WriteEnds().has_value());
  EXPECT_EQ(journal.rows()[0].fate, Fate::kFailed);
}

TEST_F(SchedulerBindings, APodThatIsGoneIsForgotten) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  Turn();
  server.gone = {"default/x"};
  server.Refuse(BindingOutcome::kGone);
  EXPECT_EQ(FreeCpu("a"), 400) << "the watch still shows it: who knows";
  server.SayWhereTheyAre();
  EXPECT_EQ(FreeCpu("a"), 1000);
  EXPECT_EQ(scheduler->counts().gone, 1);
  TurnAfter(minutes(10));
  EXPECT_TRUE(server.asked.empty());
  EXPECT_TRUE(server.told.empty());
}

TEST_F(SchedulerBindings, ANotFoundOfAPodThatIsThereIsNotBelieved) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  Turn();
  server.Refuse(BindingOutcome::kGone);
  server.SayWhereTheyAre();
  TurnAfter(seconds(1));
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(scheduler->counts().gone, 0);
}

TEST_F(SchedulerBindings, APodThatEndsBeforeTheWatchSaysSoIsNotTriedAgain) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  Turn();
  server.ending = {"default/x"};
  server.Refuse(BindingOutcome::kConflict);
  server.SayWhereTheyAre();
  TurnAfter(minutes(10));
  EXPECT_TRUE(server.asked.empty());
  EXPECT_EQ(FreeCpu("a"), 1000);
}

// As of a pod with a finalizer, of which an API server says that it is being deleted.
TEST_F(SchedulerBindings, APodThatIsToEndWhileItsBindingIsUnderWayIsNotTriedAgain) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  Turn();
  scheduler->PodSeen({{"default", "x", "1"}, Shape(600), "", true});
  EXPECT_EQ(FreeCpu("a"), 400) << "it may be bound";
  server.Refuse(BindingOutcome::kConflict);
  server.SayWhereTheyAre();
  EXPECT_EQ(FreeCpu("a"), 1000);
  TurnAfter(minutes(10));
  EXPECT_TRUE(server.asked.empty());
  EXPECT_TRUE(server.told.empty());
}

TEST_F(SchedulerBindings, WhatAPodHasBecomeWhileItsBindingWasUnderWayCountsAfterwards) {
  scheduler->NodeSeen(SchedulerNode("a"));
  SchedulingNode tainted = SchedulerNode("b", 8000);
  tainted.taints = {{"dedicated", "web", TaintEffect::kNoSchedule}};
  scheduler->NodeSeen(tainted);
  See("x", Shape(600));
  Turn();
  ASSERT_EQ(server.asked[0].node, "a");
  const auto tolerant = Shape(600);
  tolerant->tolerations = {{.key = "dedicated", .op = PodToleration::Operator::kExists}};
  See("x", tolerant);
  TurnAfter(seconds(1));
  EXPECT_EQ(server.asked.size(), 1) << "one at a time";
  server.Refuse(BindingOutcome::kRefused);
  TurnAfter(seconds(1));
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].node, "b");
}

TEST_F(SchedulerBindings, APodThatOptsOutWhileItsBindingIsUnderWayIsKubeDefaultsAfterwards) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  Turn();
  ASSERT_EQ(scheduler->counts().by_policy, 1);
  scheduler->PodSeen({.id = {"default", "x", "1"}, .shape = Shape(600), .is_opted_out = true});
  server.Refuse(BindingOutcome::kRefused);
  TurnAfter(seconds(1));
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(scheduler->counts().by_policy, 1);
}

TEST_F(SchedulerBindings, WhatAPodHoldsIsWhatItIsNow) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  Turn();
  server.Answer();
  See("x", Shape(700));  // Before the watch shows its node.
  EXPECT_EQ(FreeCpu("a"), 300);
  See("x", Shape(700), "a");
  EXPECT_EQ(FreeCpu("a"), 300);
}

TEST_F(SchedulerBindings, ABindingThatWasHeldBackForLongIsDecidedAgain) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(700));
  Turn();
  server.Refuse(BindingOutcome::kUnclear);
  leads = false;  // Or paused.
  scheduler->NodeSeen(SchedulerNode("b"));
  SchedulingNode cordoned = SchedulerNode("a");
  cordoned.unschedulable = true;
  scheduler->NodeSeen(cordoned);
  TurnAfter(minutes(10));
  EXPECT_TRUE(server.asked.empty());
  leads = true;
  Turn();
  EXPECT_TRUE(server.asked.empty()) << "it may have been done";
  server.SayWhereTheyAre();
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].node, "b");
  server.Answer();
  EXPECT_EQ(FreeCpu("a"), 1000);
  EXPECT_EQ(FreeCpu("b"), 300);
}

TEST_F(SchedulerBindings, ARefusedBindingGivesItsRoomBackAndSaysWhy) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  Turn();
  server.Refuse(BindingOutcome::kRefused);
  EXPECT_EQ(FreeCpu("a"), 1000);
  EXPECT_THAT(server.told, ElementsAre("x: why"));
  TurnAfter(seconds(1));
  EXPECT_EQ(server.asked.size(), 1);
}

TEST_F(SchedulerBindings, ARefusalAfterASendingThatWasNotHeardOfIsNoProofThatItIsNotBound) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  Turn();
  server.Answer(BindingOutcome::kUnclear);  // It was bound.
  TurnAfter(seconds(1));
  server.Refuse(BindingOutcome::kRefused);  // Its rights have been taken away since.
  EXPECT_EQ(FreeCpu("a"), 400);
  server.SayWhereTheyAre();
  EXPECT_EQ(FreeCpu("a"), 400);
  EXPECT_EQ(scheduler->counts().bound, 1);
}

TEST_F(SchedulerBindings, ARestartedSchedulerBindsNothingThatIsBound) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape());
  Turn();
  const auto before = std::exchange(server.asked, {});
  server.bound["default/x"] = "a";  // And we are killed.
  Start();
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape());  // As an old list has it.
  Turn();
  server.Answer();
  EXPECT_EQ(scheduler->counts().conflicts, 1);
  See("x", Shape(), "a");
  server.SayWhereTheyAre();  // Too late to matter.
  TurnAfter(seconds(20));
  EXPECT_TRUE(server.asked.empty());
  EXPECT_EQ(server.bound.size(), 1);
}

TEST_F(SchedulerBindings, ARecreatedPodOfTheSameNameIsAnotherOne) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600), "", "1");
  Turn();
  See("x", Shape(600), "", "2");
  EXPECT_EQ(FreeCpu("a"), 1000);
  Turn();
  ASSERT_EQ(server.asked.size(), 2);
  EXPECT_EQ(server.asked[1].pod.uid, "2");
  server.asked[0].done(BindingOutcome::kConflict, "");
  EXPECT_EQ(FreeCpu("a"), 400) << "the answer is of the first";
  EXPECT_TRUE(server.looked_up.empty());
}

TEST_F(SchedulerBindings, ANominatedNodeIsTakenWhereverItIsFeasibleAndNoPolicyHasChosenIt) {
  int told = 0;
  scheduler->OnChoice([&](const OwnChoice&) { ++told; });
  scheduler->NodeSeen(SchedulerNode("a"));
  scheduler->NodeSeen(SchedulerNode("b"));
  See("old", Shape(500), "b");  // kube-default prefers a.
  const auto nominate = [&](const std::string& name, const std::string& node) {
    scheduler->PodSeen(
        {.id = {"default", name, "1"}, .shape = Shape(300), .node = "", .nominated = node});
    Turn();
    scheduler->TellChoices();
  };
  nominate("x", "b");
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].node, "b");
  EXPECT_EQ(journal.rows()[0].best[0].first, "b");
  EXPECT_EQ(journal.rows()[0].reason, "its status.nominatedNodeName names b");
  EXPECT_EQ(told, 0);
  EXPECT_EQ(scheduler->counts().by_policy, 0);
  nominate("y", "b");  // Has no room left.
  nominate("z", "gone");
  ASSERT_EQ(server.asked.size(), 3);
  EXPECT_EQ(server.asked[1].node, "a");
  EXPECT_EQ(server.asked[2].node, "a");
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace rudderfish
