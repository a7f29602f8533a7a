// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <memory>

#include "base/check.h"
#include "base/rng.h"
#include "model/load_model.h"
#include "scenario/scenario.h"
#include "sim/event_simulator.h"
#include "tests/support/source_path.h"

// The event simulator: requests per second at a single station, events per second on the boutique;
// and the model of load, decision intervals of the boutique per second.

namespace rudderfish {
namespace {

constexpr int64_t kBenchSecondNs = 1'000'000'000;

void SingleStationRequests(benchmark::State& state) {
  const ServedWorkload workload{.name = "station", .slots = static_cast<int>(state.range(0))};
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(workload, 1000)));
  simulator.Start(std::make_shared<const RateCurve>(
                      RateCurve::Steady(.8 * static_cast<double>(state.range(0)))),
                  1);
  const int64_t step_ns = 100'000 * kBenchSecondNs / state.range(0);
  for (auto _ : state) simulator.AdvanceTo(simulator.now_ns() + step_ns);
  state.SetItemsProcessed(simulator.requests().completed);
}

void BoutiqueEvents(benchmark::State& state) {
  const Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/online-boutique.yaml"));
  CHECK(scenario.has_value());
  ServedApplication application = ApplicationOf(*scenario, 0);
  for (ServedWorkload& workload : application.workloads) {
    if (workload.scaled) workload.replicas = workload.replicas_max;
  }
  EventSimulator simulator(std::make_shared<const ServedApplication>(application));
  simulator.Start(std::make_shared<const RateCurve>(RateCurve::Steady(120)), 1);
  for (auto _ : state) simulator.AdvanceTo(simulator.now_ns() + 60 * kBenchSecondNs);
  state.SetItemsProcessed(simulator.events());
}

// An interval of 15 s of the boutique in the model of load, at a rate drawn anew, one workload
// scaled in each.
void BoutiqueIntervals(benchmark::State& state) {
  const Result<Scenario> scenario = LoadScenario(SourcePath("scenarios/online-boutique.yaml"));
  CHECK(scenario.has_value());
  ServedApplication application = ApplicationOf(*scenario, 0);
  for (ServedWorkload& workload : application.workloads) {
    if (workload.scaled) workload.replicas = 5;
  }
  LoadModel model(std::make_shared<const ServedApplication>(application),
                  {.step_s = static_cast<double>(state.range(0))});
  const auto top = static_cast<double>(state.range(1));
  Rng rng(1, 1);
  for (auto _ : state) {
    model.SetReplicas(rng.Between(1, 11), rng.Between(4, 8));
    model.Advance(15, rng.Uniform(20, top));
    benchmark::DoNotOptimize(model.outcome().late);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(BoutiqueIntervals)
    ->ArgNames({"step", "top"})
    ->Args({1, 110})
    ->Args({3, 110})
    ->Args({1, 220})
    ->Args({3, 220})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(SingleStationRequests)->Arg(1)->Arg(100)->Unit(benchmark::kMillisecond);
BENCHMARK(BoutiqueEvents)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rudderfish
