// SPDX-License-Identifier: Apache-2.0
#include "scenario/scaled.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/shipped_scenario.h"

namespace rudderfish {
namespace {

TEST(Scaled, MultipliesNodesThatTakeMovesAndTheMostReplicasOfWorkloadsThatMove) {
  const Scenario scenario = *testing::ShippedScenario("continuum-7x21");
  const Scenario twice = Scaled(scenario, 2);
  EXPECT_EQ(twice.node_count(), 2 * 6 + 1);  // The client's node stays alone.
  EXPECT_EQ(twice.pod_limit(), 2 * 20 + 1);
  for (size_t w = 0; w < scenario.starts.size(); ++w) {
    const bool movable = scenario.catalog->workloads[w].movable;
    EXPECT_EQ(twice.starts[w].replicas.min(), scenario.starts[w].replicas.min());
    EXPECT_EQ(twice.starts[w].replicas.max(),
              scenario.starts[w].replicas.max() * (movable ? 2 : 1));
  }
  EXPECT_EQ(twice.patterns, scenario.patterns);
  EXPECT_EQ(twice.latency_ms, scenario.latency_ms);
}

TEST(Scaled, NamesEveryNodeOnce) {
  const Scenario twice = Scaled(*testing::ShippedScenario("continuum-7x21"), 2);
  EXPECT_EQ(std::set<std::string>(twice.names->nodes.begin(), twice.names->nodes.end()).size(),
            static_cast<size_t>(twice.node_count()));
  EXPECT_EQ(twice.KindsOfNodes().size(), static_cast<size_t>(twice.node_count()));
}

TEST(Scaled, ByOneIsTheScenario) {
  const Scenario scenario = *testing::ShippedScenario("continuum-12x28");
  EXPECT_EQ(ToYaml(Scaled(scenario, 1)), ToYaml(scenario));
}

TEST(Scaled, AChoiceOfReplicasKeepsItsValuesAndGetsTheirMultiples) {
  Scenario scenario = *testing::ShippedScenario("continuum-7x21");
  scenario.starts[1].replicas = Distribution::Choice({1, 3});
  const Scenario thrice = Scaled(scenario, 3);
  EXPECT_EQ(std::vector<double>(thrice.starts[1].replicas.values().begin(),
                                thrice.starts[1].replicas.values().end()),
            (std::vector<double>{1, 3, 3, 9}));
}

}  // namespace
}  // namespace rudderfish
