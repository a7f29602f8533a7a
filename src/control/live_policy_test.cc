// SPDX-License-Identifier: Apache-2.0
#include "control/live_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string RefusalOf(const LivePolicyOptions& options) {
  const Result<LivePolicy> policy = LivePolicy::Load(options);
  return policy ? "none" : policy.error().message;
}

// Three nodes, of which one is in use; a pod of a quarter of a node.
class LivePolicyTest : public ::testing::Test {
 protected:
  LivePolicyTest() {
    std::vector<SchedulingNode> nodes;
    for (const char* name : {"a", "b", "c"}) {
      SchedulingNode& node = nodes.emplace_back();
      node.name = name;
      node.allocatable = {1000, 1000};
      node.pods_max = 10;
    }
    rules.Reset(std::move(nodes), {});
    pod = rules.Register(Shape());
    rules.Assume(pod, 1);
  }

  static std::shared_ptr<const PodClass> Shape() {
    auto shape = std::make_shared<PodClass>();
    shape->amounts.requests = shape->amounts.held = {250, 250};
    shape->amounts.held_assumed = shape->amounts.scored_assumed = {250, 250};
    return shape;
  }

  // Rather a node of this label.
  static PreferredNodes Rather(const std::string& value, int64_t weight) {
    return {{{{"disk", NodeRequirement::Operator::kIn, {value}}}}, weight};
  }
  void Label(NodeId node, const std::string& value) {
    SchedulingNode said = rules.nodes().node(node);
    said.labels = {{"disk", value}};
    rules.ReplaceNode(node, said);
  }

  std::vector<double> ScoresBy(const LivePolicyOptions& options) {
    const Result<LivePolicy> policy = LivePolicy::Load(options);
    CHECK(policy.has_value());
    scorer = policy->NewScorer();
    Feasibility feasibility;
    rules.Filter(pod, &feasibility);
    std::vector<double> scores;
    scorer->Score(rules, pod, feasibility, &scores);
    return scores;
  }

  SchedulingRules rules;
  PodClassId pod = kNone;
  std::unique_ptr<NodeScorer> scorer;
};

TEST_F(LivePolicyTest, GreedyServesTheObjective) {
  const auto balance = ScoresBy({.policy = "greedy"});
  EXPECT_GT(balance[0], balance[1]);
  EXPECT_EQ(balance[0], balance[2]);
  const auto packed =
      ScoresBy({.policy = "greedy", .objective = Objective::Of(ObjectiveTerm::kUtilisation)});
  EXPECT_GT(packed[1], packed[0]);
  EXPECT_EQ(scorer->scored_by(), "greedy");
}

TEST_F(LivePolicyTest, LatencyIsLeastOnTheNearestNodeAndBeyondTheHardLimitThereIsNone) {
  for (NodeId node = 0; node < 3; ++node) {
    SchedulingNode said = rules.nodes().node(node);
    said.user_ms = 30 - 10 * node;
    rules.ReplaceNode(node, said);
  }
  const Objective latency = Objective::Of(ObjectiveTerm::kLatency);
  auto scores = ScoresBy({.policy = "greedy", .objective = latency});
  EXPECT_GT(scores[2], scores[1]);
  EXPECT_GT(scores[1], scores[0]);
  auto limited = std::make_shared<PodClass>(*Shape());
  limited->latency_limits = {.soft_ms = 20, .hard_ms = 25};
  pod = rules.Register(limited);
  scores = ScoresBy({.policy = "greedy", .objective = latency});
  EXPECT_EQ(scores[2], scores[1]);
  EXPECT_GT(scores[1], scores[0]);
}

TEST_F(LivePolicyTest, AMixCountsScoresByWeight) {
  const auto most = ScoresBy({.policy = "mixed:most-allocated=1"});
  EXPECT_GT(most[1], most[0]);
  const auto least = ScoresBy({.policy = "mixed:most-allocated=1,least-allocated=3"});
  EXPECT_GT(least[0], least[1]);
}

TEST_F(LivePolicyTest, AMixWithKubeDefaultTellsNodesApartThatAreEqualButForWhatThePodPrefers) {
  Label(2, "fast");
  auto picky = std::make_shared<PodClass>(*Shape());
  picky->preferred_nodes = {Rather("fast", 50)};
  pod = rules.Register(picky);
  const auto greedy = ScoresBy({.policy = "greedy"});
  EXPECT_EQ(greedy[2], greedy[0]);
  for (const char* policy : {"mixed:greedy=1,kube-default=1", "mixed:kube-default=1"}) {
    const auto scores = ScoresBy({.policy = policy});
    EXPECT_GT(scores[2], scores[0]) << policy;
    EXPECT_GT(scores[0], scores[1]) << policy;
  }
  const auto less = ScoresBy({.policy = "mixed:greedy=1,kube-default=-1"});
  EXPECT_LT(less[2], less[0]);
}

TEST_F(LivePolicyTest, KubeDefaultCountsInAMixByWeightAndAsFarAsTheOtherScores) {
  Label(1, "fast");
  auto picky = std::make_shared<PodClass>(*Shape());
  picky->preferred_nodes = {Rather("fast", 100)};
  pod = rules.Register(picky);
  const auto kube = ScoresBy({.policy = "mixed:kube-default=1"});
  EXPECT_EQ(kube[1], 0);
  EXPECT_DOUBLE_EQ(kube[0] + kube[1] + kube[2], -3);  // -1 in the mean.
  const auto greedy = ScoresBy({.policy = "mixed:greedy=1"});
  EXPECT_NEAR(greedy[0] + greedy[1] + greedy[2], -3, 1e-6);
  const auto both = ScoresBy({.policy = "mixed:greedy=1,kube-default=3"});
  for (NodeId n = 0; n < 3; ++n) EXPECT_NEAR(both[n], greedy[n] + 3 * kube[n], 1e-9);
  EXPECT_GT(both[1], both[0]);
}

TEST_F(LivePolicyTest, AMixCountsEveryPreferenceOfKubeSchedulers) {
  SchedulingNode said = rules.nodes().node(0);
  said.taints = {{"busy", "", TaintEffect::kPreferNoSchedule}};
  rules.ReplaceNode(0, said);
  auto scores = ScoresBy({.policy = "mixed:greedy=1,kube-default=1"});
  EXPECT_GT(scores[2], scores[0]);
  const LabelSelector mine{{{"app", LabelRequirement::Operator::kIn, {"web"}}}};
  auto spread = std::make_shared<PodClass>(*Shape());
  spread->labels = {{"app", "web"}};
  spread->default_spread = mine;
  for (NodeId n = 0; n < 3; ++n) {
    said = rules.nodes().node(n);
    said.labels = {{"kubernetes.io/hostname", said.name}};
    said.taints.clear();
    rules.ReplaceNode(n, said);
  }
  auto there = std::make_shared<PodClass>(*Shape());
  there->labels = {{"app", "web"}};
  there->amounts = {};
  auto other = std::make_shared<PodClass>(*there);
  other->labels.clear();
  rules.Assume(rules.Register(there), 2);  // As many pods on both, which take nothing.
  rules.Assume(rules.Register(other), 0);
  pod = rules.Register(spread);
  scores = ScoresBy({.policy = "greedy"});
  EXPECT_EQ(scores[0], scores[2]);
  scores = ScoresBy({.policy = "mixed:greedy=1,kube-default=1"});
  EXPECT_GT(scores[0], scores[2]);
}

TEST_F(LivePolicyTest, RoundRobinTakesTheNextThatMayAndWrapsAround) {
  scorer = LivePolicy::Load({.policy = "round-robin"})->NewScorer();
  std::vector<double> scores;
  Feasibility feasibility;
  const auto next = [&] {
    rules.Filter(pod, &feasibility);
    scorer->Score(rules, pod, feasibility, &scores);
    NodeId best = kNone;
    for (NodeId n = 0; n < 3; ++n) {
      const bool may = feasibility.IsFeasible(n);
      if (may && (best == kNone || scores[n] > scores[best])) best = n;
    }
    return best;
  };
  std::vector<NodeId> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(next());
  EXPECT_THAT(taken, ElementsAre(0, 1, 2, 0));
  for (int i = 0; i < 3; ++i) rules.Assume(pod, 1);  // It is full.
  EXPECT_EQ(next(), 2);
  EXPECT_EQ(next(), 0);
  EXPECT_GT(scores[0], scores[2]);
  EXPECT_EQ(next(), 2);
  for (int i = 0; i < 4; ++i) rules.Assume(pod, 0), rules.Assume(pod, 2);
  EXPECT_EQ(next(), kNone);
  EXPECT_EQ(scorer->scored_by(), "round-robin");
}

TEST_F(LivePolicyTest, ANodeThatTheRulesForbidIsNoCandidate) {
  for (int i = 0; i < 3; ++i) rules.Assume(pod, 1);  // It is full.
  const auto scores =
      ScoresBy({.policy = "greedy", .objective = Objective::Of(ObjectiveTerm::kUtilisation)});
  EXPECT_LT(scores[1], scores[0]);
}

TEST(LivePolicy, WhatIsNotKnownLiveIsRefusedRatherThanGuessed) {
  EXPECT_EQ(RefusalOf({.policy = "greedy"}), "none");
  EXPECT_THAT(RefusalOf({.policy = "greedy", .objective = Objective::Of(ObjectiveTerm::kEnergy)}),
              HasSubstr("the objective is energy, and a live cluster does not say"));
  EXPECT_THAT(RefusalOf({.policy = "mixed:greedy=1,cost=0.2"}), HasSubstr("counts cost"));
  EXPECT_EQ(RefusalOf({.policy = "greedy", .objective = Objective::Of(ObjectiveTerm::kCalls)}),
            "the objective is calls, and a live cluster does not say who calls whom");
  EXPECT_EQ(
      RefusalOf({.policy = "mixed:greedy=1,calls=0.2"}),
      "mixed:greedy=1,calls=0.2 counts calls, and a live cluster does not say who calls whom");
  EXPECT_THAT(RefusalOf({.policy = "mixed:gredy=1"}), HasSubstr("greedy"));
  EXPECT_THAT(RefusalOf({.policy = "round"}),
              HasSubstr("no policy, run folder or checkpoint is called `round`"));
  EXPECT_THAT(RefusalOf({.policy = "round-robbin"}), HasSubstr("did you mean `round-robin`"));
  EXPECT_THAT(RefusalOf({.policy = "mixed:round-robin=1"}), HasSubstr("round-robin"));
  EXPECT_THAT(RefusalOf({.policy = "kube-defalt"}), HasSubstr("did you mean `kube-default`"));
  EXPECT_THAT(RefusalOf({.policy = "lookahead:evaluations=200001"}), HasSubstr("at most"));
  EXPECT_THAT(RefusalOf({.policy = "runs/nowhere"}), HasSubstr("runs/nowhere"));
  EXPECT_EQ(RefusalOf({.policy = "lookahead:depth=4"}), "none");
  EXPECT_THAT(RefusalOf({.policy = "greedy:limits=ignore"}), HasSubstr("for simulations only"));
  EXPECT_THAT(RefusalOf({.policy = "lookahead:depht=4"}), HasSubstr("did you mean `depth`"));
  EXPECT_THAT(RefusalOf({.policy = "lookahead", .objective = Objective::Of(ObjectiveTerm::kCost)}),
              HasSubstr("the objective is cost"));
  for (const char* policy : {"lookahead", "mixed:greedy=1"}) {
    EXPECT_THAT(
        RefusalOf({.policy = policy, .objective = Objective::Of(ObjectiveTerm::kLatency)}),
        HasSubstr(std::string("the objective is latency, and ") + policy + " does not go by"));
  }
}

}  // namespace
}  // namespace rudderfish
