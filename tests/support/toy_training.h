// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "learn/trainer.h"
#include "learn/training_worlds.h"
#include "tests/support/test_folder.h"

// Training so small that a test can run all of it: two nodes, one workload of one to three pods, a
// network of 16.

namespace rudderfish::testing {

inline constexpr std::string_view kTwoNodes = R"(rudderfish: scenario/v1
name: two-nodes
seed: 3
model: reach
layers:
  cloud: {}
  edge: {}
  home: {accepts_moves: false}
latency:
  cloud: {cloud: 1ms, edge: 5ms, home: 10ms to 90ms}
  edge: {cloud: 5ms, edge: 1ms, home: 10ms to 90ms}
  home: {cloud: 10ms to 90ms, edge: 10ms to 90ms, home: 1ms}
node_types:
  big: {layer: cloud, cpu_type: fast, bandwidth: 500Mbit}
  small: {layer: edge, cpu_type: slow, bandwidth: 200Mbit}
  desk: {layer: home, cpu_type: slow, bandwidth: 200Mbit}
nodes:
  - {type: big, count: 1, cpu: 4, memory: 8Gi}
  - {type: small, count: 1, cpu: 4, memory: 8Gi}
  - {type: desk, count: 1, cpu: 1, memory: 1Gi}
workloads:
  browser: {requests: {cpu: 100m, memory: 100Mi}, replicas: 1, layers: [home], movable: false}
  shop: {requests: {cpu: 1, memory: 1Gi}, replicas: 1 to 3, execution: {fast: 10ms, slow: 30ms}}
patterns:
  visit: {view: {client: browser, rate: 1, qos: 100ms, calls: [shop]}}
task: {max_steps: 12}
)";

inline TrainScenario TwoNodes() {
  Result<Scenario> scenario = ParseScenario(kTwoNodes, "two-nodes.yaml");
  CHECK(scenario.has_value());
  return {.scenario = std::make_shared<const Scenario>(*std::move(scenario)),
          .text = std::string(kTwoNodes)};
}

inline TrainingWorlds WorldsOf(std::shared_ptr<const Scenario> scenario) {
  Result<TrainingWorlds> worlds = TrainingWorlds::Make({{std::move(scenario)}});
  CHECK(worlds.has_value());
  return *std::move(worlds);
}

// An iteration is 128 steps.
inline TrainOptions SmallOptions(Algorithm algorithm) {
  TrainOptions options{.algorithm = algorithm,
                       .steps = 128 * 12,
                       .seed = 5,
                       .hidden = 16,
                       .evaluate_every = 128 * 3,
                       .validation_starts = 20};
  options.save_every_seconds = 1e6;
  options.rollout = {.envs = 16, .steps = 8, .envs_per_slice = 4, .episode_steps_max = 6};
  options.ppo.minibatch = 64;
  options.dqn.replay = {
      .envs = 16, .envs_per_slice = 4, .steps = 8, .episode_steps_max = 6, .samples_max = 640};
  options.dqn.warm_up_samples = 256;
  options.dqn.updates = 2;
  options.dqn.minibatch = 128;
  return options;
}

// What the best plan from a state ends at, step costs added: all plans of up to `moves` moves are
// tried.
inline double BestObjectiveMs(Evaluator* model, const Task& task, int step, int moves) {
  double best = model->Now().latency_ms;
  if (moves == 0) return best;
  ActionSpace space;
  task.Space(model, {step}, &space);
  for (const Candidate& candidate : space.candidates) {
    model->Commit(candidate.move);
    best =
        std::min(best, task.StepCost({step}) + BestObjectiveMs(model, task, step + 1, moves - 1));
    model->Undo();
  }
  return best;
}

}  // namespace rudderfish::testing
