// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>

#include "base/check.h"
#include "policy/placement_rules.h"
#include "sim/lifecycle.h"

// A world in which pods come and go, of N nodes with about 8 pods each: a pod is three events
// (arrival, start, departure) and one binding. Time per pod should not grow with N; of greedy,
// which tries every node, it should grow in proportion.

namespace rudderfish {
namespace {

std::shared_ptr<const Scenario> Cluster(int64_t nodes, int64_t pods) {
  const Result<Scenario> scenario = ParseScenario(fmt::format(R"(rudderfish: scenario/v1
name: lifecycle-bench
layers: {{all: {{}}}}
latency: {{all: {{all: 1ms}}}}
node_types: {{node: {{layer: all, cpu_type: any, bandwidth: 1Gbit,
       power: {{idle_watts: 50, busy_watts: 100}}}}}}
nodes: [{{type: node, count: {}, cpu: 8, memory: 32Gi}}]
workloads:
  small: {{requests: {{cpu: 500m, memory: 1Gi}}}}
  large: {{requests: {{cpu: 1, memory: 2Gi}}}}
arrivals:
  streams:
    - {{workloads: {{small: 3, large: 1}}, interval: {{exponential: {}us}},
       lifetime: 4m to 12m, count: {}}}
  start_delay: 2s
)",
                                                              nodes, 60'000'000 / nodes, pods),
                                                  "bench.yaml");
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*scenario);
}

void Play(benchmark::State& state, int64_t pods, const PlacementRule& rule) {
  Lifecycle world(Cluster(state.range(0), pods));
  for (auto _ : state) {
    CHECK(world.Start(1).has_value());
    while (world.NextPending())
      world.Bind(rule({world.state(), world.totals(), world.pending_workload()}));
    CHECK_EQ(world.metrics().completed, pods);
  }
  state.SetItemsProcessed(state.iterations() * pods);
}

void RoundRobin(benchmark::State& state) {
  Play(state, 20 * state.range(0), *PlacementRuleNamed("round-robin", {}));
}

void GreedyBalance(benchmark::State& state) {
  Play(state, 2000, *PlacementRuleNamed("greedy", Objective::Of(ObjectiveTerm::kBalance)));
}

BENCHMARK(RoundRobin)->Arg(50)->Arg(500)->Arg(5000)->Unit(benchmark::kMillisecond);
BENCHMARK(GreedyBalance)->Arg(50)->Arg(500)->Arg(5000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rudderfish
