// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "policy/registry.h"
#include "policy/routing_rules.h"
#include "scenario/scenario.h"
#include "sim/region_simulator.h"
#include "sim/routing_evaluation.h"
#include "tests/support/source_path.h"

// Regions that serve requests, N of them: an interval of the simulator alone, one with a rule, and
// a decision of the rule alone. Items per second are intervals, or decisions.

namespace rudderfish {
namespace {

std::shared_ptr<const RegionWorld> WorldOf(int64_t regions) {
  const Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/multicloud-16.yaml"));
  CHECK(scenario.has_value());
  auto world = std::make_shared<RegionWorld>(*scenario->regions);
  std::vector<int> positions(static_cast<size_t>(regions));
  std::iota(positions.begin(), positions.end(), 0);
  world->network = std::make_shared<const RegionNetwork>(WithRegions(*world->network, positions));
  return world;
}

const RegionVariant& FullOf(const RegionWorld& world) {
  return world.variants[VariantsNamed(world, std::vector<std::string>{"full"}).value()[0]];
}

// "" for no policy at all.
void RunEpisodes(benchmark::State& state, const char* spec) {
  const auto world = WorldOf(state.range(0));
  const auto laws = std::make_shared<const RegionLaws>(world->network);
  const RegionVariant& full = FullOf(*world);
  RegionSimulator simulator(world, laws);
  const bool asks = *spec != 0;
  std::unique_ptr<RoutingPolicy> policy;
  if (asks) policy = MakeRoutingRule(spec).value();
  uint64_t seed = 0;
  for (auto _ : state) {
    if (asks) {
      benchmark::DoNotOptimize(RunRouting(*policy, {full, ++seed}, laws, &simulator));
      continue;
    }
    simulator.Start({full, ++seed});
    for (int step = 0; step < world->steps(); ++step) simulator.Step();
  }
  state.SetItemsProcessed(state.iterations() * world->steps());
}

void BM_Simulator(benchmark::State& state) { RunEpisodes(state, ""); }
void BM_SimulatorWithLocality(benchmark::State& state) { RunEpisodes(state, "locality"); }
void BM_SimulatorWithLp(benchmark::State& state) { RunEpisodes(state, "lp"); }

void BM_SimulatorWithMpc(benchmark::State& state) { RunEpisodes(state, "mpc"); }

void RunDecisions(benchmark::State& state, const std::shared_ptr<const RoutingPolicy>& policy) {
  const auto world = WorldOf(state.range(0));
  const auto laws = std::make_shared<const RegionLaws>(world->network);
  RegionSimulator simulator(world, laws);
  simulator.Start({FullOf(*world), 1});
  const auto memory = policy->NewMemory(laws);
  RoutingQuestion question = simulator.Question();
  for (auto _ : state) {
    policy->Decide(question, memory.get(), simulator.Answer());
    ++question.step;  // Regions take turns by it.
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_DecisionOfLp(benchmark::State& state) {
  RunDecisions(state, MakeRoutingRule("lp").value());
}
void BM_DecisionOfMpc(benchmark::State& state) {
  RunDecisions(state, MakeRoutingRule("mpc").value());
}
// With learned prices of pairs.
void BM_DecisionOfBothTiers(benchmark::State& state) {
  PlannedRouting rule = ReadPlannedRouting("mpc").value();
  rule.planning.weights.back() = 1e-3F;
  RunDecisions(state, MakePlannedRouting(rule));
}

BENCHMARK(BM_Simulator)->Arg(8)->Arg(16);
BENCHMARK(BM_SimulatorWithLocality)->Arg(8)->Arg(16);
BENCHMARK(BM_SimulatorWithLp)->Arg(8)->Arg(16);
BENCHMARK(BM_SimulatorWithMpc)->Arg(8)->Arg(16);
BENCHMARK(BM_DecisionOfLp)->Arg(8)->Arg(16);
BENCHMARK(BM_DecisionOfMpc)->Arg(8)->Arg(16);
BENCHMARK(BM_DecisionOfBothTiers)->Arg(8)->Arg(16);

}  // namespace
}  // namespace rudderfish
