// SPDX-License-Identifier: Apache-2.0
#include "cli/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluation/evaluation.h"
#include "model/evaluator.h"
#include "scenario/scenario.h"
#include "sim/held_out.h"
#include "sim/world.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

using testing::HasSubstr;

// A chain of two: the front on an edge node, the back in the cloud, 100 ms away.
constexpr std::string_view kWorld = R"(
rudderfish: scenario/v1
name: pair
model: reach
layers: {cloud: {}, edge: {}, client: {accepts_moves: false}}
latency:
  cloud: {cloud: 1ms, edge: 100ms, client: 100ms}
  edge: {cloud: 100ms, edge: 1ms, client: 1ms}
  client: {cloud: 100ms, edge: 1ms, client: 1ms}
node_types:
  big: {layer: cloud, cpu_type: fast, bandwidth: 500Mbit}
  small: {layer: edge, cpu_type: slow, bandwidth: 500Mbit}
  home: {layer: client, cpu_type: slow, bandwidth: 500Mbit}
nodes:
  - {type: big, count: 1, cpu: 8, memory: 8Gi}
  - {type: small, count: 1, cpu: 8, memory: 8Gi}
  - {type: home, count: 1, cpu: 8, memory: 8Gi}
workloads:
  client: {requests: {cpu: 100m, memory: 100Mi}, replicas: 1, layers: [client], movable: false}
  front:
    requests: {cpu: 100m, memory: 100Mi}
    replicas: 1
    layers: [edge]
    execution: {fast: 5ms, slow: 9ms}
  back:
    requests: {cpu: 100m, memory: 100Mi}
    replicas: 1
    layers: [cloud]
    execution: {fast: 20ms, slow: 32ms}
patterns:
  pair:
    only:
      client: client
      rate: 1
      qos: 100ms
      calls:
        - front:
            data: 0.1MB
            calls:
              - back: {data: 0.1MB}
)";

State Start() {
  auto scenario = std::make_shared<const Scenario>(ParseScenario(kWorld, "pair.yaml").value());
  return DrawStarts(World(scenario), 1, 1).value()[0].state;
}

Migrate MoveOfBackToEdge(const State& state) {
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.workload_of(pod).name == "back") return {pod, state.pods.node[pod], 1};
  }
  return {};
}

TEST(Explanation, EffectsSayWhichCallsGetNearerAndWhatRunsSlower) {
  const State state = Start();
  const std::vector<Effect> effects =
      EffectsOf(state, LatencyLaw::Reach(), MoveOfBackToEdge(state));
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[0].text, "front to back is 99.0 ms nearer");
  EXPECT_NEAR(effects[0].change_ms, -99, 1e-6);
  EXPECT_EQ(effects[1].text, "back runs 12.0 ms slower");
  EXPECT_NEAR(effects[1].change_ms, 12, 1e-6);
}

TEST(Explanation, EffectsOfAChainAddUpToTheGain) {
  const State state = Start();
  const Migrate move = MoveOfBackToEdge(state);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  const double gain_ms = model.Now().latency_ms - model.Try(Action(move)).latency_ms;
  double sum_ms = 0;
  for (const Effect& effect : EffectsOf(state, LatencyLaw::Reach(), move))
    sum_ms -= effect.change_ms;
  EXPECT_NEAR(sum_ms, gain_ms, 1e-3);
}

TEST(Explanation, MoveThatLosesNowIsSaidToPrepareAnother) {
  JournalRow row{.predicted_gain_ms = -3, .step_cost_ms = 0.2};
  EXPECT_THAT(WhyMove(row, {}, Motive::kLatency),
              HasSubstr("it costs latency now: the policy counts on"));
  row.predicted_gain_ms = 0.1;
  EXPECT_THAT(WhyMove(row, {}, Motive::kLatency),
              HasSubstr("not worth its step: the policy counts on a later"));
  row.predicted_gain_ms = 5;
  EXPECT_EQ(WhyMove(row, {{.change_ms = -5, .text = "a to b is 5.0 ms nearer"}}, Motive::kChance),
            "a to b is 5.0 ms nearer");
}

TEST(Explanation, MoveThatWinsNothingIsExplainedByWhatThePolicyGoesBy) {
  const JournalRow row{.predicted_gain_ms = 0, .step_cost_ms = 0.2};
  const std::vector<Effect> effects{{.change_ms = -5, .text = "a to b is 5.0 ms nearer"}};
  EXPECT_EQ(
      WhyMove(row, effects, Motive::kOwnScore),
      "a to b is 5.0 ms nearer; in all, latency stays as it is; the policy goes by a score of "
      "its own");
  EXPECT_THAT(WhyMove(row, {}, Motive::kChance), HasSubstr("drawn by lot"));
}

TEST(Explanation, StopIsExplainedByTheBestMoveThatWasNotMade) {
  JournalRow row{.seen = {.latency_ms = 100}};
  row.considered.push_back({.move = std::nullopt, .predicted = {.latency_ms = 100}});
  EXPECT_EQ(WhyStop(row, 0.4, Motive::kLatency), "no move is allowed");
  row.considered.push_back(
      {.move = JournalMove{"db-1", "a", "b"}, .predicted = {.latency_ms = 99.9}});
  EXPECT_THAT(WhyStop(row, 0.4, Motive::kLatency), HasSubstr("the best, db-1 to b, gains 0.1 ms"));
  row.considered.push_back(
      {.move = JournalMove{"db-2", "a", "c"}, .predicted = {.latency_ms = 90}});
  EXPECT_THAT(WhyStop(row, 0.4, Motive::kLatency),
              HasSubstr("although db-2 to c would gain 10.0 ms"));
}

}  // namespace
}  // namespace rudderfish
