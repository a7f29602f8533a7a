// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

// A small shop under load, as the text of a scenario: a client, a service and perhaps its database
// on four large nodes. What tests differ in is given.

namespace rudderfish::testing {

struct ShopParts {
  std::string_view name = "small-shop";
  std::string_view workloads;  // Lines besides the client.
  std::string_view endpoints;  // Lines of its one pattern.
  std::string_view duration = "10m";
  std::string_view pods;   // Lines of `pods`.
  std::string_view loads;  // Lines of `loads`.
};

// Lines are indented as they stand in the text: by two, four, four and four.
inline std::string ShopText(const ShopParts& parts) {
  return fmt::format(R"(rudderfish: scenario/v1
name: {}
layers: {{cluster: {{}}}}
latency: {{cluster: {{cluster: 0.1ms}}}}
node_types: {{node: {{layer: cluster, cpu_type: any, bandwidth: 1Gbit}}}}
nodes: [{{type: node, count: 4, cpu: 16, memory: 64Gi}}]
workloads:
  client: {{requests: {{cpu: 100m, memory: 64Mi}}, replicas: 1}}
{}
patterns:
  shop:
{}
load:
  duration: {}
  network: 0.2ms
  timeout: 5s
  pods:
{}
  loads:
{}
)",
                     parts.name, parts.workloads, parts.endpoints, parts.duration, parts.pods,
                     parts.loads);
}

}  // namespace rudderfish::testing
