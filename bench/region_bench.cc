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
// a decision of the rule alone, for one service or for M that share nodes (N/M). Items per second
// are intervals, or decisions about all services.

namespace rudderfish {
namespace {

// Services unlike each other, which share what one asks for in the scenario.
void Share(int64_t services, RegionWorld* world) {
  for (int64_t s = 0; services > 1 && s < services; ++s) {
    RegionService own = world->network->service;
    own.pod_per_s *= 0.5 + 0.25 * static_cast<double>(s % 4);
    own.pods_per_node = 2 + static_cast<int>(s % 3);
    world->services.push_back(
        {.name = "s" + std::to_string(s),
         .demand = 1 / static_cast<double>(services),
         .own = own,
         .bounds = {},
         .pods = std::make_shared<const RegionNetwork>(PodsOf(*world->network, own))});
  }
}

std::shared_ptr<const RegionWorld> WorldOf(int64_t regions, int64_t services) {
  const Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/multicloud-16.yaml"));
  CHECK(scenario.has_value());
  auto world = std::make_shared<RegionWorld>(*scenario->regions);
  std::vector<int> positions(static_cast<size_t>(regions));
  std::iota(positions.begin(), positions.end(), 0);
  world->network = std::make_shared<const RegionNetwork>(WithRegions(*world->network, positions));
  Share(services, world.get());
  return world;
}

const RegionVariant& FullOf(const RegionWorld& world) {
  return world.variants[VariantsNamed(world, std::vector<std::string>{"full"}).value()[0]];
}

// "" for no policy at all.
void RunEpisodes(benchmark::State& state, const char* spec) {
  const auto world = WorldOf(state.range(0), state.range(1));
  const RegionVariant& full = FullOf(*world);
  RegionSimulator simulator(world, LawsOf(*world));
  const bool asks = *spec != 0;
  std::unique_ptr<RoutingPolicy> policy;
  if (asks) policy = MakeRoutingRule(spec).value();
  uint64_t seed = 0;
  for (auto _ : state) {
    if (asks) {
      benchmark::DoNotOptimize(RunRouting(*policy, {full, ++seed}, &simulator));
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
  const auto world = WorldOf(state.range(0), state.range(1));
  RegionSimulator simulator(world, LawsOf(*world));
  simulator.Start({FullOf(*world), 1});
  std::vector<std::unique_ptr<RoutingMemory>> memories;
  for (int i = 0; i < simulator.services(); ++i)
    memories.push_back(policy->NewMemory(simulator.laws(i)));
  int step = 0;
  for (auto _ : state) {
    for (int i = 0; i < simulator.services(); ++i) {
      RoutingQuestion question = simulator.Question(i);
      question.step = step;  // Regions take turns by it.
      policy->Decide(question, memories[static_cast<size_t>(i)].get(), simulator.Answer(i));
    }
    ++step;
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

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 1})->Args({16, 1})->Args({16, 4})->Args({16, 20});
}
BENCHMARK(BM_Simulator)->Apply(Sizes);
BENCHMARK(BM_SimulatorWithLocality)->Apply(Sizes);
BENCHMARK(BM_SimulatorWithLp)->Apply(Sizes);
BENCHMARK(BM_SimulatorWithMpc)->Apply(Sizes);
BENCHMARK(BM_DecisionOfLp)->Apply(Sizes);
BENCHMARK(BM_DecisionOfMpc)->Apply(Sizes);
BENCHMARK(BM_DecisionOfBothTiers)->Apply(Sizes);

}  // namespace
}  // namespace rudderfish
