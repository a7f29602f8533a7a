// SPDX-License-Identifier: Apache-2.0
#include "control/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/live_policy.h"
#include "tests/support/scheduler_fixture.h"

namespace rudderfish {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::SchedulerNode;
using testing::SchedulerTest;

TEST_F(SchedulerTest, PodsOfTheSameTurnSeeEachOther) {
  scheduler->NodeSeen(SchedulerNode("a"));
  for (const char* name : {"x", "y", "z"}) See(name, Shape(400));
  Turn();
  ASSERT_EQ(server.asked.size(), 2);
  EXPECT_THAT(server.told, ElementsAre("z: 0/1 nodes are available: 1 Insufficient cpu."));
  server.Answer();
  EXPECT_THAT(server.told, ::testing::Contains("x on a"));
  EXPECT_EQ(FreeCpu("a"), 200);
  ASSERT_EQ(journal.rows().size(), 3);
  EXPECT_EQ(journal.rows()[0].node, "a");
  EXPECT_EQ(journal.rows()[2].fate, Fate::kStayed);
  ASSERT_TRUE(scheduler->WriteEnds().has_value());
  EXPECT_EQ(journal.rows()[0].fate, Fate::kDone);
}

TEST_F(SchedulerTest, APodThatLeavesWakesWhoWaitsForItsRoom) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("old", Shape(900), "a");
  See("new", Shape(500));
  Turn();
  EXPECT_TRUE(server.asked.empty());
  clock.Advance(seconds(2));
  Turn();
  EXPECT_EQ(scheduler->queue().asleep(), 1);
  scheduler->PodGone("default/old");
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].pod.name, "new");
}

TEST_F(SchedulerTest, TheFirstNodeWakesWhoFoundNone) {
  See("x", Shape());
  Turn();
  EXPECT_THAT(server.told, ElementsAre("x: no nodes available to schedule pods"));
  clock.Advance(seconds(20));
  scheduler->NodeSeen(SchedulerNode("a"));
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].node, "a");
}

TEST_F(SchedulerTest, WhoIsWokenBacksOffFirst) {
  scheduler->NodeSeen(SchedulerNode("a", 100));
  See("x", Shape(500));
  Turn();
  scheduler->NodeSeen(SchedulerNode("a", 1000));
  Turn();
  EXPECT_TRUE(server.asked.empty());
  clock.Advance(seconds(1));
  Turn();
  EXPECT_EQ(server.asked.size(), 1);
}

TEST_F(SchedulerTest, PriorityGoesFirstAndThenWhoWaitedLongest) {
  scheduler->NodeSeen(SchedulerNode("a"));
  auto urgent = Shape();
  urgent->priority = 10;
  See("first", Shape());
  See("second", Shape());
  See("urgent", urgent);
  Turn();
  ASSERT_EQ(server.asked.size(), 3);
  EXPECT_EQ(server.asked[0].pod.name, "urgent");
  EXPECT_EQ(server.asked[1].pod.name, "first");
}

TEST_F(SchedulerTest, APodGoesWhereItPrefersToByAMixWithKubeDefault) {
  scheduler.emplace(SchedulerOptions{}, &clock,
                    LivePolicy::Load({.policy = "mixed:greedy=1,kube-default=1"})->NewScorer(),
                    &server, &journal, [this] { return leads; });
  for (const char* name : {"a", "b", "c", "d"}) scheduler->NodeSeen(SchedulerNode(name));
  const std::string wanted[] = {"c", "a", "d", "b"};
  for (const std::string& node : wanted) {
    auto picky = Shape(250);
    picky->preferred_nodes = {
        {{{{"kubernetes.io/hostname", NodeRequirement::Operator::kIn, {node}}}}, 1}};
    See("x" + node, picky);
  }
  Turn();
  ASSERT_EQ(server.asked.size(), 4);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(server.asked[i].node, wanted[i]);
}

TEST_F(SchedulerTest, OthersPodsGatedOnesAndThoseThatEndAreLeftAlone) {
  scheduler->NodeSeen(SchedulerNode("a"));
  auto others = Shape(), gated = Shape();
  others->scheduler = "default-scheduler";
  gated->gates = {"wait"};
  See("others", others);
  See("gated", gated);
  scheduler->PodSeen({{"default", "ending", "1"}, Shape(), "", true});
  Turn();
  EXPECT_TRUE(server.asked.empty());
  See("gated", Shape());
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].pod.name, "gated");
}

TEST_F(SchedulerTest, WhatIsNotModelledIsNamedAndLeftWaiting) {
  scheduler->NodeSeen(SchedulerNode("a"));
  auto shape = Shape();
  shape->unmodelled = {"claims devices (DRA)"};
  See("x", shape);
  Turn();
  EXPECT_TRUE(server.asked.empty());
  ASSERT_EQ(server.told.size(), 1);
  EXPECT_THAT(server.told[0], HasSubstr("claims devices (DRA)"));
  EXPECT_EQ(scheduler->counts().unmodelled, 1);
  EXPECT_EQ(scheduler->queue().asleep(), 1);
}

TEST_F(SchedulerTest, ThatItDoesNotPreemptIsSaidOnceAPodOfLowerPriorityIsInTheWay) {
  scheduler->NodeSeen(SchedulerNode("a"));
  scheduler->NodeSeen(SchedulerNode("b"));
  See("low-a", Shape(700), "a");
  auto equal = Shape(700), urgent = Shape(600);
  equal->priority = urgent->priority = 10;
  See("equal-b", equal, "b");
  const auto try_again = [&] {
    clock.Advance(std::chrono::minutes(6));  // Asleep for longer than that is tried in any case.
    Turn();
  };
  See("urgent", urgent);
  Turn();
  const std::string refusal = "urgent: 0/2 nodes are available: 2 Insufficient cpu.";
  const std::string first = refusal +
                            " preemption: rudderfish does not preempt, and pods of lower priority "
                            "are in the way on 1/2 nodes.";
  EXPECT_THAT(server.told, ElementsAre(first));
  EXPECT_EQ(journal.rows().back().reason, first.substr(sizeof("urgent: ") - 1));
  // That other pods are in the way, or none any more, is not told again.
  scheduler->PodGone("default/equal-b");
  See("low-b", Shape(700), "b");
  try_again();
  scheduler->PodGone("default/low-a");
  scheduler->PodGone("default/low-b");
  See("equal-a", equal, "a");
  See("equal-b", equal, "b");
  try_again();
  EXPECT_THAT(server.told, ElementsAre(first));
  // A new refusal is told.
  scheduler->PodGone("default/equal-b");
  SchedulingNode cordoned = SchedulerNode("b");
  cordoned.unschedulable = true;
  scheduler->NodeSeen(cordoned);
  try_again();
  ASSERT_EQ(server.told.size(), 2);
  EXPECT_EQ(server.told[1],
            "urgent: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.");
  // So is a pod in the way, if none was told before.
  scheduler->PodGone("default/equal-a");
  See("low-a", Shape(700), "a");
  try_again();
  ASSERT_EQ(server.told.size(), 3);
  EXPECT_THAT(server.told[2], HasSubstr("in the way on 1/2 nodes."));
  EXPECT_TRUE(server.asked.empty());
}

TEST_F(SchedulerTest, AHardLimitOfLatencyIsKeptAndEndsToHoldAPodBackOnceANodeIsNear) {
  SchedulingNode far = SchedulerNode("far", 4000), unknown = SchedulerNode("unknown", 4000);
  far.user_ms = 31;
  scheduler->NodeSeen(far);
  scheduler->NodeSeen(unknown);
  const auto near = Shape();
  near->latency_limits.hard_ms = 30;
  See("x", near);
  Turn();
  EXPECT_THAT(server.told,
              ElementsAre("x: 0/2 nodes are available: 2 node(s) were not known to be within the "
                          "pod's hard limit of latency."));
  unknown.user_ms = 30;
  scheduler->NodeSeen(unknown);
  Turn();
  clock.Advance(seconds(2));
  Turn();
  server.Answer();
  EXPECT_EQ(server.bound["default/x"], "unknown");
}

TEST_F(SchedulerTest, APodThatHoldsWhatCannotBeReadKeepsOthersFromItsNodeUntilItCanBe) {
  scheduler->NodeSeen(SchedulerNode("a"));
  auto unread = Shape(0);
  unread->unmodelled = {"cannot be read: spec"};
  unread->holds_unknown = true;
  See("odd", unread, "a");
  See("x", Shape(500));
  Turn();
  EXPECT_TRUE(server.asked.empty());
  EXPECT_THAT(server.told, ElementsAre("x: 0/1 nodes are available: 1 node(s) run a pod whose spec "
                                       "could not be parsed completely."));
  clock.Advance(seconds(2));
  See("odd", Shape(900), "a");
  Turn();
  EXPECT_TRUE(server.asked.empty());
  EXPECT_EQ(server.attempts_told, 1) << "there is no room for it anyway";
  clock.Advance(seconds(3));
  See("odd", Shape(400), "a");  // Resized, in place.
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].pod.name, "x");
}

TEST_F(SchedulerTest, ARecreatedPodDoesNotFindTheRoomOfItsPredecessorTaken) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600), "a", "1");
  See("x", Shape(600), "", "2");  // A list does not tell that the first has gone.
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].pod.uid, "2");
  EXPECT_EQ(FreeCpu("a"), 400);
}

TEST_F(SchedulerTest, RoomThatWasAssumedInVainWakesWhoWaitsForIt) {
  scheduler->NodeSeen(SchedulerNode("a"));
  scheduler->NodeSeen(SchedulerNode("b", 600));
  See("x", Shape(500));
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  ASSERT_EQ(server.asked[0].node, "a");
  See("y", Shape(700));
  Turn();
  EXPECT_EQ(scheduler->queue().asleep(), 1);
  See("x", Shape(500), "b");  // Somebody else was faster.
  See("z", Shape(700));       // What was found of its kind does not hold any more.
  clock.Advance(seconds(1));
  Turn();
  Turn();
  ASSERT_EQ(server.asked.size(), 2);
  EXPECT_EQ(server.asked[1].node, "a");
}

TEST_F(SchedulerTest, RoomOfADecisionThatWasNotSentWakesWhoWaitsForIt) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape(600));
  See("y", Shape(600));
  journal.on_append = [this] { leads = false; };  // Lost while the decision was written.
  Turn();
  journal.on_append = nullptr;
  leads = true;
  EXPECT_TRUE(server.asked.empty());
  scheduler->PodGone("default/x");
  clock.Advance(seconds(1));
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].pod.name, "y");
}

TEST_F(SchedulerTest, AnUnchangedNamespaceWakesNoPod) {
  scheduler->NodeSeen(SchedulerNode("a", 100));
  scheduler->NamespaceSeen("default", {{"stage", "live"}});
  const auto social = Shape(50);
  social->required_pods = {{.namespaces = {"default"},
                            .selector = LabelSelector{},
                            .topology_key = "kubernetes.io/hostname"}};
  social->required_pods[0].selector->requirements = {
      {"app", LabelRequirement::Operator::kIn, {"db"}}};
  See("x", social);
  Turn();
  ASSERT_EQ(scheduler->queue().asleep(), 1);
  clock.Advance(seconds(20));
  scheduler->NamespaceSeen("default", {{"stage", "live"}});
  Turn();
  EXPECT_EQ(scheduler->queue().asleep(), 1);
  EXPECT_EQ(scheduler->counts().waiting, 1);
  scheduler->NamespaceSeen("default", {{"stage", "test"}});
  Turn();
  EXPECT_EQ(scheduler->counts().waiting, 2);
}

TEST_F(SchedulerTest, AnUnchangedNodeWakesNoPod) {
  scheduler->NodeSeen(SchedulerNode("a", 100));
  See("x", Shape(600));
  for (int i = 0; i < 60; ++i) {
    scheduler->NodeSeen(SchedulerNode("a", 100));
    clock.Advance(seconds(1));
    Turn();
  }
  EXPECT_EQ(scheduler->counts().waiting, 1);
}

TEST_F(SchedulerTest, ALostRaceIsCountedAndNotRepeated) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("ours", Shape(600));
  Turn();
  See("theirs", Shape(600), "a");
  Turn();
  EXPECT_EQ(scheduler->counts().lost_races, 1);
  EXPECT_THAT(server.overcommitted,
              ElementsAre("a holds more than it has of cpu (1200m of 1): another scheduler has "
                          "placed pods there, too"));
  server.Answer();
  See("next", Shape(100));
  Turn();
  EXPECT_TRUE(server.asked.empty());
}

TEST_F(SchedulerTest, ALostRaceForDevicesAndHostPortsIsSeenAndNamed) {
  SchedulingNode node = SchedulerNode("a");
  node.scalars = {{"nvidia.com/gpu", 1}};
  scheduler->NodeSeen(node);
  auto training = Shape();
  training->amounts.scalars = {{"nvidia.com/gpu", 1}};
  training->host_ports = {{"0.0.0.0", "TCP", 8080}};
  See("ours", training);
  Turn();
  See("harmless", Shape(), "a");
  Turn();
  EXPECT_THAT(server.overcommitted, ::testing::IsEmpty());
  auto theirs = std::make_shared<PodClass>(*training);
  theirs->scheduler = "other";
  See("theirs", theirs, "a");
  Turn();
  EXPECT_THAT(server.overcommitted,
              ElementsAre(HasSubstr("a holds more than it has of nvidia.com/gpu (2 of 1), host "
                                    "port 8080/TCP (by 2 pods): another scheduler")));
  EXPECT_EQ(scheduler->counts().lost_races, 1);
}

TEST_F(SchedulerTest, WhoElseServesItsNameIsNoticedAndToldSeldom) {
  scheduler->NodeSeen(SchedulerNode("a"));
  Turn();
  clock.Advance(seconds(30));
  for (const char* name : {"x", "y", "z"}) See(name, Shape(5000));  // Which fit nowhere.
  See("ours", Shape());
  Turn();
  server.Answer();
  See("ours", Shape(), "a");
  EXPECT_EQ(scheduler->counts().name_shared, 0);
  See("x", Shape(5000), "a");
  EXPECT_EQ(scheduler->counts().name_shared, 1);
  ASSERT_EQ(server.shared.size(), 1);
  EXPECT_THAT(server.shared[0], HasSubstr("the scheduler name rudderfish"));
  EXPECT_THAT(server.shared[0], HasSubstr("default/x was put on a"));
  See("y", Shape(5000), "a");
  EXPECT_EQ(scheduler->counts().name_shared, 2);
  EXPECT_EQ(server.shared.size(), 1);
  clock.Advance(std::chrono::minutes(11));
  See("z", Shape(5000), "a");
  ASSERT_EQ(server.shared.size(), 2);
  EXPECT_THAT(server.shared[1], HasSubstr("3 so far"));
}

TEST_F(SchedulerTest, ARaceForAPodThatNamesUsShowsThatTheNameIsShared) {
  scheduler->NodeSeen(SchedulerNode("a"));
  Turn();
  clock.Advance(seconds(30));
  See("x", Shape());
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  server.Answer(BindingOutcome::kConflict);
  See("x", Shape(), "elsewhere");
  EXPECT_EQ(scheduler->counts().bound_elsewhere, 1);
  EXPECT_EQ(scheduler->counts().name_shared, 1);
}

TEST_F(SchedulerTest, WhatALeaderBeforeUsOrWeOurselvesPlacedIsNoSharedName) {
  scheduler->NodeSeen(SchedulerNode("a"));
  See("ready", Shape(), "a");  // Never seen waiting.
  leads = false;
  See("before", Shape(5000));
  Turn();
  clock.Advance(seconds(30));
  leads = true;
  Turn();
  See("before", Shape(5000), "elsewhere");  // By the leader before us.
  clock.Advance(seconds(1));
  See("early", Shape(5000));
  clock.Advance(seconds(30));
  See("early", Shape(5000), "elsewhere");  // Perhaps by that leader, too.
  See("late", Shape(100));
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  server.Refuse(BindingOutcome::kConflict);
  server.SayWhereTheyAre();
  clock.Advance(seconds(6));
  Turn();  // It had no node, and is tried again.
  See("late", Shape(100), "a");
  leads = false;
  See("after", Shape(5000));
  See("after", Shape(5000), "a");  // By the leader after us.
  EXPECT_EQ(scheduler->counts().name_shared, 0);
  EXPECT_TRUE(server.shared.empty());
}

TEST_F(SchedulerTest, WhoDoesNotLeadDoesNothing) {
  leads = false;
  scheduler->NodeSeen(SchedulerNode("a"));
  See("x", Shape());
  Turn();
  EXPECT_TRUE(server.asked.empty());
  EXPECT_TRUE(journal.rows().empty());
  leads = true;
  Turn();
  EXPECT_EQ(server.asked.size(), 1);
}

TEST_F(SchedulerTest, WhoFitsNowhereIsNotTriedAgainEachTimeThatASmallOneLeaves) {
  scheduler->NodeSeen(SchedulerNode("a"));
  scheduler->NodeSeen(SchedulerNode("b"));
  for (const char* name : {"f1", "f2"}) See(name, Shape(300), "a");
  See("x", Shape(900));
  See("full", Shape(1000), "b");
  Turn();
  ASSERT_TRUE(server.asked.empty());
  ASSERT_EQ(server.attempts_told, 1);
  for (int i = 0; i < 20; ++i) {
    scheduler->PodGone("default/f1");
    TurnAfter(seconds(10));
    See("f1", Shape(300), "a");
    TurnAfter(seconds(1));
  }
  EXPECT_EQ(server.attempts_told, 1);
  scheduler->NodeSeen(SchedulerNode("c", 800));  // Too small a node.
  TurnAfter(seconds(10));
  EXPECT_EQ(server.attempts_told, 1);
  scheduler->PodGone("default/f1");
  scheduler->PodGone("default/f2");
  TurnAfter(seconds(10));
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].node, "a");
}

TEST_F(SchedulerTest, ANodeThatTakesItsTaintAwayOrGrowsWakesWhoHasRoomThere) {
  SchedulingNode tainted = SchedulerNode("a");
  tainted.taints = {{"dedicated", "web", TaintEffect::kNoSchedule}};
  scheduler->NodeSeen(tainted);
  scheduler->NodeSeen(SchedulerNode("b", 100));
  for (const char* name : {"x", "y"}) See(name, Shape(600));
  Turn();
  clock.Advance(seconds(10));
  scheduler->NodeSeen(SchedulerNode("a"));
  Turn();
  ASSERT_EQ(server.asked.size(), 1);
  EXPECT_EQ(server.asked[0].node, "a");
  clock.Advance(seconds(10));
  scheduler->NodeSeen(SchedulerNode("b", 600));
  Turn();
  ASSERT_EQ(server.asked.size(), 2);
  EXPECT_EQ(server.asked[1].node, "b");
}

TEST_F(SchedulerTest, WhomAFullNodeRefusesForItsRoomAloneWakesWhenThatIsFree) {
  SchedulingNode tainted = SchedulerNode("a");
  tainted.taints = {{"dedicated", "web", TaintEffect::kNoSchedule}};
  scheduler->NodeSeen(tainted);
  See("full", Shape(800), "a");
  See("x", Shape(600));
  Turn();
  EXPECT_THAT(server.told, ElementsAre(HasSubstr("untolerated taint")));
  scheduler->NodeSeen(SchedulerNode("a"));
  TurnAfter(seconds(10));
  EXPECT_TRUE(server.asked.empty());
  scheduler->PodGone("default/full");
  TurnAfter(seconds(10));
  EXPECT_EQ(server.asked.size(), 1);
}

TEST_F(SchedulerTest, APodThatIsRefusedForTheSameIsWrittenDownOnce) {
  scheduler->NodeSeen(SchedulerNode("n0", 100));
  auto shape = Shape(500);
  shape->node_selector = {{"disk", "ssd"}};
  See("x", shape);
  for (int i = 1; i < 8; ++i) {
    SchedulingNode node = SchedulerNode("n" + std::to_string(i), 100);
    node.labels = {{"disk", "ssd"}, {"kubernetes.io/hostname", node.name}};
    scheduler->NodeSeen(node);
    See("x", std::make_shared<PodClass>(*shape));  // Is tried again.
    TurnAfter(seconds(1));
  }
  EXPECT_EQ(server.attempts_told, 7);
  EXPECT_EQ(server.told.size(), 7) << "the numbers of nodes change";
  EXPECT_EQ(journal.rows().size(), 1);
  scheduler->NodeGone("n0");
  See("x", std::make_shared<PodClass>(*shape));
  Turn();
  EXPECT_EQ(journal.rows().size(), 2) << "no node refuses it for its labels any more";
}

TEST_F(SchedulerTest, ManyPodsOfOneKindThatFitNowhereAreJudgedOnce) {
  scheduler->NodeSeen(SchedulerNode("a", 100));
  const auto shape = Shape(500);
  for (int i = 0; i < 40; ++i) See("x" + std::to_string(i), shape);
  Turn();
  Turn();
  EXPECT_EQ(scheduler->queue().asleep(), 40);
  EXPECT_EQ(scheduler->counts().waiting, 40);
}

}  // namespace
}  // namespace rudderfish
