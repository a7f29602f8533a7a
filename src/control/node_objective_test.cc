// SPDX-License-Identifier: Apache-2.0
#include "control/node_objective.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

SchedulingNode ObjectiveNode(const std::string& name, int64_t cpu_millis) {
  SchedulingNode node;
  node.name = name;
  node.allocatable = {cpu_millis, 1000};
  node.pods_max = 10;
  return node;
}

NodeTable TwoNodes() {
  NodeTable nodes;
  nodes.Reset({ObjectiveNode("a", 1000), ObjectiveNode("b", 1000)});
  return nodes;
}

TEST(NodeObjective, BalanceIsTwiceTheMeanDeviationOfTheNodesUtilisation) {
  NodeTable nodes = TwoNodes();
  nodes.Take({.held = {500, 500}, .assumed = {500, 500}}, 0);
  NodeObjective objective(Objective::Of(ObjectiveTerm::kBalance));
  objective.Read(nodes);
  // Utilisations 0.5 and 0, of both resources: their deviation is 0.25.
  EXPECT_NEAR(objective.Cost(objective.Now()), 0.5, 1e-12);
  const PodChange there{.node = 1, .pods = 1, .held = {500, 500}};
  EXPECT_NEAR(objective.Cost(objective.After({&there, 1})), 0, 1e-9);
}

TEST(NodeObjective, UtilisationIsOfTheNodesThatHavePods) {
  NodeTable nodes = TwoNodes();
  nodes.Take({.held = {500, 500}, .assumed = {500, 500}}, 0);
  NodeObjective objective(Objective::Of(ObjectiveTerm::kUtilisation));
  objective.Read(nodes);
  EXPECT_NEAR(objective.Cost(objective.Now()), 0.5, 1e-12);
  const PodChange same{.node = 0, .pods = 1, .held = {100, 100}};
  const PodChange other{.node = 1, .pods = 1, .held = {100, 100}};
  EXPECT_NEAR(objective.Cost(objective.After({&same, 1})), 0.4, 1e-12);
  EXPECT_NEAR(objective.Cost(objective.After({&other, 1})), 0.7, 1e-12);
}

TEST(NodeObjective, AMoveAndItsInverseAreNothing) {
  NodeTable nodes = TwoNodes();
  nodes.Take({.held = {300, 200}, .assumed = {300, 200}}, 0);
  NodeObjective objective(Objective::Of(ObjectiveTerm::kBalance));
  objective.Read(nodes);
  const PodChange there_and_back[] = {{.node = 0, .pods = -1, .held = {300, 200}},
                                      {.node = 0, .pods = 1, .held = {300, 200}}};
  EXPECT_NEAR(objective.Cost(objective.After(there_and_back)), objective.Cost(objective.Now()),
              1e-12);
}

TEST(NodeObjective, TermsThatALiveClusterDoesNotTellAreKnownAsSuch) {
  EXPECT_TRUE(IsKnownLive(ObjectiveTerm::kBalance));
  EXPECT_TRUE(IsKnownLive(ObjectiveTerm::kUtilisation));
  EXPECT_FALSE(IsKnownLive(ObjectiveTerm::kCost));
  EXPECT_FALSE(IsKnownLive(ObjectiveTerm::kLatency));
}

}  // namespace
}  // namespace rudderfish
