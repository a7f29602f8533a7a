// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/check.h"
#include "learn/run_folder.h"
#include "scenario/scenario.h"
#include "tests/support/shop_text.h"

// Scaling so small that a test can train it: two workloads, ten minutes, two loads.

namespace rudderfish::testing {

inline const std::string kSmallShop = ShopText({
    .workloads = R"(  web: {requests: {cpu: 500m, memory: 64Mi}, replicas: 2, execution: 40ms}
  db: {requests: {cpu: 1, memory: 64Mi}, replicas: 2, execution: 25ms})",
    .endpoints =
        R"(    page: {client: client, rate: 1, qos: 300ms, calls: [{web: {calls: [db]}}]})",
    .pods = R"(    web: {replicas: 1 to 10, slots: 2, scv: 0.5, start_delay: 10s to 20s}
    db: {replicas: 1 to 10, slots: 2, scv: 0.5, start_delay: 10s to 20s})",
    .loads = R"(    steady: {steady: {rate: 40}}
    ramp: {ramp: {low: 20, high: 120, begin: 2m, end: 7m}})",
});

inline TrainScenario SmallShop() {
  Result<Scenario> scenario = ParseScenario(kSmallShop, "small-shop.yaml");
  CHECK(scenario.has_value());
  return {.scenario = std::make_shared<const Scenario>(*std::move(scenario)), .text = kSmallShop};
}

// Six iterations of PPO on it, of which every second is judged.
inline TrainOptions SmallShopOptions() {
  TrainOptions options;
  UseScalingDefaults(&options);
  options.scaling.emplace();
  options.steps = 32 * 6;
  options.seed = 5;
  options.hidden = 16;
  options.evaluate_every = 64;
  options.validation_starts = 4;
  options.save_every_seconds = 1e6;
  options.rollout.envs = 4;
  options.rollout.steps = 16;
  options.rollout.envs_per_slice = 2;
  options.ppo.minibatch = 64;
  return options;
}

}  // namespace rudderfish::testing
