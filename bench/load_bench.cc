// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "model/capacity_ladder.h"
#include "model/load_model.h"
#include "nn/candidate_net.h"
#include "policy/neural_scaling.h"
#include "scenario/scenario.h"
#include "sim/event_simulator.h"
#include "tests/support/shop_text.h"
#include "tests/support/source_path.h"

// The event simulator: requests per second at a single station, events per second on the boutique;
// the model of load, decision intervals of the boutique per second; and of an application of 300
// workloads what a decision of a learned policy takes, and the ladder that it picks from.

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

// An interval of 15 s of the boutique in the model of load, at a newly drawn rate, one workload
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

// Thirty endpoints, each a tree of ten services of its own that also calls the next one's front;
// up to ten pods each.
ServedApplication LargeApplication() {
  constexpr int kEndpoints = 30, kEach = 10;
  std::string workloads, endpoints, pods;
  for (int s = 0; s < kEndpoints * kEach; ++s) {
    const std::string_view end = s + 1 < kEndpoints * kEach ? "\n" : "";
    workloads += fmt::format(
        "  s{}: {{requests: {{cpu: 100m, memory: 64Mi}}, replicas: 1, execution: {}ms}}{}", s,
        20 + s * 7 % 30, end);
    pods +=
        fmt::format("    s{}: {{replicas: 1 to 10, scv: 0.5, start_delay: 10s to 20s}}{}", s, end);
  }
  for (int e = 0; e < kEndpoints; ++e) {
    const int s = e * kEach;
    endpoints += fmt::format(
        "    e{}: {{client: client, rate: 1, qos: 1s, calls: [{{s{}: {{calls: [s{}, {{s{}: "
        "{{calls: [s{}, s{}]}}}}, {{s{}: {{calls: [s{}, {{s{}: {{calls: [s{}, s{}]}}}}]}}}}, "
        "s{}]}}}}]}}{}",
        e, s, s + 1, s + 2, s + 3, s + 4, s + 5, s + 6, s + 7, s + 8, s + 9,
        (s + kEach) % (kEndpoints * kEach), e + 1 < kEndpoints ? "\n" : "");
  }
  const Result<Scenario> scenario =
      ParseScenario(testing::ShopText({.workloads = workloads,
                                       .endpoints = endpoints,
                                       .pods = pods,
                                       .loads = "    steady: {steady: {rate: 800}}"}),
                    "large.yaml");
  CHECK(scenario.has_value());
  return ApplicationOf(*scenario, 0);
}

// Once a start of a policy: one application has one ladder.
void LargeLadder(benchmark::State& state) {
  const auto application = std::make_shared<const ServedApplication>(LargeApplication());
  int rungs = 0;
  for (auto _ : state) rungs = CapacityLadder(application, 0.01).rungs();
  state.counters["rungs"] = rungs;
}

// The whole decision, from what metrics show of every pod: what to expect, candidates and their
// features, the network (with the call graph a row a workload too), replicas of all workloads.
void LargeDecisions(benchmark::State& state) {
  const ServedApplication application = LargeApplication();
  const auto rows = static_cast<ScalingRows>(state.range(0));
  auto net = std::make_shared<nn::CandidateNet>(nn::NetShape{.widths = ScalingTask::Widths(rows)});
  Rng rng(1, 1);
  net->Initialize(&rng);
  const NeuralScaling policy(std::move(net), 0.01, 20);
  const std::unique_ptr<ScalingMemory> memory = policy.NewMemory(application);
  constexpr int64_t kIntervalNs = 15 * kBenchSecondNs;
  const std::vector<double> calls = application.CallsPerRequest();
  const std::vector<HpaPod> pods(10);  // All ready.
  std::vector<WorkloadSight> sights(application.workloads.size());
  std::vector<int> replicas(application.workloads.size(), 4);
  int64_t at_ns = 0;
  for (auto _ : state) {
    state.PauseTiming();
    at_ns += kIntervalNs;
    const double per_s = rng.Uniform(300, 1500);
    for (size_t w = 0; w < sights.size(); ++w) {
      sights[w] = {.replicas = replicas[w],
                   .calls_per_s = calls[w] * per_s,
                   .pods = std::span(pods).first(static_cast<size_t>(replicas[w]))};
    }
    state.ResumeTiming();
    policy.Decide({.at_ns = at_ns,
                   .sampled_at_ns = at_ns - kIntervalNs,
                   .window_ns = kIntervalNs,
                   .has_samples = true,
                   .application = &application,
                   .workloads = sights},
                  memory.get(), replicas);
    benchmark::DoNotOptimize(replicas.data());
  }
}

BENCHMARK(LargeLadder)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(LargeDecisions)
    ->ArgName("call_graph")
    ->Arg(static_cast<int>(ScalingRows::kRungs))
    ->Arg(static_cast<int>(ScalingRows::kCallGraph))
    ->Unit(benchmark::kMicrosecond);
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
