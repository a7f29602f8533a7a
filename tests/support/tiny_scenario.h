// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "scenario/scenario.h"

// A scenario that uses all of the format and fits on a screen, for tests that load, change or break
// it.

namespace rudderfish::testing {

inline constexpr std::string_view kTinyScenario = R"(rudderfish: scenario/v1
name: tiny
seed: 7
model: reach
layers:
  cloud: {}
  edge: {}
  outside: {accepts_moves: false}
latency:
  cloud: {cloud: 0.5ms, edge: 20ms to 80ms, outside: [10ms, 30ms, 90ms]}
  edge: {cloud: 20ms to 80ms, edge: 1ms, outside: 2ms}
  outside: {cloud: 40ms, edge: 2ms, outside: 0.1ms}
node_types:
  big: {layer: cloud, cpu_type: fast, bandwidth: 500Mbit}
  small: {layer: edge, cpu_type: slow, bandwidth: 100Mbit}
  booth: {layer: outside, cpu_type: none, bandwidth: 62.5MB}
nodes:
  - {type: big, count: 2, cpu: [4, 8], memory: 6Gi to 12Gi}
  - {type: small, count: 3, cpu: 1 to 2.5, memory: 1.3Gi, background: 0 to 0.5}
  - {type: booth, count: 1, cpu: 1, memory: 1Gi}
workloads:
  browser: {requests: {cpu: 100m, memory: 100Mi}, replicas: 1, layers: [outside], movable: false}
  shop:
    requests: {cpu: 500m, memory: 300Mi}
    replicas: 1 to 4
    execution: {fast: 4ms, slow: 9ms}
  cart:
    requests: {cpu: 0.25, memory: 200M}
    replicas: [1, 3]
    layers: [edge, cloud]
    execution: 3ms
  store:
    requests: {cpu: 1, memory: 1Gi}
    replicas: 1
    layers: [cloud]
    movable: false
patterns:
  browse:
    view:
      client: browser
      rate: 12.5
      qos: 80ms
      calls:
        - shop:
            data: 20kB
            parallel:
              - cart
              - calls:
                  - store: {data: 1MB, execution: 2ms}
                  - cart: {execution: {fast: 1ms, slow: 1.5ms}}
    pay:
      client: browser
      rate: 1
      qos: 0.2s
      calls: [shop, cart]
  idle:
    view: {client: browser, rate: 0, qos: 1s}
pattern_weights: {browse: 3}
retries: 50
task: {kind: migration, max_steps: 20}
)";

// The text with its one occurrence of `what` replaced.
inline std::string TinyScenarioWith(std::string_view what, std::string_view by) {
  std::string text(kTinyScenario);
  const size_t at = text.find(what);
  CHECK(at != std::string::npos && text.find(what, at + 1) == std::string::npos);
  return text.replace(at, what.size(), by);
}

inline std::shared_ptr<const Scenario> TinyScenario() {
  Result<Scenario> scenario = ParseScenario(kTinyScenario, "tiny.yaml");
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*std::move(scenario));
}

}  // namespace rudderfish::testing
