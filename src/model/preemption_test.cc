// SPDX-License-Identifier: Apache-2.0
#include "model/preemption.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace rudderfish {
namespace {

constexpr char kHost[] = "kubernetes.io/hostname";

LabelSelector AppIs(const std::string& app) {
  return {{{"app", LabelRequirement::Operator::kIn, {app}}}};
}

// Nodes a, b and c of 1000m, three pods and two GPUs each.
class PreemptionTest : public ::testing::Test {
 protected:
  PreemptionTest() {
    std::vector<SchedulingNode> nodes(3);
    for (size_t n = 0; n < nodes.size(); ++n) {
      nodes[n].name = std::string(1, static_cast<char>('a' + n));
      nodes[n].labels = {{kHost, nodes[n].name}};
      nodes[n].allocatable = {1000, 1000};
      nodes[n].pods_max = 3;
      nodes[n].scalars = {{"nvidia.com/gpu", 2}};
    }
    rules.Reset(std::move(nodes), {});
  }

  static PodClass Pod(int64_t priority, int64_t cpu_millis = 0) {
    PodClass pod;
    pod.object_namespace = "default";
    pod.priority = priority;
    pod.amounts.requests = pod.amounts.held = {cpu_millis, 0};
    return pod;
  }
  void Put(const PodClass& pod, NodeId node, PodLife life = PodLife::kServing) {
    rules.Assume(rules.RegisterPlaced(std::make_shared<PodClass>(pod)), node, life);
  }
  int CountFor(const PodClass& pod) {
    const PodClassId id = rules.Register(std::make_shared<PodClass>(pod));
    Feasibility feasibility;
    rules.Filter(id, &feasibility);
    return CountPreemptionNodes(rules, id, feasibility);
  }

  SchedulingRules rules;
};

TEST_F(PreemptionTest, PodsOfLowerPriorityAreInTheWayWhereTheirRoomWouldDo) {
  Put(Pod(0, 700), 0);
  Put(Pod(5, 700), 1);
  Put(Pod(0, 500), 2);
  Put(Pod(9, 500), 2);
  EXPECT_EQ(CountFor(Pod(5, 600)), 1);
  EXPECT_EQ(CountFor(Pod(6, 600)), 2);
  EXPECT_EQ(CountFor(Pod(6, 500)), 3);
  EXPECT_EQ(CountFor(Pod(0, 600)), 0);
  EXPECT_EQ(CountFor(Pod(6, 1001)), 0);  // More than any node has.
}

TEST_F(PreemptionTest, NoPodIsInTheWayOfAPodThatNeverPreempts) {
  Put(Pod(0, 700), 0);
  PodClass pod = Pod(5, 600);
  EXPECT_EQ(CountFor(pod), 1);
  pod.may_preempt = false;
  EXPECT_EQ(CountFor(pod), 0);
}

TEST_F(PreemptionTest, AnyResourceThatIsShortAndThePlacesOfPodsCount) {
  PodClass holder = Pod(0);
  holder.amounts.scalars = {{"nvidia.com/gpu", 2}};
  Put(holder, 0);
  holder.priority = 7;
  Put(holder, 1);
  PodClass pod = Pod(5);
  pod.amounts.scalars = {{"nvidia.com/gpu", 1}};
  EXPECT_EQ(CountFor(pod), 1);
  for (int i = 0; i < 3; ++i) Put(Pod(1), 2);
  EXPECT_EQ(CountFor(Pod(5)), 1);
}

TEST_F(PreemptionTest, PodsThatAreGoneAreNotInTheWay) {
  const PodClass low = Pod(0, 700);
  Put(low, 0);
  EXPECT_EQ(CountFor(Pod(5, 600)), 1);
  rules.Forget(rules.RegisterPlaced(std::make_shared<PodClass>(low)), 0);
  Put(Pod(9, 700), 0);
  EXPECT_EQ(CountFor(Pod(5, 600)), 0);
}

TEST_F(PreemptionTest, ARefusalThatNoEvictionEndsIsNotCounted) {
  Put(Pod(0, 700), 0);
  PodClass pod = Pod(5, 600);
  pod.node_selector = {{kHost, "elsewhere"}};
  EXPECT_EQ(CountFor(pod), 0);
}

TEST_F(PreemptionTest, WhoHoldsAHostPortIsInItsWay) {
  PodClass holder = Pod(0);
  holder.host_ports = {{"0.0.0.0", "TCP", 80}};
  Put(holder, 0);
  holder.priority = 9;
  Put(holder, 1);
  Put(Pod(0), 1);
  PodClass pod = Pod(5);
  pod.host_ports = {{"127.0.0.1", "TCP", 80}};
  EXPECT_EQ(CountFor(pod), 1);
}

TEST_F(PreemptionTest, WhoUsesAnExclusiveClaimIsInItsWay) {
  PodClass user = Pod(0);
  user.claims = {"data"};
  Put(user, 1);
  Put(Pod(0), 0);
  PodClass pod = Pod(5);
  pod.claims = pod.exclusive_claims = {"data"};
  EXPECT_EQ(CountFor(pod), 1);
}

TEST_F(PreemptionTest, WhoUsesADriverThatCanAttachNoMoreIsInItsWay) {
  std::vector<SchedulingNode> nodes;
  for (NodeId n = 0; n < 3; ++n) {
    nodes.push_back(rules.nodes().node(n));
    nodes.back().volume_limits = {{"disk.example.com", 1}};
  }
  rules.Reset(std::move(nodes), {});
  PodClass user = Pod(0);
  for (NodeId n = 0; n < 3; ++n) {
    user.attached = {{"disk.example.com", "v" + std::to_string(n)}};
    user.priority = n == 1 ? 9 : 0;
    Put(user, n);
  }
  PodClass pod = Pod(5);
  pod.attached = {{"disk.example.com", "another"}};
  EXPECT_EQ(CountFor(pod), 2);
}

TEST_F(PreemptionTest, WhoIsRepelledOrRepelsIsInItsWay) {
  PodClass web = Pod(0);
  web.labels = {{"app", "web"}};
  Put(web, 0);
  Put(Pod(0), 1);
  PodClass shy = Pod(5);
  shy.forbidden_pods = {{{"default"}, {}, AppIs("web"), kHost}};
  EXPECT_EQ(CountFor(shy), 1);
  PodClass guard = Pod(1);
  guard.forbidden_pods = {{{"default"}, {}, AppIs("db"), kHost}};
  Put(guard, 2);
  PodClass db = Pod(5);
  db.labels = {{"app", "db"}};
  EXPECT_EQ(CountFor(db), 1);
  guard.priority = 6;
  Put(guard, 1);
  EXPECT_EQ(CountFor(db), 1);
}

TEST_F(PreemptionTest, WhoIsCountedForSpreadIsInItsWayUnlessItEnds) {
  PodClass web = Pod(0);
  web.labels = {{"app", "web"}};
  Put(web, 0);
  Put(web, 1, PodLife::kTerminating);
  PodClass pod = Pod(5, 600);
  pod.labels = web.labels;
  pod.spread = {{kHost, 1, SpreadConstraint::When::kDoNotSchedule, AppIs("web")}};
  Put(Pod(9, 600), 1);
  Put(Pod(9, 600), 2);
  EXPECT_EQ(CountFor(pod), 1);
}

TEST_F(PreemptionTest, IsSaidAsItFollowsKubeSchedulersWords) {
  Put(Pod(0, 700), 0);
  Put(Pod(0, 700), 1);
  Put(Pod(7, 700), 2);
  const PodClassId id = rules.Register(std::make_shared<PodClass>(Pod(5, 600)));
  Feasibility feasibility;
  rules.Filter(id, &feasibility);
  EXPECT_EQ(rules.Message(id, feasibility) + PreemptionText(rules, id, feasibility, "rudderfish"),
            "0/3 nodes are available: 3 Insufficient cpu. preemption: rudderfish does not preempt, "
            "and pods of lower priority are in the way on 2/3 nodes.");
  const PodClassId low = rules.Register(std::make_shared<PodClass>(Pod(0, 600)));
  rules.Filter(low, &feasibility);
  EXPECT_EQ(PreemptionText(rules, low, feasibility, "rudderfish"), "");
}

}  // namespace
}  // namespace rudderfish
