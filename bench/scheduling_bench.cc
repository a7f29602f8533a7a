// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "control/live_policy.h"
#include "control/scheduling_tables.h"
#include "learn/learner.h"
#include "learn/training_worlds.h"
#include "model/kube_scores.h"
#include "model/preemption.h"
#include "nn/checkpoint.h"
#include "policy/neural_placement.h"
#include "tests/support/random_scheduling.h"
#include "tests/support/two_types_world.h"

// One pod on 5,000 nodes with 20,000 others: filter and scores, and the pod put somewhere.
//
// BM_PlaceOnePod: kube-scheduler's scores. The argument says what the pods ask: 0 resources alone,
// 1 also topology spread by default, 2 anti-affinity, 3 constraints of topology spread, 4 every
// rule at once.
//
// BM_PlaceOnePodAsLearned: those of a network of the shape that `train` makes, as it is before its
// first step, since what it has learned costs no time; read from its checkpoint, as `run` reads it.
// 0: pods are alike, and so are many nodes; 1: no two nodes are.
//
// BM_ImagesChange: a node of 5,000, with 50 images each, has pulled one and dropped another, and
// 1,000 classes of pods are asked about, each with an image of its own: 0: images of none of them;
// 1: of one.
//
// BM_NamespaceAppears: in which no pod is, beside 20,000 pods on 5,000 nodes; until the tables can
// be asked.
//
// BM_RefuseOnePod: why no node takes it, in words, where on each are pods of lower priority that
// may be in its way, or (0) none.

namespace rudderfish {
namespace {

constexpr int kNodes = 5000, kPods = 20'000;

void CountQuantiles(benchmark::State& state, std::vector<double> micros) {
  std::sort(micros.begin(), micros.end());
  state.counters["p50_us"] = micros[micros.size() / 2];
  state.counters["p99_us"] = micros[micros.size() * 99 / 100];
}

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
  constexpr int kApps = 200;
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
  CountQuantiles(state, std::move(micros));
}
BENCHMARK(BM_PlaceOnePod)->DenseRange(0, 4)->UseManualTime()->Unit(benchmark::kMicrosecond);

LivePolicy LearnedPolicy() {
  Result<Scenario> scenario = ParseScenario(testing::kTwoTypesWorld, "two-types.yaml");
  CHECK(scenario.has_value());
  const Result<TrainingWorlds> worlds =
      TrainingWorlds::Make({{std::make_shared<const Scenario>(*std::move(scenario))}});
  CHECK(worlds.has_value());
  TrainOptions options;
  UsePlacementDefaults(&options);
  nn::SafetensorsFile file;
  nn::AddNet(MakeLearner(options, worlds->list())->net(), &file);
  DescribePlacement(PlacementTask(*worlds->first().placement->scenario->objective), &file);
  DescribePlacementWorld(*worlds->FactsOfAll(), &file);
  AddFamiliarity(worlds->SeenByAll(), &file);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("rudderfish-scheduling-bench-" + std::to_string(::getpid()) + ".safetensors");
  CHECK(file.Write(path).has_value());
  // However unlike training this is: its own scores are what is timed.
  Result<LivePolicy> policy = LivePolicy::Load({.policy = path.string(), .strangeness_max = 1e9});
  std::filesystem::remove(path);
  CHECK(policy.has_value());
  return *std::move(policy);
}

// Pods of which each is like few others, or like all.
std::shared_ptr<const PodClass> MakeSizedPod(int64_t varied, Rng* rng) {
  auto pod = std::make_shared<PodClass>();
  pod->object_namespace = "default";
  pod->containers = 1;
  const int64_t cpu_millis = varied == 0 ? 100 : 50 + rng->Below(400);
  const int64_t memory_mebi = varied == 0 ? 200 : 50 + rng->Below(800);
  const Resources asked{cpu_millis, memory_mebi * testing::kMebi};
  pod->amounts = {asked, 0, {}, asked, asked, asked};
  return pod;
}

void BM_PlaceOnePodAsLearned(benchmark::State& state) {
  constexpr int kClasses = 200, kKept = 1000;
  const LivePolicy policy = LearnedPolicy();
  const std::unique_ptr<NodeScorer> scorer = policy.NewScorer();
  Rng rng(1);
  std::vector<SchedulingNode> nodes(kNodes);
  for (int n = 0; n < kNodes; ++n) {
    SchedulingNode& node = nodes[n];
    node.name = "n" + std::to_string(n);
    node.labels = {{testing::kHostKey, node.name},
                   {std::string(kNodeTypeLabel), n % 2 == 0 ? "small" : "large"}};
    node.allocatable = {32'000, 131'072 * testing::kMebi};
    node.pods_max = 110;
    if (n % 2 == 1) node.scalars = {{"nvidia.com/gpu", 2}};
  }
  SchedulingRules rules;
  rules.Reset(std::move(nodes), {});
  std::vector<PodClassId> classes;
  for (int c = 0; c < kClasses; ++c)
    classes.push_back(rules.Register(MakeSizedPod(state.range(0), &rng)));
  for (int i = 0; i < kPods; ++i)
    rules.Assume(classes[i % kClasses], static_cast<NodeId>(rng.Below(kNodes)));
  Feasibility feasibility;
  std::vector<double> scores, micros;
  std::deque<std::pair<PodClassId, NodeId>> placed;
  size_t turn = 0;
  const auto place = [&] {
    const PodClassId pod = classes[turn++ % kClasses];
    rules.Filter(pod, &feasibility);
    scorer->Score(rules, pod, feasibility, &scores);
    const auto best = std::max_element(scores.begin(), scores.end());
    const auto node = static_cast<NodeId>(best - scores.begin());
    rules.Assume(pod, node);
    placed.emplace_back(pod, node);
  };
  place();  // Reads all nodes.
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    place();
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    CHECK(scorer->stepped_back() == StepBack::kNone);
    micros.push_back(taken.count());
    state.SetIterationTime(taken.count() * 1e-6);
    if (placed.size() <= kKept) continue;
    rules.Forget(placed.front().first, placed.front().second);
    placed.pop_front();
  }
  CountQuantiles(state, std::move(micros));
}
BENCHMARK(BM_PlaceOnePodAsLearned)
    ->DenseRange(0, 1)
    ->Iterations(3000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

SchedulingNode PlainNode(int number) {
  SchedulingNode node;
  node.name = "n" + std::to_string(number);
  node.labels = {{testing::kHostKey, node.name}};
  node.allocatable = {32'000, 131'072 * testing::kMebi};
  node.pods_max = 110;
  return node;
}

void BM_ImagesChange(benchmark::State& state) {
  constexpr int kClasses = 1000, kImagesEach = 50, kImages = 2000;
  Rng rng(1);
  const auto image = [](uint32_t number) {
    return NodeImage{"registry.local/app-" + std::to_string(number) + ":1", 300 * testing::kMebi};
  };
  std::vector<SchedulingNode> nodes;
  std::vector<NodeImage> images(kImagesEach);
  for (int n = 0; n < kNodes; ++n) {
    for (NodeImage& one : images) one = image(rng.Below(kImages));
    nodes.push_back(PlainNode(n));
    nodes.back().images = images;
  }
  SchedulingNode changed = nodes.back();
  SchedulingRules rules;
  const auto changed_id = static_cast<NodeId>(nodes.size()) - 1;
  rules.Reset(std::move(nodes), {});
  for (int c = 0; c < kClasses; ++c) {
    auto pod = std::make_shared<PodClass>();
    pod->object_namespace = "default";
    pod->containers = 1;
    pod->images = {image(c).name};
    rules.Register(pod);
  }
  // Those of classes come first.
  const uint32_t first = state.range(0) == 0 ? kClasses : 0;
  uint32_t turn = 0;
  for (auto _ : state) {
    images.back() = image(first + turn++ % 2);
    changed.images = images;
    rules.ReplaceNode(changed_id, changed);
  }
}
BENCHMARK(BM_ImagesChange)->DenseRange(0, 1)->Unit(benchmark::kMicrosecond);

void BM_NamespaceAppears(benchmark::State& state) {
  constexpr int kApps = 200;
  testing::RandomScheduling random(Rng(1));
  SchedulingTables tables;
  for (int n = 0; n < kNodes; ++n) tables.PutNode(PlainNode(n));
  std::vector<std::shared_ptr<const PodClass>> shapes;
  for (int app = 0; app < kApps; ++app) shapes.push_back(MakePod(kEverything, app, &random));
  for (int i = 0; i < kPods; ++i) {
    tables.Place("default/p" + std::to_string(i), shapes[i % kApps],
                 "n" + std::to_string(random.rng().Below(kNodes)), PodLife::kServing);
  }
  tables.Rules();
  int turn = 0;
  for (auto _ : state) {
    const std::string name = "new-" + std::to_string(turn++);
    tables.PutNamespace(name, {{"kubernetes.io/metadata.name", name}});
    benchmark::DoNotOptimize(&tables.Rules());
  }
}
BENCHMARK(BM_NamespaceAppears)->Unit(benchmark::kMicrosecond);

void BM_RefuseOnePod(benchmark::State& state) {
  constexpr int kApps = 200;
  testing::RandomScheduling random(Rng(1));
  std::vector<SchedulingNode> nodes;
  for (int n = 0; n < kNodes; ++n) nodes.push_back(PlainNode(n));
  SchedulingRules rules;
  rules.Reset(std::move(nodes), {});
  for (int i = 0; i < kPods; ++i) {
    rules.Assume(rules.RegisterPlaced(MakePod(kPlain, i % kApps, &random)),
                 static_cast<NodeId>(i % kNodes));
  }
  auto large = std::make_shared<PodClass>(*MakePod(kPlain, 0, &random));
  large->amounts.requests.cpu_millis = 32'000;
  large->priority = state.range(0);
  const PodClassId pod = rules.Register(large);
  Feasibility feasibility;
  rules.Filter(pod, &feasibility);
  for (auto _ : state) {
    const std::string words =
        rules.Message(pod, feasibility) + PreemptionText(rules, pod, feasibility, "rudderfish");
    benchmark::DoNotOptimize(words.data());
  }
}
BENCHMARK(BM_RefuseOnePod)->DenseRange(0, 1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rudderfish
