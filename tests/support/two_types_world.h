// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// A world of two types of nodes to train the placing of pods in, of which a real cluster has more.

namespace rudderfish::testing {

inline constexpr std::string_view kTwoTypesWorld = R"(rudderfish: scenario/v1
name: two-types
objective: {balance: 1, energy: 0.5, fragmentation: 0.2}
layers: {site: {}}
latency: {site: {site: 1ms}}
node_types:
  small: {layer: site, cpu_type: any, bandwidth: 1Gbit, price_per_hour: 1,
          power: {idle_watts: 50, busy_watts: 100}}
  large: {layer: site, cpu_type: any, bandwidth: 1Gbit, price_per_hour: 2,
          power: {idle_watts: 80, busy_watts: 200, asleep_watts: 10}}
nodes:
  - {type: small, count: 3, cpu: 2, memory: 4Gi}
  - {type: large, count: 3, cpu: 4, memory: 8Gi, gpus: 2}
workloads:
  web: {requests: {cpu: 500m, memory: 256Mi}}
  batch: {requests: {cpu: 1, memory: 512Mi}}
  learner: {requests: {cpu: 1, memory: 512Mi, gpus: 1}}
arrivals:
  streams:
    - {workloads: {web: 3, batch: 1, learner: 1}, interval: {exponential: 5s},
        lifetime: {exponential: 60s}, count: 300}
)";

}  // namespace rudderfish::testing
