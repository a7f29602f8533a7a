// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "model/kube_scores.h"
#include "tests/support/random_scheduling.h"

// One pod on 5,000 nodes with 20,000 others: filter and kube-scheduler's scores, and the pod put
// somewhere. The argument says what the pods ask: 0 resources alone, 1 also topology spread by
// default, 2 anti-affinity, 3 constraints of topology spread, 4 every rule at once.

namespace rudderfish {
namespace {

enum Kind : int64_t { kPlain, kDefaultSpread, kAntiAffinity, kSpread, kEverything };

std::shared_ptr<const PodClass> MakePod(Kind kind, int app, testing::RandomScheduling* random) {
  auto pod = std::make_shared<PodClass>();
  if (kind == kEverything) *pod = random->Pod();
  const LabelSelector mine{{{"app", LabelRequirement::Operator::kIn, {std::to_string(app)}}}};
  pod->object_namespace = "default";
  pod->labels = {{"app", std::to_string(app)}, {"version", "1"}};
  pod->containers = 1;
  const Resources asked{100, 200 * testing::kMebi};
  pod->amounts = {asked, 0, {}, asked, asked, asked};
  if (kind == kDefaultSpread) pod->default_spread = mine;
  if (kind == kAntiAffinity) pod->forbidden_pods = {{{"default"}, {}, mine, testing::kHostKey}};
  if (kind == kSpread) {
    pod->spread = {{testing::kZoneKey, 5, SpreadConstraint::When::kDoNotSchedule, mine},
                   {testing::kHostKey, 1, SpreadConstraint::When::kScheduleAnyway, mine}};
  }
  return pod;
}

void BM_PlaceOnePod(benchmark::State& state) {
  constexpr int kNodes = 5000, kPods = 20'000, kApps = 200;
  const Kind kind = static_cast<Kind>(state.range(0));
  testing::RandomScheduling random(Rng(1));
  std::vector<SchedulingNode> nodes;
  for (int n = 0; n < kNodes; ++n) {
    SchedulingNode node = random.Node(n);
    node.allocatable = {32'000, 131'072 * testing::kMebi};
    node.pods_max = 110;
    nodes.push_back(std::move(node));
  }
  SchedulingRules rules;
  rules.Reset(std::move(nodes), testing::RandomNamespaces());
  std::vector<PodClassId> classes;
  for (int app = 0; app < kApps; ++app)
    classes.push_back(rules.Register(MakePod(kind, app, &random)));
  for (int i = 0; i < kPods; ++i) rules.Assume(classes[i % kApps], random.rng().Below(kNodes));
  Feasibility feasibility;
  KubeScores scores;
  std::vector<double> micros;
  size_t turn = 0;
  for (auto _ : state) {
    const PodClassId pod = classes[turn++ % kApps];
    const auto begin = std::chrono::steady_clock::now();
    rules.Filter(pod, &feasibility);
    ScoreAsKube(rules, pod, feasibility, &scores);
    const auto best = std::max_element(scores.total.begin(), scores.total.end());
    const auto node = static_cast<NodeId>(best - scores.total.begin());
    rules.Assume(pod, node);
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    micros.push_back(taken.count());
    state.SetIterationTime(taken.count() * 1e-6);
    rules.Forget(pod, node);
  }
  std::sort(micros.begin(), micros.end());
  state.counters["p50_us"] = micros[micros.size() / 2];
  state.counters["p99_us"] = micros[micros.size() * 99 / 100];
}
BENCHMARK(BM_PlaceOnePod)->DenseRange(0, 4)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rudderfish
