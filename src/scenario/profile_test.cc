// SPDX-License-Identifier: Apache-2.0
#include "scenario/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenario/start_states.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using rudderfish::testing::ContinuumWorld;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

State World(uint64_t seed) {
  Rng rng(seed, 0);
  State state = ContinuumWorld({}, &rng);
  auto calls = std::make_shared<CallGraph>(*state.calls);
  calls->name = "pattern";
  state.calls = calls;
  return state;
}

void ExpectSameState(const State& a, const State& b) {
  EXPECT_EQ(a.names->nodes, b.names->nodes);
  EXPECT_EQ(a.nodes.kind, b.nodes.kind);
  EXPECT_EQ(a.nodes.free, b.nodes.free);
  EXPECT_EQ(a.nodes.allocatable, b.nodes.allocatable);
  EXPECT_EQ(a.pods.workload, b.pods.workload);
  EXPECT_EQ(a.pods.node, b.pods.node);
  EXPECT_EQ(a.network.latency_ms, b.network.latency_ms);
  EXPECT_EQ(a.calls->execution_ms, b.calls->execution_ms);
  for (WorkloadId w = 0; w < a.catalog->workload_count(); ++w) {
    EXPECT_EQ(a.catalog->workloads[w].requests, b.catalog->workloads[w].requests);
    EXPECT_EQ(a.catalog->workloads[w].name, b.catalog->workloads[w].name);
  }
}

// The scenario as its readers get it, and the first of its start states.
State StartedFrom(const Profile& profile) {
  const auto scenario = ParseScenario(ToYaml(profile.scenario), "profile.yaml");
  EXPECT_TRUE(scenario) << scenario.error().message;
  const std::string line = StartStateLine(profile.scenario, profile.starts.front());
  const auto states = ParseStartStates(line, "starts.jsonl", *scenario);
  EXPECT_TRUE(states) << states.error().message;
  return states->front().state;
}

TEST(Profile, TheSimulatorStartedFromItHasTheClusterAsItWas) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const State state = World(seed);
    const auto profile = MakeProfile({state}, "seen", "physical", ProfileNames::kKept);
    ASSERT_TRUE(profile) << profile.error().message;
    ExpectSameState(StartedFrom(*profile), state);
  }
}

TEST(Profile, KeepsTheNamesOfNodes) {
  State state = World(1);
  auto names = std::make_shared<Names>(*state.names);
  names->nodes[0] = "gke-a-7f3c";
  state.names = names;
  const auto profile = MakeProfile({state}, "seen", "physical", ProfileNames::kKept);
  ASSERT_TRUE(profile) << profile.error().message;
  const std::string yaml = ToYaml(profile->scenario);
  EXPECT_THAT(yaml, HasSubstr("names: [gke-a-7f3c"));
  EXPECT_EQ(StartedFrom(*profile).names->nodes, names->nodes);
}

TEST(Profile, SpreadsWhatWasSeenToDiffer) {
  const State first = World(3);
  State second = first;
  const NodeId node = first.pods.node[0];
  second.nodes.free[node] += second.workload_of(0).requests;
  second.pods.node.erase(second.pods.node.begin());
  second.pods.workload.erase(second.pods.workload.begin());
  second.network.latency_ms[1] += 10;
  second.nodes.free[0].cpu_millis += 100;
  second.nodes.allocatable[0].cpu_millis += 100;
  ASSERT_GT(std::count(second.pods.workload.begin(), second.pods.workload.end(), 0), 0);
  CheckConsistent(second);
  const auto profile = MakeProfile({first, second}, "seen", "physical", ProfileNames::kKept);
  ASSERT_TRUE(profile) << profile.error().message;
  const Scenario& scenario = profile->scenario;
  EXPECT_EQ(scenario.starts[0].replicas.max(), scenario.starts[0].replicas.min() + 1);
  EXPECT_EQ(scenario.latency_ms[1].max(), first.network.latency_ms[1] + 10);
  EXPECT_EQ(scenario.latency_ms[1].min(), first.network.latency_ms[1]);
  EXPECT_THAT(scenario.node_groups[0].cpu_millis.values(),
              ElementsAre(first.nodes.allocatable[0].cpu_millis,
                          first.nodes.allocatable[0].cpu_millis + 100));
  EXPECT_EQ(profile->starts.size(), 2u);
}

TEST(Profile, LeavesOutStatesWithOtherNodes) {
  const State last = World(5);
  State other = last;
  auto names = std::make_shared<Names>(*last.names);
  names->nodes[0] = "gone";
  other.names = names;
  const auto profile = MakeProfile({other, last}, "seen", "physical", ProfileNames::kKept);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->left_out, 1);
  EXPECT_EQ(profile->starts.size(), 1u);
}

TEST(Profile, AnAnonymousOneHoldsNoNameOfTheCluster) {
  const State state = World(7);
  const auto profile = MakeProfile({state}, "cluster", "physical", ProfileNames::kAnonymous);
  ASSERT_TRUE(profile) << profile.error().message;
  const std::string text =
      ToYaml(profile->scenario) + StartStateLine(profile->scenario, profile->starts[0]);
  for (const Workload& workload : state.catalog->workloads) {
    if (workload.name == "client") continue;  // A key of the format.
    EXPECT_THAT(text, Not(HasSubstr(workload.name)));
  }
  for (const std::string& node : state.names->nodes) EXPECT_THAT(text, Not(HasSubstr(node)));
  EXPECT_THAT(text, Not(HasSubstr("edge")));
  EXPECT_THAT(text, Not(HasSubstr("cloud")));
  EXPECT_EQ(StartedFrom(*profile).nodes.free, state.nodes.free);
  EXPECT_EQ(StartedFrom(*profile).pods.node, state.pods.node);
}

TEST(Profile, SaysWhyNoScenarioCanBeMade) {
  State state = World(9);
  auto catalog = std::make_shared<Catalog>(*state.catalog);
  catalog->kinds[0].bandwidth_mbytes_per_s = 0;
  state.catalog = catalog;
  const auto profile = MakeProfile({state}, "seen", "physical", ProfileNames::kKept);
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(profile.error().message, HasSubstr("bandwidth"));
}

}  // namespace
}  // namespace rudderfish
