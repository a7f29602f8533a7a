// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "bench/large_world.h"
#include "kube/kube_cluster.h"
#include "policy/neural.h"
#include "task/migration.h"
#include "tests/support/state_dump.h"

// The mirror of a large cluster, and one decision on it: pages of 500 objects, each as large as the
// API server writes them (managedFields and all), parsed and mirrored; what that takes of memory;
// what one changed pod costs; and Refresh, Encode and Decide for one application that is all of
// the cluster. No network and no API server: what is measured is ours.

namespace rudderfish {
namespace {

using testing::ParsedJson;

// What the API server adds and the mirror does not read, so that parsing has its real cost.
std::string Padded(std::string object, size_t bytes) {
  const size_t at = object.find(R"("metadata":{)") + 12;
  return object.insert(
      at, fmt::format(R"("managedFields":[{{"manager":"{}"}}],)", std::string(bytes, 'x')));
}

void Feed(kube::Mirror* mirror, kube::Resource resource, const std::vector<std::string>& pages) {
  simdjson::dom::parser parser;
  kube::ObjectSink* sink = mirror->SinkOf(resource);
  sink->BeginList();
  for (const std::string& page : pages) {
    simdjson::dom::array items;
    CHECK(parser.parse(page)["items"].get(items) == simdjson::SUCCESS);
    for (const simdjson::dom::element item : items) CHECK(sink->Listed(item).has_value());
  }
  sink->EndList();
}

template <class Text>
std::vector<std::string> Pages(int count, Text text) {
  std::vector<std::string> pages, items;
  for (int i = 0; i < count; ++i) {
    items.push_back(text(i));
    if (items.size() < 500 && i + 1 < count) continue;
    pages.push_back(testing::ListJson(items));
    items.clear();
  }
  return pages;
}

// Everything that a mirror must have of a cluster, as the API server lists it.
struct ClusterPages {
  std::vector<std::string> nodes, pods, replica_sets, deployments;

  explicit ClusterPages(const State& state) {
    nodes = Pages(state.nodes.size(),
                  [&](int i) { return Padded(testing::NodeObject(state, i), 2000); });
    pods =
        Pages(state.pods.size(), [&](int i) { return Padded(testing::PodObject(state, i), 1200); });
    const auto name = [&](int w) { return state.catalog->workloads[w].name; };
    const int workloads = state.catalog->workload_count();
    deployments =
        Pages(workloads, [&](int w) { return testing::ControllerJson("Deployment", name(w)); });
    replica_sets = Pages(workloads, [&](int w) {
      return testing::ControllerJson("ReplicaSet", name(w) + "-rs", 1, "Deployment", name(w));
    });
  }

  void FeedInto(kube::Mirror* mirror) const {
    Feed(mirror, kube::Resource::kNodes, nodes);
    Feed(mirror, kube::Resource::kDeployments, deployments);
    Feed(mirror, kube::Resource::kReplicaSets, replica_sets);
    Feed(mirror, kube::Resource::kPods, pods);
  }
};

void MirrorReady(benchmark::State& bench) {
  const State state =
      LargeState(static_cast<int>(bench.range(0)), static_cast<int>(bench.range(1)));
  const ClusterPages pages(state);
  const SystemClock clock;
  for (auto _ : bench) {
    const int64_t before = ResidentBytes();
    kube::Mirror mirror(&clock);
    pages.FeedInto(&mirror);
    kube::KubeCluster cluster(&mirror, testing::ApplicationOf(state));
    State seen;
    CHECK(cluster.Refresh(&seen).has_value());
    CHECK_EQ(seen.pods.size(), state.pods.size());
    bench.counters["MB"] = static_cast<double>(ResidentBytes() - before) / 1e6;
  }
}
BENCHMARK(MirrorReady)->Args({5000, 50'000})->Iterations(1)->Unit(benchmark::kMillisecond);

// One changed pod: parsed, mirrored; and the State brought up to date ten times a second at 100
// events each second. Multiply by 100 for a share of a core.
void PodEvents(benchmark::State& bench) {
  const State state =
      LargeState(static_cast<int>(bench.range(0)), static_cast<int>(bench.range(1)));
  const ClusterPages pages(state);
  const SystemClock clock;
  kube::Mirror mirror(&clock);
  pages.FeedInto(&mirror);
  kube::KubeCluster cluster(&mirror, testing::ApplicationOf(state));
  State seen, other = state;
  CHECK(cluster.Refresh(&seen).has_value());
  simdjson::dom::parser parser;
  int event = 0;
  for (auto _ : bench) {
    const PodId pod = (event * 31) % state.pods.size();
    other.pods.node[pod] = (state.pods.node[pod] + event) % state.nodes.size();
    const std::string text = Padded(testing::PodObject(other, pod), 1200);
    CHECK(mirror.SinkOf(kube::Resource::kPods)->Changed(parser.parse(text)).has_value());
    if (++event % 10 == 0) CHECK(cluster.Refresh(&seen).has_value());
  }
}
BENCHMARK(PodEvents)->Args({5000, 50'000})->Unit(benchmark::kMicrosecond);

// A turn of the controller after one pod has moved, with a network of the usual size.
void RefreshEncodeDecide(benchmark::State& bench) {
  const State state =
      LargeState(static_cast<int>(bench.range(0)), static_cast<int>(bench.range(1)));
  const ClusterPages pages(state);
  const SystemClock clock;
  kube::Mirror mirror(&clock);
  pages.FeedInto(&mirror);
  kube::KubeCluster cluster(&mirror, testing::ApplicationOf(state));
  const MigrationTask task{MigrationOptions{}};
  auto net =
      std::make_shared<nn::CandidateNet>(nn::NetShape{.widths = task.widths(), .hidden = 64});
  Rng rng(1);
  net->Initialize(&rng);
  const NeuralPolicy policy("net", net);
  const auto memory = policy.NewMemory(1);
  Evaluator evaluator(*LatencyLaw::Named("physical"));
  ActionSpace space;
  State seen, other = state;
  simdjson::dom::parser parser;
  int event = 0;
  for (auto _ : bench) {
    bench.PauseTiming();
    const PodId pod = (event++ * 31) % state.pods.size();
    other.pods.node[pod] = (other.pods.node[pod] + 1) % state.nodes.size();
    const std::string text = testing::PodObject(other, pod);
    CHECK(mirror.SinkOf(kube::Resource::kPods)->Changed(parser.parse(text)).has_value());
    bench.ResumeTiming();
    const Instant begin = clock.Now();
    CHECK(cluster.Refresh(&seen).has_value());
    const Instant refreshed = clock.Now();
    evaluator.Reset(seen);
    task.Space(&evaluator, {}, &space);
    const Instant spaced = clock.Now();
    Ask ask{&evaluator, &task, {}, &space, memory.get()};
    Answer answer;
    policy.Decide({&ask, 1}, {&answer, 1});
    benchmark::DoNotOptimize(answer.choice);
    const auto note = [&](const char* part, Duration took) {
      bench.counters[part] = benchmark::Counter(Seconds(took) * 1e3);
    };
    note("refresh_ms", refreshed - begin);
    note("space_ms", spaced - refreshed);
    note("encode_and_decide_ms", clock.Now() - spaced);
    bench.counters["candidates"] = static_cast<double>(space.candidates.size());
  }
}
BENCHMARK(RefreshEncodeDecide)->Args({1000, 10'000})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rudderfish
