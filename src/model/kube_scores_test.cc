// SPDX-License-Identifier: Apache-2.0
#include "model/kube_scores.h"

#include <gtest/gtest.h>

#include <memory>

#include "model/inter_pod_affinity.h"
#include "model/pod_compiler.h"
#include "model/topology_spread.h"

namespace rudderfish {
namespace {

constexpr int64_t kGib = 1024 * 1024 * 1024;
constexpr char kZone[] = "topology.kubernetes.io/zone";

SchedulingNode NodeIn(const std::string& name, const std::string& zone) {
  SchedulingNode node;
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name}, {kZone, zone}};
  node.allocatable = {4000, 8 * kGib};
  node.pods_max = 10;
  return node;
}

std::shared_ptr<PodClass> PodOf(const std::string& app) {
  auto pod = std::make_shared<PodClass>();
  pod->object_namespace = "default";
  pod->labels = {{"app", app}};
  const Resources asked{1000, kGib};
  pod->amounts = {asked, 0, {}, asked, asked, asked};
  pod->containers = 1;
  return pod;
}

LabelSelector App(const std::string& app) {
  return {{{"app", LabelRequirement::Operator::kIn, {app}}}};
}

class KubeScoresOf : public ::testing::Test {
 protected:
  std::vector<int64_t> Of(const std::shared_ptr<PodClass>& pod, ScorePlugin plugin) {
    const PodClassId id = rules_.Register(pod);
    rules_.Filter(id, &feasibility_);
    ScoreAsKube(rules_, id, feasibility_, &scores_);
    return scores_.of_plugin[static_cast<int>(plugin)];
  }

  SchedulingRules rules_;
  Feasibility feasibility_;
  KubeScores scores_;
};

TEST(LeastAllocatedOf, IsTheMeanShareThatStaysFreeRoundedDownEach) {
  EXPECT_EQ(LeastAllocatedOf({1000, kGib}, {4000, 8 * kGib}), (75 + 87) / 2);
  EXPECT_EQ(LeastAllocatedOf({5000, kGib}, {4000, 8 * kGib}), 87 / 2);
  EXPECT_EQ(LeastAllocatedOf({1000, kGib}, {4000, 0}), 75);
  EXPECT_EQ(LeastAllocatedOf({1000, kGib}, {0, 0}), 0);
}

TEST(BalancedAllocationOf, SaysByHowMuchThePodEvensTheSharesOut) {
  // From 1/4 and 1/8 to 1/2 and 1/2: from 93 to 100.
  EXPECT_EQ(BalancedAllocationOf({1000, kGib}, {2000, 4 * kGib}, {4000, 8 * kGib}),
            50 + (50 + 100 - 93) / 2);
  EXPECT_EQ(BalancedAllocationOf({0, 0}, {4000, 0}, {4000, 8 * kGib}), 50 + (50 + 50 - 100) / 2);
  EXPECT_EQ(BalancedAllocationOf({0, 0}, {4000, kGib}, {4000, 0}), 75);
}

// kube-scheduler counts 100m and 200Mi for each container that asks nothing, in scores alone.
TEST_F(KubeScoresOf, WhatPodsAreAssumedToTakeCountsUntilTheyAreGone) {
  rules_.Reset({NodeIn("a", "z"), NodeIn("b", "z")}, {});
  auto asks_nothing = PodOf("quiet");
  const Resources assumed{1000, 2 * kGib};
  asks_nothing->amounts = {{}, 0, {}, {}, assumed, assumed};
  const PodClassId quiet = rules_.Register(asks_nothing);
  rules_.Assume(quiet, 0);
  const std::vector<int64_t> one{(50 + 62) / 2, (75 + 87) / 2};
  EXPECT_EQ(Of(PodOf("web"), ScorePlugin::kResourcesFit), one);
  rules_.Forget(quiet, 0);
  const std::vector<int64_t> none{(75 + 87) / 2, (75 + 87) / 2};
  EXPECT_EQ(Of(PodOf("web"), ScorePlugin::kResourcesFit), none);
}

TEST_F(KubeScoresOf, TaintsThatArePreferredNotToBeMetCostTheirShare) {
  std::vector<SchedulingNode> nodes = {NodeIn("a", "x"), NodeIn("b", "x"), NodeIn("c", "x")};
  nodes[1].taints = {{"k", "", TaintEffect::kPreferNoSchedule}};
  nodes[2].taints = {{"k", "", TaintEffect::kPreferNoSchedule},
                     {"l", "", TaintEffect::kPreferNoSchedule}};
  rules_.Reset(std::move(nodes), {});
  EXPECT_EQ(Of(PodOf("web"), ScorePlugin::kTaintToleration), (std::vector<int64_t>{300, 150, 0}));
}

TEST_F(KubeScoresOf, PodsAreSpreadByDefaultOverHostsAndZones) {
  rules_.Reset({NodeIn("a", "x"), NodeIn("b", "x"), NodeIn("c", "y")}, {});
  auto pod = PodOf("web");
  pod->default_spread = App("web");
  rules_.Assume(rules_.Register(pod), 0);
  // Hosts: ln 5 a pod and 2; zones: ln 4 a pod and 4. 9, 7 and 6 are what comes of it.
  EXPECT_EQ(Of(pod, ScorePlugin::kTopologySpread),
            (std::vector<int64_t>{2 * (100 * 6 / 9), 2 * (100 * 8 / 9), 200}));
}

TEST_F(KubeScoresOf, PodsThatRunDrawOthersByTheirAffinityAndWeights) {
  rules_.Reset({NodeIn("a", "x"), NodeIn("b", "x"), NodeIn("c", "y")}, {});
  auto drawn = PodOf("web"), runs = PodOf("db");
  runs->preferred_pods = {{{{"default"}, {}, App("web"), kZone}, 30},
                          {{{"default"}, {}, App("web"), "kubernetes.io/hostname"}, -10}};
  rules_.Assume(rules_.Register(runs), 0);
  EXPECT_EQ(Of(drawn, ScorePlugin::kInterPodAffinity),
            (std::vector<int64_t>{2 * (100 * 20 / 30), 200, 0}));
}

TEST_F(KubeScoresOf, ImagesCountByTheirSizeAndTheShareOfNodesThatHaveThem) {
  std::vector<SchedulingNode> nodes = {NodeIn("a", "x"), NodeIn("b", "x")};
  nodes[0].images = {{"app:1", 1046 * 1024 * 1024}};
  rules_.Reset(std::move(nodes), {});
  auto pod = PodOf("web");
  pod->images = {"app:1"};
  EXPECT_EQ(Of(pod, ScorePlugin::kImageLocality),
            (std::vector<int64_t>{100 * (523 - 23) / (1000 - 23), 0}));
}

}  // namespace
}  // namespace rudderfish
