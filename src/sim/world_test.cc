// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenario/start_states.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/tiny_scenario.h"

namespace rudderfish {
namespace {

using testing::ShippedScenario;
using testing::TinyScenario;

void Draw(const World& world, Rng* rng, State* state) {
  const Result<void> drawn = world.Draw(rng, state);
  ASSERT_TRUE(drawn.has_value()) << drawn.error().message;
}

// Compares the values of two states, not the objects that hold them.
void ExpectSame(const State& a, const State& b) {
  EXPECT_EQ(a.nodes.kind, b.nodes.kind);
  EXPECT_EQ(a.nodes.allocatable, b.nodes.allocatable);
  EXPECT_EQ(a.nodes.free, b.nodes.free);
  EXPECT_EQ(a.nodes.background_mbytes_per_s, b.nodes.background_mbytes_per_s);
  EXPECT_EQ(a.pods.workload, b.pods.workload);
  EXPECT_EQ(a.pods.node, b.pods.node);
  EXPECT_EQ(a.network.latency_ms, b.network.latency_ms);
  EXPECT_EQ(a.calls, b.calls);
}

RC_GTEST_PROP(World, DrawsWhatTheScenarioAllows, (uint32_t seed)) {
  static const World worlds[] = {World(TinyScenario()), World(ShippedScenario("continuum-7x21")),
                                 World(ShippedScenario("continuum-22x41")),
                                 World(ShippedScenario("continuum-100x1000"))};
  const World& world = worlds[*rc::gen::inRange(0, 4)];
  const Scenario& scenario = world.scenario();
  Rng rng(seed);
  State state;
  RC_ASSERT(world.Draw(&rng, &state).has_value());
  CheckConsistent(state);  // Free and requests add up to allocatable.
  NodeId node = 0;
  for (const NodeGroup& group : scenario.node_groups) {
    for (int i = 0; i < group.count; ++i, ++node) {
      RC_ASSERT(state.nodes.kind[node] == group.kind);
      RC_ASSERT(state.nodes.allocatable[node].cpu_millis >= group.cpu_millis.min());
      RC_ASSERT(state.nodes.allocatable[node].cpu_millis <= group.cpu_millis.max());
      RC_ASSERT(state.nodes.allocatable[node].memory_bytes >= group.memory_bytes.min());
      RC_ASSERT(state.nodes.allocatable[node].memory_bytes <= group.memory_bytes.max());
      RC_ASSERT(state.nodes.free[node].Fits({0, 0}));
    }
  }
  RC_ASSERT(node == state.nodes.size());
  std::vector<int> replicas(scenario.catalog->workload_count());
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const WorkloadId workload = state.pods.workload[pod];
    RC_ASSERT(state.pods.workload[std::max(0, pod - 1)] <= workload);  // In the order of workloads.
    const auto& layers = scenario.starts[workload].initial_layers;
    const LayerId layer = state.kind_of(state.pods.node[pod]).layer;
    RC_ASSERT(std::find(layers.begin(), layers.end(), layer) != layers.end());
    ++replicas[workload];
  }
  for (size_t w = 0; w < replicas.size(); ++w) {
    RC_ASSERT(replicas[w] >= scenario.starts[w].replicas.min());
    RC_ASSERT(replicas[w] <= scenario.starts[w].replicas.max());
  }
  for (size_t pair = 0; pair < scenario.latency_ms.size(); ++pair) {
    RC_ASSERT(state.network.latency_ms[pair] >= scenario.latency_ms[pair].min());
    RC_ASSERT(state.network.latency_ms[pair] <= scenario.latency_ms[pair].max());
  }
}

TEST(World, SameGeneratorDrawsTheSameStateWhateverItReplaces) {
  const World world(ShippedScenario("continuum-7x21"));
  const World other(ShippedScenario("continuum-22x41"));
  State used;
  Rng warm_up(99);
  for (int i = 0; i < 5; ++i) Draw(other, &warm_up, &used);
  for (uint64_t stream = 0; stream < 20; ++stream) {
    Rng first(5, stream), second(5, stream);
    State fresh;
    Draw(world, &first, &fresh);
    Draw(world, &second, &used);
    ExpectSame(fresh, used);
    EXPECT_EQ(first.position(), second.position());
  }
}

TEST(World, EveryDrawIsANewVersion) {
  const World world(TinyScenario());
  State state;
  Rng rng(1);
  Draw(world, &rng, &state);
  const uint64_t version = state.version;
  Draw(world, &rng, &state);
  EXPECT_GT(state.version, version);
}

TEST(World, PatternsAreDrawnByTheirWeights) {
  const World world(TinyScenario());  // 3 to 1.
  State state;
  Rng rng(2);
  int browse = 0;
  for (int i = 0; i < 8000; ++i) {
    Draw(world, &rng, &state);
    browse += state.calls->name == "browse";
  }
  EXPECT_NEAR(browse, 6000, 200);
}

TEST(World, EqualPatternsAreDrawnEquallyOften) {
  const World world(ShippedScenario("continuum-7x21"));
  State state;
  Rng rng(3);
  std::map<std::string, int> drawn;
  for (int i = 0; i < 9000; ++i) {
    Draw(world, &rng, &state);
    ++drawn[state.calls->name];
  }
  ASSERT_EQ(drawn.size(), 3u);
  for (const auto& [name, count] : drawn) EXPECT_NEAR(count, 3000, 250) << name;
}

// A world in which one pod after another has to go where there is room for one more.
std::string RoomFor(const std::string& nodes, const std::string& replicas) {
  std::string text(testing::kTinyScenario);
  const auto replace = [&](std::string_view begin, std::string_view end, const std::string& by) {
    const size_t from = text.find(begin), to = text.find(end);
    text.replace(from, to - from, by);
  };
  replace("nodes:\n", "workloads:", nodes);
  replace("    requests: {cpu: 500m", "    execution: {fast: 4ms",
          "    requests: {cpu: 500m, memory: 1}\n    replicas: " + replicas + "\n");
  return text;
}

// Uniform among the nodes with room: small nodes, many nodes, full nodes.
TEST(World, PodStartsOnEachNodeWithRoomEquallyOften) {
  // Two big nodes hold anything; of 80 small ones, in two groups, only 60 have room for a shop.
  const std::string nodes =
      "nodes:\n  - {type: big, count: 2, cpu: 9, memory: 9Gi}\n  - {type: small, count: 60, cpu: "
      "600m, memory: 1Gi}\n"
      "  - {type: small, count: 20, cpu: 499m, memory: 1Gi}\n  - {type: booth, count: 1, cpu: 1, "
      "memory: 1Gi}\n";
  for (int many : {0, 1}) {
    std::string text = RoomFor(nodes, "1");
    if (!many) text.replace(text.find("count: 60"), 9, "count: 6");
    auto scenario = ParseScenario(text, "room.yaml");
    ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
    const World world(std::make_shared<const Scenario>(*std::move(scenario)));
    State state;
    Rng rng(4);
    std::map<NodeId, int> seen;
    const int draws = 30'000;
    for (int i = 0; i < draws; ++i) {
      Draw(world, &rng, &state);
      ++seen[state.pods.node[1]];
    }
    const int roomy = many ? 62 : 8;
    EXPECT_EQ(static_cast<int>(seen.size()), roomy);
    const double expected = static_cast<double>(draws) / roomy;
    for (const auto& [node, count] : seen)
      EXPECT_NEAR(count, expected, 5 * std::sqrt(expected)) << node;
  }
}

// One node in 200 has room: guessing will miss it, searching will not.
TEST(World, LastRoomOfManyNodesIsFound) {
  const std::string nodes =
      "nodes:\n  - {type: big, count: 1, cpu: 8, memory: 9Gi}\n  - {type: small, count: 200, cpu: "
      "250m, memory: 1Gi}\n"
      "  - {type: booth, count: 1, cpu: 1, memory: 1Gi}\n";
  auto scenario = ParseScenario(RoomFor(nodes, "4"), "room.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const World world(std::make_shared<const Scenario>(*std::move(scenario)));
  State state;
  Rng rng(5);
  Draw(world, &rng, &state);
  for (PodId pod = 1; pod <= 4; ++pod) EXPECT_EQ(state.pods.node[pod], 0);
}

TEST(World, GivesUpAfterItsRetriesAndSaysHowToMendIt) {
  // Six shops may fit, in all, but never do: each node has room for one and a half.
  const std::string nodes =
      "nodes:\n  - {type: big, count: 4, cpu: 1.9, memory: 9Gi}\n  - {type: booth, count: 1, cpu: "
      "1, memory: 1Gi}\n";
  std::string text = RoomFor(nodes, "6");
  text.replace(text.find("cpu: 500m, memory: 1}"), 9, "cpu: 999m");
  auto scenario = ParseScenario(text, "room.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const World world(std::make_shared<const Scenario>(*std::move(scenario)));
  State state;
  Rng rng(6);
  const Result<void> drawn = world.Draw(&rng, &state);
  ASSERT_FALSE(drawn.has_value());
  EXPECT_EQ(drawn.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(drawn.error().message,
            "tiny: in 50 draws some pod found no node with room; give nodes more cpu or memory, or "
            "workloads fewer "
            "replicas");
}

TEST(World, DrawnStateIsAStartStateOfItsScenario) {
  for (const char* name : {"continuum-12x28", "continuum-100x1000"}) {
    const auto scenario = ShippedScenario(name);
    const World world(scenario);
    State state;
    Rng rng(8);
    std::string lines;
    std::vector<State> drawn;
    for (int i = 0; i < 3; ++i) {
      Draw(world, &rng, &state);
      drawn.push_back(state);
      lines += StartStateLine(*scenario, state) + "\n";
    }
    const auto read = ParseStartStates(lines, "drawn.jsonl", *scenario);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    for (int i = 0; i < 3; ++i) {
      ExpectSame((*read)[i].state, drawn[i]);
      EXPECT_EQ(PodName((*read)[i].state, 4), PodName(drawn[i], 4));
    }
  }
}

// How often the first attempt finds room for all pods depends on every rule of sampling and
// placement. The shares are from 150,000 attempts of a program written from REACH's rules in
// another language.
TEST(World, FirstAttemptSucceedsAsOftenAsInReach) {
  for (const auto& [name, share] :
       {std::pair("continuum-7x21", 0.669), std::pair("continuum-22x41", 0.564)}) {
    Scenario once = *ShippedScenario(name);
    once.retry_limit = 1;
    const World world(std::make_shared<const Scenario>(std::move(once)));
    State state;
    Rng rng(9);
    int succeeded = 0;
    for (int i = 0; i < 20'000; ++i) succeeded += world.Draw(&rng, &state).has_value();
    EXPECT_NEAR(succeeded / 20'000.0, share, 0.01) << name;
  }
}

}  // namespace
}  // namespace rudderfish
