// SPDX-License-Identifier: Apache-2.0
#include "scenario/played_episode.h"

#include <gtest/gtest.h>

#include "scenario/application_file.h"
#include "scenario/application_writer.h"

namespace rudderfish {
namespace {

constexpr std::string_view kPlayedScenario = R"(rudderfish: scenario/v1
name: two-layers
model: reach
layers: {cloud: {}, edge: {}, client: {accepts_moves: false}}
latency:
  cloud: {cloud: 0.1ms, edge: 10ms, client: 25ms}
  edge: {cloud: 12ms, edge: 1ms, client: 4ms}
  client: {cloud: 25ms, edge: 6ms, client: 0.1ms}
node_types:
  large: {layer: cloud, cpu_type: fast, bandwidth: 1Gbit, price_per_hour: 0.5}
  old: {layer: edge, cpu_type: slow, bandwidth: 200Mbit, power: {idle_watts: 5, busy_watts: 9}}
  young: {layer: edge, cpu_type: fast, bandwidth: 500Mbit}
  device: {layer: client, cpu_type: slow, bandwidth: 200Mbit}
nodes:
  - {type: large, count: 1, cpu: 8, memory: 16Gi}
  - {type: old, count: 1, cpu: 2, memory: 2Gi}
  - {type: young, count: 1, cpu: 2, memory: 2Gi}
  - {type: device, count: 1, cpu: 2, memory: 2Gi}
workloads:
  users: {requests: {cpu: 100m, memory: 64Mi}, replicas: 1, layers: [client], movable: false}
  web:
    requests: {cpu: 300m, memory: 128Mi}
    replicas: 3
    layers: [cloud, edge]
    execution: {fast: 2ms, slow: 3.5ms}
  db:
    requests: {cpu: 200m, memory: 64Mi}
    replicas: 1
    layers: [edge]
    movable: false
    execution: {fast: 1ms, slow: 4ms}
patterns:
  only:
    buy:
      client: users
      rate: 5
      qos: 100ms
      calls:
        - web:
            data: 0.1MB
            parallel:
              - db: {data: 2kB}
              - calls: [db: {data: 1kB}, db: {data: 3kB, execution: {fast: 9ms, slow: 8ms}}]
)";

// As World draws it: nodes in the order of the file, as many pods as there are replicas.
State StateOf(const Scenario& scenario) {
  State state;
  state.catalog = scenario.catalog;
  state.calls = scenario.patterns[0];
  state.names = scenario.names;
  state.nodes.kind = scenario.KindsOfNodes();
  state.network.layers = scenario.catalog->layer_count();
  for (const Distribution& one : scenario.latency_ms)
    state.network.latency_ms.push_back(one.values()[0]);
  for (WorkloadId w = 0; w < scenario.catalog->workload_count(); ++w) {
    const int replicas = static_cast<int>(scenario.starts[w].replicas.values()[0]);
    for (int i = 0; i < replicas; ++i) state.pods.workload.push_back(w);
  }
  return state;
}

TEST(PlayedEpisode, NodesAreNamedAsATestbedOfLayersNamesThem) {
  const Scenario scenario = ParseScenario(kPlayedScenario, "two-layers.yaml").value();
  const PlayedEpisode played = PlayedEpisodeOf(scenario, StateOf(scenario)).value();
  EXPECT_EQ(played.layers, "cloud:1,edge:2,client:1");
  ASSERT_EQ(played.node_names.size(), 4u);
  EXPECT_EQ(played.node_names[2], (std::pair<std::string, KindId>("edge-2", 2)));
  EXPECT_EQ(played.application.kind_nodes[1].requirements[0].values,
            std::vector<std::string>{"edge-1"});
  EXPECT_NE(played.links.find("edge -> cloud delay 12000us rate 200000kbit\n"), std::string::npos);
  EXPECT_EQ(played.workloads[1].replicas, 3);
  EXPECT_EQ(played.workloads[1].requests.cpu_millis, 300);
  EXPECT_TRUE(played.application.objects[0].is_external());
  EXPECT_FALSE(played.application.catalog->workloads[2].movable);
}

TEST(PlayedEpisode, ItsFileIsReadBackAsItWas) {
  const Scenario scenario = ParseScenario(kPlayedScenario, "two-layers.yaml").value();
  const PlayedEpisode played = PlayedEpisodeOf(scenario, StateOf(scenario)).value();
  const std::string text = ApplicationText(played.application, "An episode.");
  const Result<Application> read = ParseApplication(text, "application.yaml");
  ASSERT_TRUE(read.has_value()) << read.error().message << "\n" << text;
  EXPECT_EQ(ApplicationText(*read, "An episode."), text);
  EXPECT_EQ(read->objects, played.application.objects);
  EXPECT_EQ(read->kind_nodes, played.application.kind_nodes);
  EXPECT_EQ(read->kind_costs, played.application.kind_costs);
  EXPECT_EQ(read->network.latency_ms, played.application.network.latency_ms);
  EXPECT_EQ(read->calls->execution_ms, played.application.calls->execution_ms);
  ManifestPlan plan{.workloads = played.workloads, .node_names = played.node_names};
  EXPECT_EQ(CallsText(*read, plan), CallsText(played.application, plan));
  EXPECT_EQ(NodeNamesOf(*read).value(), played.node_names);
}

TEST(PlayedEpisode, ANameThatKubernetesDoesNotHaveIsRefused) {
  std::string text(kPlayedScenario);
  text.replace(text.find("two-layers"), 10, "Two_Layers");
  const Scenario scenario = ParseScenario(text, "two-layers.yaml").value();
  EXPECT_NE(PlayedEpisodeOf(scenario, StateOf(scenario)).error().message.find("`Two_Layers`"),
            std::string::npos);
}

}  // namespace
}  // namespace rudderfish
