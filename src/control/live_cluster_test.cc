// SPDX-License-Identifier: Apache-2.0
#include "control/live_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;

SchedulingNode LiveNode(const std::string& name, const std::string& type = "small",
                        int64_t gpus = 0) {
  SchedulingNode node;
  node.name = name;
  node.labels = {{std::string(kNodeTypeLabel), type}};
  node.allocatable = {1000, 1000};
  node.pods_max = 10;
  if (gpus > 0) node.scalars = {{"nvidia.com/gpu", gpus}};
  return node;
}

NodeTable::Holding Held(int64_t amount) {
  return {.held = {amount, amount}, .assumed = {amount, amount}};
}

PlacementFacts TwoTypes() {
  return {.types = {"small", "large"}, .laws = {.costs = {{10, 20, 1}, {50, 100, 4}}}};
}

double CostOf(ObjectiveTerm term, const ClusterTerms& terms) {
  return Objective::Of(term).Cost(terms);
}

TEST(LiveCluster, BalanceIsTwiceTheMeanDeviationOfTheNodesUtilisation) {
  NodeTable nodes;
  nodes.Reset({LiveNode("a"), LiveNode("b")});
  nodes.Take(Held(500), 0);
  LiveCluster live({}, std::string(kNodeTypeLabel));
  live.Read(nodes);
  // Utilisations 0.5 and 0, of both resources: their deviation is 0.25.
  EXPECT_NEAR(CostOf(ObjectiveTerm::kBalance, live.Now()), 0.5, 1e-12);
  const PodChange there{.node = 1, .pods = 1, .held = {500, 500}};
  EXPECT_NEAR(CostOf(ObjectiveTerm::kBalance, live.After({&there, 1})), 0, 1e-9);
  const PodChange there_and_back[] = {{.node = 0, .pods = -1, .held = {300, 200}},
                                      {.node = 0, .pods = 1, .held = {300, 200}}};
  EXPECT_EQ(CostOf(ObjectiveTerm::kBalance, live.After(there_and_back)),
            CostOf(ObjectiveTerm::kBalance, live.Now()));
}

TEST(LiveCluster, UtilisationIsOfTheNodesThatHavePods) {
  NodeTable nodes;
  nodes.Reset({LiveNode("a"), LiveNode("b")});
  nodes.Take(Held(500), 0);
  LiveCluster live({}, std::string(kNodeTypeLabel));
  live.Read(nodes);
  const PodChange same{.node = 0, .pods = 1, .held = {100, 100}};
  const PodChange other{.node = 1, .pods = 1, .held = {100, 100}};
  EXPECT_NEAR(CostOf(ObjectiveTerm::kUtilisation, live.After({&same, 1})), 0.4, 1e-12);
  EXPECT_NEAR(CostOf(ObjectiveTerm::kUtilisation, live.After({&other, 1})), 0.7, 1e-12);
}

// What was read step by step is what is read at once.
TEST(LiveCluster, FollowsPodsAndNodesThatChange) {
  NodeTable nodes;
  nodes.Reset({LiveNode("a"), LiveNode("b", "large"), LiveNode("c", "large", 2)});
  LiveCluster live(TwoTypes(), std::string(kNodeTypeLabel));
  live.Read(nodes);
  EXPECT_EQ(live.Now().active_nodes, 0);
  NodeTable::Holding pod = Held(250);
  pod.scalars = {{nodes.ResourceRow("nvidia.com/gpu"), 1}};
  nodes.Take(pod, 2);
  nodes.Take(Held(100), 0);
  live.Read(nodes);
  EXPECT_EQ(live.Now().active_nodes, 2);
  EXPECT_DOUBLE_EQ(live.Now().price_per_hour, 5);
  EXPECT_DOUBLE_EQ(live.Now().utilisation[2], 0.5);
  const PodChange gpu_pod{.node = 2, .pods = 1, .held = {100, 100}, .devices = 1};
  EXPECT_DOUBLE_EQ(live.After({&gpu_pod, 1}).utilisation[2], 1);
  SchedulingNode grown = LiveNode("a", "large");
  grown.allocatable = {2000, 2000};
  nodes.Replace(0, grown);
  live.Read(nodes);
  LiveCluster fresh(TwoTypes(), std::string(kNodeTypeLabel));
  fresh.Read(nodes);
  for (const auto term : {ObjectiveTerm::kBalance, ObjectiveTerm::kEnergy, ObjectiveTerm::kCost})
    EXPECT_EQ(CostOf(term, live.Now()), CostOf(term, fresh.Now()));
  EXPECT_DOUBLE_EQ(live.Now().price_per_hour, 8);
}

TEST(LiveCluster, HowFarTheUsersAreIsWhatNodesSay) {
  NodeTable nodes;
  SchedulingNode near = LiveNode("a"), far = LiveNode("b");
  near.user_ms = 10;
  far.user_ms = 40;
  nodes.Reset({near, far, LiveNode("unknown")});
  LiveCluster live({}, std::string(kNodeTypeLabel));
  live.Read(nodes);
  const auto latencies = [&](const LatencyLimits& limits) {
    std::vector<double> all;
    for (NodeId node = 0; node < 3; ++node) {
      const PodChange more{.node = node, .held = {1, 1}};
      all.push_back(CostOf(ObjectiveTerm::kLatency, live.After({&more, 1}, limits)));
    }
    return all;
  };
  const LatencyLimits limits{.soft_ms = 20, .hard_ms = 30}, soft{.soft_ms = 20};
  EXPECT_THAT(latencies({}), ElementsAre(0.25, 1, 1));
  EXPECT_THAT(latencies(limits), ElementsAre(0, 1, 1));
  EXPECT_THAT(latencies(soft), ElementsAre(0, 0.5, 0.5));
  nodes.Take(Held(100), 1);  // Where it is, it was not for us to say.
  far.user_ms = 30;
  nodes.Replace(1, far);
  live.Read(nodes);
  EXPECT_EQ(CostOf(ObjectiveTerm::kLatency, live.Now()), 0);
  EXPECT_THAT(latencies(limits), ElementsAre(0, 0.25, 0.5));
}

TEST(LiveCluster, NodesOfNoKnownTypeCountNowhereWhereTypesMatter) {
  NodeTable nodes;
  nodes.Reset({LiveNode("a"), LiveNode("b", "huge"), LiveNode("c", "large"),
               LiveNode("d", "large", kMaxDevices + 1)});
  nodes.Take(Held(500), 1);
  LiveCluster live(TwoTypes(), std::string(kNodeTypeLabel));
  live.Read(nodes);
  EXPECT_THAT(live.CountTypes(), ElementsAre(1, 1));
  EXPECT_EQ(live.CountOutside(), 2);
  EXPECT_EQ(live.Now().ready_nodes, 2);
  EXPECT_EQ(live.Now().active_nodes, 0);
  PlacementSpace space;
  const PlacementTask task(Objective::Of(ObjectiveTerm::kCost));
  task.Space(live.Ask({.requests = {100, 100}}), {}, &space);
  EXPECT_THAT(space.candidate_of, ElementsAre(0, kNone, 1, kNone));
  // All draw and cost the same: no label is needed.
  LiveCluster alike({.types = {"small", "large"}, .laws = {.costs = {{1, 2}, {1, 2}}}}, "none");
  alike.Read(nodes);
  EXPECT_EQ(alike.CountOutside(), 1);
}

}  // namespace
}  // namespace rudderfish
