// SPDX-License-Identifier: Apache-2.0
#include "control/placement_comparer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "control/live_policy.h"

namespace rudderfish {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class ComparisonList final : public ComparisonSink {
 public:
  Result<void> AppendComparisons(std::span<const PlacementComparison> added,
                                 std::span<const PlacementOutcome> more) override {
    rows.insert(rows.end(), added.begin(), added.end());
    outcomes.insert(outcomes.end(), more.begin(), more.end());
    return {};
  }
  std::vector<PlacementComparison> rows;
  std::vector<PlacementOutcome> outcomes;
};

// Nothing is bound: the tests tell what the cluster shows.
class BindingList final : public PlacementActuator {
 public:
  void Bind(const PodIdentity& pod, const std::string& node, OnDone done) override {
    asked[pod.name] = node;
    dones.push_back(std::move(done));
  }
  void LookUp(const PodIdentity&, OnFound) override {}
  void TellPlaced(const PodIdentity&, const std::string&) override {}
  void TellWaiting(const PodIdentity&, const std::string&) override {}
  void TellWaitsNoLonger(const PodIdentity&) override {}
  void TellOvercommitted(const std::string&, const std::string&) override {}
  void TellNameShared(const PodIdentity&, const std::string&) override {}
  std::map<std::string, std::string> asked;
  std::vector<OnDone> dones;
};

class PlacementComparerTest : public ::testing::Test {
 protected:
  explicit PlacementComparerTest(const LivePolicyOptions& policy = {.policy = "most-allocated"})
      : scheduler({}, &clock, LivePolicy::Load(policy)->NewScorer(), &bindings, &journal,
                  [] { return true; }),
        comparer({.scheduler_name = "rudderfish",
                  .objective = Objective::Of(ObjectiveTerm::kUtilisation),
                  .objective_text = "utilisation"},
                 &clock, LivePolicy::Load(policy)->NewScorer(),
                 std::make_unique<LiveCluster>(PlacementFacts(), std::string(kNodeTypeLabel)),
                 &scheduler, &list) {
    comparer.SetComparing(Comparing::kShadow);
    for (const char* name : {"a", "b", "c"}) comparer.NodeSeen(Node(name));
    clock.Advance(seconds(10));
  }

  static SchedulingNode Node(const std::string& name) {
    SchedulingNode node;
    node.name = name;
    node.labels = {{"kubernetes.io/hostname", name}};
    node.allocatable = {1000, int64_t{1} << 30};
    node.pods_max = 110;
    return node;
  }
  static std::shared_ptr<PodClass> Shape(const std::string& asks = "default-scheduler",
                                         int64_t cpu_millis = 100) {
    auto shape = std::make_shared<PodClass>();
    shape->object_namespace = "default";
    shape->amounts.requests = shape->amounts.held = {cpu_millis, 1 << 20};
    shape->scheduler = asks;
    return shape;
  }
  void See(const std::string& name, std::shared_ptr<const PodClass> shape,
           const std::string& node = "") {
    comparer.PodSeen({{"default", name, "uid-" + name}, std::move(shape), node});
  }
  void Flush() { ASSERT_TRUE(comparer.Flush().has_value()); }
  void Pass(Duration time) {
    clock.Advance(time);
    ASSERT_TRUE(comparer.Turn().has_value());
  }
  // A pod of the canary is chosen for once a second and its Binding answered.
  void Choose(int seconds_long, BindingOutcome answer) {
    for (int i = 0; i < seconds_long; ++i) {
      clock.Advance(seconds(1));
      ASSERT_TRUE(scheduler.Turn().has_value());
      scheduler.TellChoices();
      for (auto& done : std::exchange(bindings.dones, {})) done(answer, "");
      ASSERT_TRUE(comparer.Turn().has_value());
    }
  }

  ManualClock clock{Instant(seconds(1000))};
  BindingList bindings;
  MemoryPlacementJournal journal;
  ComparisonList list;
  Scheduler scheduler;
  PlacementComparer comparer;
};

TEST_F(PlacementComparerTest, WhatAnotherSchedulerBindsIsJudgedOnTheStateRightBefore) {
  See("old", Shape("x", 500), "b");  // Was there before anybody looked.
  See("web", Shape());
  See("web", Shape(), "a");
  Flush();
  ASSERT_EQ(list.rows.size(), 1u);
  const PlacementComparison& row = list.rows[0];
  EXPECT_EQ(row.group, ComparisonGroup::kShadow);
  EXPECT_EQ(row.node, "a");
  EXPECT_EQ(row.baseline_node, "a");
  EXPECT_EQ(row.policy_node, "b");  // most-allocated fills the node that is in use.
  EXPECT_EQ(row.rules, RulesVerdict::kEqual);
  EXPECT_EQ(row.feasible, 3);
  EXPECT_GT(row.gain(), 0);
  EXPECT_THAT(row.detail, HasSubstr("\"considered\""));
}

TEST_F(PlacementComparerTest, ANodeThatOurRulesForbidIsADifferenceAndNamed) {
  See("big", Shape("x", 950), "a");
  clock.Advance(seconds(1));
  See("web", Shape());
  See("web", Shape(), "a");
  Flush();
  ASSERT_EQ(list.rows.size(), 1u);
  EXPECT_EQ(list.rows[0].rules, RulesVerdict::kDifferent);
  EXPECT_EQ(list.rows[0].reason, "a: Insufficient cpu");
  EXPECT_EQ(list.rows[0].policy_node, "");
}

TEST_F(PlacementComparerTest, ANodeThatWeCloseForWhatCannotBeReadIsNoDifference) {
  auto unread = Shape("x");
  unread->holds_unknown = true;
  See("odd", unread, "a");
  clock.Advance(seconds(1));
  See("web", Shape());
  See("web", Shape(), "a");
  Flush();
  ASSERT_EQ(list.rows.size(), 1u);
  EXPECT_EQ(list.rows[0].rules, RulesVerdict::kUnclear);
  EXPECT_EQ(list.rows[0].reason, "a: node(s) run a pod whose spec could not be parsed completely");
  See("waits", Shape());
  const auto story = comparer.Explain("default/waits");
  ASSERT_TRUE(story.has_value());
  ASSERT_EQ(story->groups.size(), 1u);
  EXPECT_EQ(story->groups[0].reason, "node(s) run a pod whose spec could not be parsed completely");
  EXPECT_EQ(story->groups[0].nodes, std::vector<std::string>{"a"});
}

// kube-scheduler takes pods of every namespace for such a selector.
TEST_F(PlacementComparerTest, AnAffinityThatExcludesNamespacesIsNoDifference) {
  for (const auto op : {LabelRequirement::Operator::kNotIn, LabelRequirement::Operator::kIn}) {
    auto shape = Shape();
    shape->required_pods.push_back(
        {.namespace_selector = LabelSelector{{{"team", op, {"a"}}}},
         .selector = LabelSelector{{{"app", LabelRequirement::Operator::kIn, {"none"}}}},
         .topology_key = "kubernetes.io/hostname"});
    const std::string name = op == LabelRequirement::Operator::kIn ? "in" : "not-in";
    See(name, shape);
    See(name, shape, "a");
  }
  Flush();
  ASSERT_EQ(list.rows.size(), 2u);
  EXPECT_EQ(list.rows[0].rules, RulesVerdict::kUnclear);
  EXPECT_EQ(list.rows[1].rules, RulesVerdict::kDifferent);
}

TEST_F(PlacementComparerTest, WhatWasBoundMeanwhileIsNotHeldAgainstTheOther) {
  See("web", Shape());
  clock.Advance(seconds(1));
  See("big", Shape("x", 950), "a");  // Decided after web, and shown before it.
  See("web", Shape(), "a");
  Flush();
  ASSERT_EQ(list.rows.size(), 1u);
  EXPECT_EQ(list.rows[0].rules, RulesVerdict::kEqual);
  EXPECT_EQ(scheduler.tables().NodeOf("default/big"), "a");
}

TEST_F(PlacementComparerTest, ANodeThatChangedMeanwhileMakesItUnclear) {
  See("web", Shape());
  SchedulingNode cordoned = Node("a");
  cordoned.unschedulable = true;
  comparer.NodeSeen(cordoned);
  See("web", Shape(), "a");
  Flush();
  EXPECT_EQ(list.rows.at(0).rules, RulesVerdict::kUnclear);
}

TEST_F(PlacementComparerTest, WhatIsNotModelledIsCountedAndNotClaimed) {
  auto shape = Shape();
  shape->unmodelled = {"claims devices (DRA)"};
  See("odd", shape);
  See("odd", shape, "a");
  Flush();
  EXPECT_EQ(list.rows.at(0).rules, RulesVerdict::kUnmodelled);
}

TEST_F(PlacementComparerTest, WhoIsOptedOutOrOursOrWasThereBeforeIsNotCompared) {
  comparer.PodSeen({{"default", "out", "1"}, Shape(), "", false, false, false, true});
  comparer.PodSeen({{"default", "out", "1"}, Shape(), "a", false, false, false, true});
  See("ours", Shape("rudderfish"));
  See("ours", Shape("rudderfish"), "a");
  See("listed", Shape(), "a");
  Flush();
  EXPECT_TRUE(list.rows.empty());
}

TEST_F(PlacementComparerTest, WhatCameOfItIsToldOnce) {
  See("web", Shape());
  See("web", Shape(), "a");
  const PodIdentity web{"default", "web", "uid-web"};
  for (int i = 0; i < 2; ++i) comparer.PodSeen({web, Shape(), "a", false, true});
  comparer.PodSeen({web, Shape(), "a", true, true, true});
  comparer.PodGone("default/web");
  comparer.PodFailed(web, "OutOfcpu");
  // Perhaps one that an earlier process has compared: the journal knows.
  comparer.PodFailed({"default", "stranger", "2"}, "Error");
  Flush();
  std::vector<std::string> fates;
  for (const PlacementOutcome& outcome : list.outcomes) fates.push_back(outcome.fate);
  EXPECT_THAT(fates, ::testing::ElementsAre("started", "evicted", "ended", "failed", "failed"));
}

TEST_F(PlacementComparerTest, TheGainIsAskedAgainOfTheStateAsItHasBecome) {
  See("old", Shape("x", 500), "b");
  See("web", Shape());
  See("web", Shape(), "a");
  Flush();
  const double predicted = list.rows.at(0).gain();
  clock.Advance(seconds(31));
  ASSERT_TRUE(comparer.Turn().has_value());
  ASSERT_EQ(list.outcomes.size(), 1u);
  EXPECT_NEAR(list.outcomes[0].measured_gain.value(), predicted, 1e-9) << "nothing has changed";
  EXPECT_GT(list.outcomes[0].measured_change.value(), 0) << "a further node is in use";
}

TEST_F(PlacementComparerTest, InAdviseWhoWaitsForAnotherIsToldOfOneNodeAfterItIsWritten) {
  std::vector<std::string> told;
  comparer.OnAdvice([&](const PlacementComparison& advice) {
    EXPECT_EQ(list.rows.size(), 1u);
    told.push_back(advice.pod.name + " " + advice.policy_node);
  });
  comparer.SetComparing(Comparing::kAdvise);
  See("old", Shape("x", 500), "b");
  for (int i = 0; i < 2; ++i) See("web", Shape());
  clock.Advance(seconds(1));
  ASSERT_TRUE(comparer.Turn().has_value());
  EXPECT_THAT(told, ::testing::ElementsAre("web b"));
}

TEST_F(PlacementComparerTest, InAdvisePodsThatWaitedBeforeAreToldToo) {
  std::vector<std::string> told;
  comparer.OnAdvice([&](const PlacementComparison& advice) {
    told.push_back(advice.pod.name + " " + advice.policy_node);
  });
  See("old", Shape("x", 500), "b");
  See("early", Shape());
  See("ours", Shape("rudderfish"));
  comparer.PodSeen({.id = {"default", "shy", "uid-shy"}, .shape = Shape(), .is_opted_out = true});
  Pass(seconds(1));
  EXPECT_THAT(told, ::testing::IsEmpty());
  comparer.SetComparing(Comparing::kAdvise);
  Pass(seconds(1));
  EXPECT_THAT(told, ::testing::ElementsAre("early b"));
  comparer.SetComparing(Comparing::kShadow);
  Pass(seconds(1));
  comparer.SetComparing(Comparing::kAdvise);
  Pass(seconds(1));
  EXPECT_THAT(told, ::testing::ElementsAre("early b")) << "the choice is the same";
  comparer.SetComparing(Comparing::kShadow);
  See("older", Shape("x", 700), "c");
  comparer.SetComparing(Comparing::kAdvise);
  Pass(seconds(1));
  EXPECT_THAT(told, ::testing::ElementsAre("early b", "early c"));
}

TEST_F(PlacementComparerTest, InAdviseWhoFoundNoNodeIsToldOnceThereIsOne) {
  std::vector<std::string> told;
  comparer.OnAdvice([&](const PlacementComparison& advice) {
    told.push_back(advice.pod.name + " " + advice.policy_node);
  });
  comparer.SetComparing(Comparing::kAdvise);
  for (int i = 0; i < 40; ++i)
    See("other" + std::to_string(i), Shape("default-scheduler", 9000 + i));
  const auto large = Shape("default-scheduler", 2000);
  See("large", large);
  See("large too", large);
  See("gone", large);
  Pass(seconds(1));
  EXPECT_THAT(told, ::testing::IsEmpty());
  comparer.PodGone("default/gone");
  SchedulingNode node = Node("d");
  node.allocatable.cpu_millis = 4000;
  comparer.NodeSeen(node);
  for (int i = 0; i < 5; ++i) Pass(seconds(1));
  EXPECT_THAT(told, ::testing::UnorderedElementsAre("large d", "large too d"));
  EXPECT_EQ(list.rows.size(), 2u);
}

TEST_F(PlacementComparerTest, ACanaryAndItsControlGroupAreComparedBothWays) {
  scheduler.SetShare(0.5);
  scheduler.OnChoice([&](const OwnChoice& choice) { comparer.NoteOwnChoice(choice); });
  See("old", Shape("x", 500), "b");
  for (int i = 0; i < 20; ++i) See("p" + std::to_string(i), Shape("rudderfish", 10));
  ASSERT_TRUE(scheduler.Turn().has_value());
  EXPECT_EQ(scheduler.UntilDue(), Duration::zero());
  scheduler.TellChoices();
  Flush();
  ASSERT_EQ(list.rows.size(), 20u);
  int canaries = 0;
  for (const PlacementComparison& row : list.rows) {
    const bool is_canary = row.group == ComparisonGroup::kCanary;
    canaries += is_canary ? 1 : 0;
    EXPECT_EQ(row.node, is_canary ? row.policy_node : row.baseline_node);
    EXPECT_EQ(row.policy_node, "b");
    EXPECT_EQ(bindings.asked.at(row.pod.name), row.node);
  }
  EXPECT_GT(canaries, 3);
  EXPECT_LT(canaries, 17);
  for (const PlacementRow& row : journal.rows())
    EXPECT_TRUE(row.policy == "most-allocated" || row.policy == "kube-default");
}

TEST_F(PlacementComparerTest, APodWhoseBindingIsRefusedIsMeasuredOnceItIsBound) {
  scheduler.SetShare(0.999);
  scheduler.OnChoice([&](const OwnChoice& choice) { comparer.NoteOwnChoice(choice); });
  See("web", Shape("rudderfish"));
  Choose(100, BindingOutcome::kRefused);
  Flush();
  EXPECT_GT(list.rows.size(), 5u);
  EXPECT_TRUE(list.outcomes.empty()) << "nothing was carried out";
  Choose(11, BindingOutcome::kBound);
  See("web", Shape("rudderfish"), bindings.asked.at("web"));
  Choose(60, BindingOutcome::kBound);
  Flush();
  ASSERT_EQ(list.outcomes.size(), 1u);
  EXPECT_TRUE(list.outcomes[0].measured_change.has_value());
}

TEST_F(PlacementComparerTest, AChoiceThatSomebodyElseForestalledSaysNothingOfTheCanary) {
  scheduler.SetShare(0.999);
  scheduler.OnChoice([&](const OwnChoice& choice) { comparer.NoteOwnChoice(choice); });
  See("web", Shape("rudderfish"));
  Choose(1, BindingOutcome::kConflict);
  See("web", Shape("rudderfish"), bindings.asked.at("web") == "a" ? "b" : "a");
  Choose(60, BindingOutcome::kBound);
  Flush();
  ASSERT_EQ(list.outcomes.size(), 1u);
  EXPECT_EQ(list.outcomes[0].fate, "elsewhere");
}

// Classes of pods that are gone cause a rebuild of the tables, with other ids.
TEST_F(PlacementComparerTest, ADifferenceIsOfThePodThatWasAskedAboutWhenTheTablesAreRebuilt) {
  See("big", Shape("x", 950), "a");
  clock.Advance(seconds(1));
  const int64_t rebuilds = scheduler.tables().rebuilds();
  for (int i = 0; scheduler.tables().rebuilds() < rebuilds + 2; ++i) {
    ASSERT_LT(i, 2000);
    const std::string name = "p" + std::to_string(i);
    const auto shape = Shape("x", 100 + i);
    shape->node_selector = {{"kubernetes.io/hostname", "a"}};
    See(name, shape);
    See(name, shape, "a");
    comparer.PodGone("default/" + name);
    Flush();
    ASSERT_EQ(list.rows.back().reason, "a: Insufficient cpu") << i;
    clock.Advance(seconds(1));
  }
}

class LookaheadComparerTest : public PlacementComparerTest {
 protected:
  LookaheadComparerTest() : PlacementComparerTest({.policy = "lookahead"}) {
    SchedulingNode fast = Node("a");
    fast.labels.insert(fast.labels.begin(), {"disk", "fast"});  // In their order.
    comparer.NodeSeen(fast);
  }
  static std::shared_ptr<PodClass> Whole(const std::string& asks) {
    auto shape = Shape(asks, 1000);
    shape->node_selector = {{"disk", "fast"}};
    return shape;
  }
};

// Alone a pod is as well off on any node; the one behind it needs a.
TEST_F(LookaheadComparerTest, AnothersChoiceIsJudgedWithItsQueueInMind) {
  for (const bool waits : {false, true}) {
    if (waits) See("whole", Whole("default-scheduler"));
    See("others", Whole("another"));  // Waits for somebody else.
    See("small", Shape("default-scheduler", 500));
    See("small", Shape("default-scheduler", 500), "a");
    Flush();
    EXPECT_EQ(list.rows.back().policy_node == "a", !waits);
    comparer.PodGone("default/small");
  }
}

TEST_F(LookaheadComparerTest, AChoiceOfOursIsToldWithTheQueueItHad) {
  scheduler.SetShare(0.5);
  std::vector<size_t> behind;
  scheduler.OnChoice([&](const OwnChoice& choice) {
    behind.push_back(choice.queue.size() - 1);
    comparer.NoteOwnChoice(choice);
  });
  // "uid-p0" is in the canary, "uid-p2" in the control group.
  ASSERT_TRUE(IsInShare("uid-p0", 0.5) && !IsInShare("uid-p2", 0.5));
  for (const char* name : {"p0", "p2"}) See(name, Shape("rudderfish", 500));
  See("whole", Whole("rudderfish"));
  ASSERT_TRUE(scheduler.Turn().has_value());
  EXPECT_NE(bindings.asked.at("p0"), "a");
  scheduler.TellChoices();
  Flush();
  EXPECT_EQ(behind.at(0), 2u);
  EXPECT_EQ(list.rows.at(0).group, ComparisonGroup::kCanary);
  EXPECT_EQ(list.rows.at(0).policy_node, bindings.asked.at("p0"));
  // What the policy would have done in the control group's place it says of the same queue.
  EXPECT_EQ(behind.at(1), 1u);
  EXPECT_EQ(list.rows.at(1).group, ComparisonGroup::kControl);
  EXPECT_NE(list.rows.at(1).policy_node, "a");
}

TEST_F(PlacementComparerTest, AChoiceIsComparedAsTheClusterWasWhenItWasMade) {
  scheduler.OnChoice([&](const OwnChoice& choice) { comparer.NoteOwnChoice(choice); });
  for (const char* name : {"p0", "p1", "p2"}) See(name, Shape("rudderfish", 600));
  ASSERT_TRUE(scheduler.Turn().has_value());
  // Seen on its node before anybody was told, and another one gone.
  See("p0", Shape("rudderfish", 600), bindings.asked.at("p0"));
  comparer.PodGone("default/p1");
  scheduler.TellChoices();
  scheduler.TellChoices();
  Flush();
  ASSERT_EQ(list.rows.size(), 2u);
  EXPECT_EQ(list.rows[0].pod.name, "p0");
  EXPECT_EQ(list.rows[0].feasible, 3);
  EXPECT_EQ(list.rows[1].pod.name, "p2");
  EXPECT_EQ(list.rows[1].feasible, 2);  // Without p1, which is gone.
  EXPECT_EQ(scheduler.tables().pod_count(), 2);
}

TEST_F(PlacementComparerTest, WhyAPodWaitsIsGroupedByReasonInKubeSchedulersWords) {
  See("full", Shape("x", 950), "a");
  SchedulingNode cordoned = Node("b");
  cordoned.unschedulable = true;
  comparer.NodeSeen(cordoned);
  See("big", Shape("default-scheduler", 2000));
  const PendingStory story = comparer.Explain("default/big").value();
  EXPECT_EQ(story.message,
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.");
  ASSERT_EQ(story.groups.size(), 2u);
  EXPECT_EQ(story.groups[0].reason, "Insufficient cpu");
  EXPECT_THAT(story.groups[0].nodes, ::testing::ElementsAre("a", "c"));
  EXPECT_EQ(story.groups[1].reason, "node(s) were unschedulable");
  EXPECT_FALSE(comparer.Explain("default/nobody").has_value());
  auto urgent = std::make_shared<PodClass>(*Shape("rudderfish", 600));
  urgent->priority = 10;
  See("urgent", urgent);
  for (const char* node : {"b", "c"}) See(std::string("lower-") + node, Shape("x", 500), node);
  EXPECT_EQ(comparer.Explain("default/urgent")->message,
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
            "preemption: rudderfish does not preempt, and pods of lower priority are in the way "
            "on 2/3 nodes.");
  auto others = std::make_shared<PodClass>(*urgent);
  others->scheduler = "default-scheduler";
  See("others", others);
  EXPECT_EQ(comparer.Explain("default/others")->message,
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.");
  for (const char* pod : {"lower-b", "lower-c"}) comparer.PodGone(std::string("default/") + pod);
  See("small", Shape());
  EXPECT_EQ(comparer.Explain("default/small")->choice, "c");
}

TEST_F(PlacementComparerTest, APodWithANominatedNodeIsComparedAndOurPolicyWouldTakeThatNode) {
  See("old", Shape("x", 500), "b");  // most-allocated would choose b.
  comparer.PodSeen({.id = {"default", "web", "uid-web"}, .shape = Shape(), .nominated = "c"});
  EXPECT_EQ(comparer.Explain("default/web")->choice, "c");
  See("web", Shape(), "c");
  Flush();
  ASSERT_EQ(list.rows.size(), 1u);
  EXPECT_EQ(list.rows[0].rules, RulesVerdict::kEqual);
  EXPECT_EQ(list.rows[0].policy_node, "c");
  EXPECT_EQ(list.rows[0].gain(), 0);
}

}  // namespace
}  // namespace rudderfish
