// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "policy/greedy.h"
#include "sim/world.h"
#include "task/migration.h"
#include "tests/support/shipped_scenario.h"

// One greedy decision, from a state whose alternatives are listed to the answer, from REACH's
// cluster to 1,000 nodes with 10,000 pods, under both laws; and what asking the Model for one move
// costs there. Run as `chrt -r 5 build/release/bench/greedy_bench`.

namespace rudderfish {
namespace {

struct Situation {
  Situation(const std::string& scenario, const LatencyLaw& law) : model(law) {
    const World world(testing::ShippedScenario(scenario));
    Rng rng(1);
    CHECK(world.Draw(&rng, &state).has_value());
    model.Reset(state);
    task.Space(&model, {}, &space);
  }

  MigrationTask task{{}};
  State state;
  Evaluator model;
  ActionSpace space;
};

void Decide(benchmark::State& bench, const std::string& scenario, const LatencyLaw& law) {
  Situation situation(scenario, law);
  const GreedyPolicy greedy;
  const auto memory = greedy.NewMemory(1);
  Ask ask{.model = &situation.model,
          .task = &situation.task,
          .space = &situation.space,
          .memory = memory.get()};
  Answer answer;
  for (auto unused : bench) {
    greedy.Decide({&ask, 1}, {&answer, 1});
    benchmark::DoNotOptimize(answer.choice);
  }
  bench.counters["candidates"] = situation.space.count();
  bench.counters["choice"] = answer.choice;
}

void Try(benchmark::State& bench, const std::string& scenario, const LatencyLaw& law) {
  Situation situation(scenario, law);
  int next = 0;
  for (auto unused : bench) {
    benchmark::DoNotOptimize(situation.model.Try(situation.space.candidates[next].move));
    next = (next + 1) % situation.space.count();
  }
}

const int registered = [] {
  for (const std::string scenario : {"continuum-7x21", "continuum-22x41", "continuum-40x350",
                                     "continuum-100x1000", "continuum-1000x10000"}) {
    for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
      const std::string where = scenario + "/" + std::string(law->name);
      benchmark::RegisterBenchmark(("decide/" + where).c_str(), Decide, scenario, *law)
          ->Unit(benchmark::kMicrosecond);
      benchmark::RegisterBenchmark(("try/" + where).c_str(), Try, scenario, *law)
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return 0;
}();

}  // namespace
}  // namespace rudderfish
