// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/files.h"
#include "compat/reach.h"
#include "policy/registry.h"
#include "task/migration.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/source_path.h"

// What POST /get_action costs without the network: from the bytes of a request to those of the
// answer. The bar is a 99th percentile of 1 ms for REACH's cluster.

namespace rudderfish {
namespace {

ReachWorld WorldOf(const Scenario& scenario) {
  ReachWorld world{.catalog = scenario.catalog,
                   .calls = scenario.patterns[scenario.PatternNamed("aggregator_sequential")]};
  world.network.layers = scenario.catalog->layer_count();
  for (const Distribution& latency : scenario.latency_ms)
    world.network.latency_ms.push_back((latency.min() + latency.max()) / 2);
  return world;
}

// Of this thread: what the machine does besides is not in it.
double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void AddQuantiles(const std::string& suffix, std::vector<double> seconds, benchmark::State* state) {
  std::sort(seconds.begin(), seconds.end());
  state->counters["p50_" + suffix] = seconds[seconds.size() / 2] * 1e3;
  state->counters["p99_" + suffix] = seconds[seconds.size() * 99 / 100] * 1e3;
}

void GetAction(benchmark::State& state, const std::string& policy_name) {
  const auto scenario = testing::ShippedScenario("continuum-7x21");
  const ReachWorld world = WorldOf(*scenario);
  const MigrationTask task({});
  const auto policy = MakePolicy(policy_name, task);
  CHECK(policy.has_value());
  const auto request = ReadFile(SourcePath("tests/data/reach-wire/get_action_request.json"));
  CHECK(request.has_value());
  ReachServer server(&world, LatencyLaw::Reach(), &task, policy->get(), 1);
  const SystemClock clock;
  std::vector<double> seconds, cpu_seconds;
  for (auto unused : state) {
    const Instant start = clock.Now();
    const double cpu_start = CpuSeconds();
    const HttpResponse response =
        server.GetAction({.method = "POST", .content_type = "application/json", .body = *request});
    cpu_seconds.push_back(CpuSeconds() - cpu_start);
    seconds.push_back(Seconds(clock.Now() - start));
    CHECK_EQ(response.status, 200);
  }
  AddQuantiles("ms", seconds, &state);
  AddQuantiles("cpu_ms", cpu_seconds, &state);
}

BENCHMARK_CAPTURE(GetAction, greedy, "greedy")->MinTime(2);
BENCHMARK_CAPTURE(GetAction, learned, SourcePath("policies/continuum.safetensors"))->MinTime(2);
BENCHMARK_CAPTURE(GetAction, best_of_16,
                  "best-of:samples=16,run=" + SourcePath("policies/continuum.safetensors"))
    ->MinTime(2);

}  // namespace
}  // namespace rudderfish
