// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "base/check.h"
#include "learn/run_folder.h"
#include "scenario/scenario.h"

// Scaling so small that a test can train it: two workloads, ten minutes, two loads.

namespace rudderfish::testing {

inline constexpr std::string_view kSmallShop = R"(rudderfish: scenario/v1
name: small-shop
layers: {cluster: {}}
latency: {cluster: {cluster: 0.1ms}}
node_types: {node: {layer: cluster, cpu_type: any, bandwidth: 1Gbit}}
nodes: [{type: node, count: 4, cpu: 16, memory: 64Gi}]
workloads:
  client: {requests: {cpu: 100m, memory: 64Mi}, replicas: 1}
  web: {requests: {cpu: 500m, memory: 64Mi}, replicas: 2, execution: 40ms}
  db: {requests: {cpu: 1, memory: 64Mi}, replicas: 2, execution: 25ms}
patterns:
  shop:
    page: {client: client, rate: 1, qos: 300ms, calls: [{web: {calls: [db]}}]}
load:
  duration: 10m
  network: 0.2ms
  timeout: 5s
  pods:
    web: {replicas: 1 to 10, slots: 2, scv: 0.5, start_delay: 10s to 20s}
    db: {replicas: 1 to 10, slots: 2, scv: 0.5, start_delay: 10s to 20s}
  loads:
    steady: {steady: {rate: 40}}
    ramp: {ramp: {low: 20, high: 120, begin: 2m, end: 7m}}
)";

inline TrainScenario SmallShop() {
  Result<Scenario> scenario = ParseScenario(kSmallShop, "small-shop.yaml");
  CHECK(scenario.has_value());
  return {.scenario = std::make_shared<const Scenario>(*std::move(scenario)),
          .text = std::string(kSmallShop)};
}

}  // namespace rudderfish::testing
