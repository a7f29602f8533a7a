// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "scenario/scenario.h"

// Worlds in which pods come and go, small enough to work out by hand.

namespace rudderfish::testing {

// Two nodes of 2 cores near the users and two of 4 far from them; what arrives is the test's.
// Limits of latency where it says that users are there.
inline std::string ArrivalsText(std::string_view arrivals) {
  const std::string_view limits = arrivals.find("users: users") == std::string_view::npos
                                      ? ""
                                      : ", latency_soft: 20ms, latency_hard: 60ms";
  return fmt::format(R"(rudderfish: scenario/v1
name: small
layers: {{near: {{}}, far: {{}}, users: {{accepts_moves: false}}}}
latency:
  near: {{near: 1ms, far: 20ms, users: 5ms}}
  far: {{near: 20ms, far: 1ms, users: 25ms}}
  users: {{near: 5ms, far: 25ms, users: 1ms}}
node_types:
  small: {{layer: near, cpu_type: any, bandwidth: 1Gbit, price_per_hour: 1,
        power: {{idle_watts: 50, busy_watts: 100}}}}
  large: {{layer: far, cpu_type: any, bandwidth: 1Gbit, price_per_hour: 2,
        power: {{idle_watts: 80, busy_watts: 200, asleep_watts: 10}}}}
nodes:
  - {{type: small, count: 2, cpu: 2, memory: 4Gi}}
  - {{type: large, count: 2, cpu: 4, memory: 8Gi, gpus: 2}}
workloads:
  web: {{requests: {{cpu: 500m, memory: 256Mi}}{}}}
  batch: {{requests: {{cpu: 1, memory: 512Mi}}, measured: {{connections: 3, read_kb_per_s: 512}}}}
  learner: {{requests: {{cpu: 1, memory: 512Mi, gpus: 500m}}, node_types: [large]}}
  giant: {{requests: {{cpu: 16, memory: 1Gi}}}}
arrivals:
{})",
                     limits, arrivals);
}

inline std::shared_ptr<const Scenario> ArrivalsScenario(std::string_view arrivals) {
  Result<Scenario> scenario = ParseScenario(ArrivalsText(arrivals), "small.yaml");
  if (!scenario) fmt::print("{}\n", scenario.error().message);
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*std::move(scenario));
}

}  // namespace rudderfish::testing
