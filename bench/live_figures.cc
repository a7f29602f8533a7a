// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <cstdlib>
#include <functional>
#include <iostream>

#include "base/rng.h"
#include "bench/large_world.h"
#include "kube/cluster_feed.h"
#include "kube/kube_cluster.h"
#include "kube/kubeconfig.h"
#include "policy/neural.h"
#include "policy/registry.h"
#include "task/migration.h"
#include "tests/support/state_dump.h"

// Figures of the mirror and of one decision on a live cluster of thousands of hollow nodes:
//
//   testbed/testbed up --name big --nodes 0 --hollow 5000
//   testbed/testbed stop --name big kube-controller-manager   # So that what is made stays so.
//   live_figures KUBECONFIG fill 50000                        # Pods, bound to the nodes.
//   live_figures KUBECONFIG churn 100 60 &                    # Events a second, for so long.
//   chrt -r 5 live_figures KUBECONFIG measure 20              # Seconds of events that are watched.
//
// 10,000 of the pods on the first 1,000 nodes are one application of 100 workloads in a chain; it
// is what is decided on.

namespace rudderfish {
namespace {

using kube::ApiClient;
using std::chrono::milliseconds;
using std::chrono::seconds;

int64_t EventsOf(const kube::ClusterFeed& feed) {
  int64_t events = 0;
  for (const kube::ClusterFeed::Watched& one : feed.Counts()) events += one.counts.events;
  return events;
}

constexpr int kNodes = 1000, kPods = 10'000;  // The application's.
constexpr int kAllNodes = 5000;
constexpr int kDecisions = 30;

const SystemClock g_clock;

[[noreturn]] void Die(const std::string& why) {
  std::cerr << "live_figures: " << why << "\n";
  std::exit(1);
}

template <class T>
T OrDie(Result<T> result) {
  if (!result) Die(result.error().message);
  return *std::move(result);
}

void OrDie(const Result<void>& result) {
  if (!result) Die(result.error().message);
}

std::unique_ptr<ApiClient> Open(const std::string& kubeconfig, int requests_max) {
  return OrDie(ApiClient::Open(OrDie(kube::FindCluster({.kubeconfig = kubeconfig}, {})), &g_clock,
                               {.requests_max = requests_max}));
}

// Sends all, a few hundred at a time; what is there already stays.
void SendAll(ApiClient* client, int count, const std::function<kube::ApiRequest(int)>& request) {
  int under_way = 0;
  for (int i = 0; i < count; ++i) {
    ++under_way;
    client->Send(request(i), [&](const kube::ApiAnswer& answer) {
      --under_way;
      if (!answer.ok() && answer.status.code != 409) Die(answer.outcome.error().message);
    });
    while (under_way >= 256) client->Poll(milliseconds(10));
  }
  while (under_way > 0) client->Poll(milliseconds(10));
}

std::string ControllerText(const char* kind, const std::string& name, const std::string& label,
                           const std::string& owner) {
  const std::string owners =
      owner.empty() ? ""
                    : fmt::format(R"(,"ownerReferences":[{{"apiVersion":"apps/v1","kind":)"
                                  R"("Deployment","name":"{}","uid":"u","controller":true}}])",
                                  owner);
  return fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"{0}","metadata":{{"name":"{1}"{3}}},"spec":{{)"
      R"("replicas":{4},"selector":{{"matchLabels":{{"app":"{2}"}}}},"template":{{"metadata":{{)"
      R"("labels":{{"app":"{2}"}}}},"spec":{{"tolerations":[{{"operator":"Exists"}}],)"
      R"("containers":[{{"name":"main","image":"none"}}]}}}}}}}})",
      kind, name, label, owners, 100);
}

// Pod `number`: a pod of the application, or else one without an owner, on the other nodes.
std::string PodText(const State& state, int number) {
  std::string owners, node, app = "other";
  if (number < state.pods.size()) {
    app = state.workload_of(number).name;
    owners = fmt::format(R"(,"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet",)"
                         R"("name":"{}-rs","uid":"u","controller":true}}])",
                         app);
    node = fmt::format("hollow-{}", state.pods.node[number] + 1);
  } else {
    node = fmt::format("hollow-{}", kNodes + 1 + number % (kAllNodes - kNodes));
  }
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p-{0:05}","labels":{{"app":"{1}"}})"
      R"({2}}},"spec":{{"nodeName":"{3}","tolerations":[{{"operator":"Exists"}}],"containers":[{{)"
      R"("name":"main","image":"none","resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}})"
      R"(}}}}]}}}})",
      number, app, owners, node);
}

void Fill(const std::string& kubeconfig, int pods) {
  const auto client = Open(kubeconfig, 48);
  const State state = LargeState(kNodes, kPods);
  const Instant begin = g_clock.Now();
  SendAll(client.get(), kNodes, [&](int n) -> kube::ApiRequest {
    return {.method = kube::Method::kMergePatch,
            .path = fmt::format("/api/v1/nodes/hollow-{}", n + 1),
            .body = fmt::format(R"({{"metadata":{{"labels":{{"kind":"{}"}}}}}})",
                                state.kind_of(n).name)};
  });
  for (const bool sets : {false, true}) {
    SendAll(client.get(), state.catalog->workload_count(), [&](int w) -> kube::ApiRequest {
      const std::string& name = state.catalog->workloads[w].name;
      return {.method = kube::Method::kPost,
              .path = fmt::format("/apis/apps/v1/namespaces/default/{}",
                                  sets ? "replicasets" : "deployments"),
              .body = sets ? ControllerText("ReplicaSet", name + "-rs", name, name)
                           : ControllerText("Deployment", name, name, "")};
    });
  }
  SendAll(client.get(), pods, [&](int p) -> kube::ApiRequest {
    return {.method = kube::Method::kPost,
            .path = "/api/v1/namespaces/default/pods",
            .body = PodText(state, p),
            .deadline = std::chrono::minutes(2)};
  });
  fmt::print("{} pods in {:.0f} s\n", pods, Seconds(g_clock.Now() - begin));
}

void Churn(const std::string& kubeconfig, int rate, int time_s) {
  const auto client = Open(kubeconfig, 16);
  Rng rng(1);
  const Instant begin = g_clock.Now();
  int failed = 0;
  for (int i = 0; i < rate * time_s; ++i) {
    client->Send({.method = kube::Method::kMergePatch,
                  .path = fmt::format("/api/v1/namespaces/default/pods/p-{:05}", rng.Below(kPods)),
                  .body = fmt::format(R"({{"metadata":{{"labels":{{"turn":"{}"}}}}}})", i)},
                 [&](const kube::ApiAnswer& answer) { failed += answer.ok() ? 0 : 1; });
    const Instant due = begin + seconds(1) * (i + 1) / rate;
    while (g_clock.Now() < due) client->Poll(due - g_clock.Now());
  }
  fmt::print("{} changes, {} failed, {:.1f} a second\n", rate * time_s, failed,
             rate * time_s / Seconds(g_clock.Now() - begin));
}

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds_of = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

struct Parts {
  Duration refresh{0}, space{0}, decide{0};
  Duration all() const { return refresh + space + decide; }
};

// One turn, on what has come since the last.
Parts TakeTurn(kube::KubeCluster* cluster, const MigrationTask& task, const Policy& policy,
               Memory* memory, Evaluator* evaluator, State* state) {
  ActionSpace space;
  Answer answer;
  const Instant begin = g_clock.Now();
  OrDie(cluster->Refresh(state));
  const Instant refreshed = g_clock.Now();
  evaluator->Reset(*state);
  task.Space(evaluator, {}, &space);
  const Instant spaced = g_clock.Now();
  Ask ask{evaluator, &task, {}, &space, memory};
  policy.Decide({&ask, 1}, {&answer, 1});
  return {refreshed - begin, spaced - refreshed, g_clock.Now() - spaced};
}

void Measure(const std::string& kubeconfig, int time_s) {
  const int64_t before = ResidentBytes();
  const Instant begin = g_clock.Now();
  const double cpu_before = CpuSeconds();
  const auto client = Open(kubeconfig, 16);
  kube::Mirror mirror(&g_clock);
  kube::ClusterFeed feed(client.get());
  feed.Add(&mirror);
  OrDie(feed.Sync(std::chrono::minutes(2)));
  const Instant synced = g_clock.Now();
  const State shape = LargeState(kNodes, kPods);
  kube::KubeCluster cluster(&mirror, testing::ApplicationOf(shape));
  State state;
  OrDie(cluster.Refresh(&state));
  fmt::print(
      "mirror of {} nodes and {} pods: ready after {:.2f} s (listed {:.2f} s, {:.2f} s of "
      "CPU), {:.0f} MB resident ({:.0f} MB before)\n",
      mirror.nodes.objects().size(), mirror.pods.objects().size(), Seconds(g_clock.Now() - begin),
      Seconds(synced - begin), CpuSeconds() - cpu_before, ResidentBytes() / 1e6, before / 1e6);

  const int64_t events = EventsOf(feed);
  const Instant watched = g_clock.Now();
  const double cpu = CpuSeconds();
  while (g_clock.Now() < watched + seconds(time_s)) {
    const Instant next = g_clock.Now() + milliseconds(500);
    while (g_clock.Now() < next) feed.Poll(next - g_clock.Now());
    OrDie(cluster.Refresh(&state));
  }
  const double took_s = Seconds(g_clock.Now() - watched);
  fmt::print("{:.0f} events a second: {:.1f} % of a core; {:.0f} MB resident\n",
             static_cast<double>(EventsOf(feed) - events) / took_s,
             100 * (CpuSeconds() - cpu) / took_s, ResidentBytes() / 1e6);

  const MigrationTask task{MigrationOptions{}};
  auto net =
      std::make_shared<nn::CandidateNet>(nn::NetShape{.widths = task.widths(), .hidden = 64});
  Rng rng(1);
  net->Initialize(&rng);
  const NeuralPolicy neural("network", net);
  const auto greedy = OrDie(MakePolicy("greedy", task));
  Evaluator evaluator(*LatencyLaw::Named("physical"));
  for (const Policy* policy :
       {static_cast<const Policy*>(&neural), static_cast<const Policy*>(greedy.get())}) {
    const auto memory = policy->NewMemory(1);
    std::vector<Parts> turns;
    for (int i = 0; i < kDecisions; ++i) {
      feed.Poll(milliseconds(50));
      turns.push_back(TakeTurn(&cluster, task, *policy, memory.get(), &evaluator, &state));
    }
    std::sort(turns.begin(), turns.end(),
              [](const Parts& a, const Parts& b) { return a.all() < b.all(); });
    const Parts& middle = turns[turns.size() / 2];
    fmt::print(
        "{} nodes, {} pods, {}: median {:.1f} ms (refresh {:.1f}, space {:.1f}, encode and "
        "decide {:.1f}), worst of {} {:.1f} ms\n",
        state.nodes.size(), state.pods.size(), policy->name(), Seconds(middle.all()) * 1e3,
        Seconds(middle.refresh) * 1e3, Seconds(middle.space) * 1e3, Seconds(middle.decide) * 1e3,
        turns.size(), Seconds(turns.back().all()) * 1e3);
  }
}

}  // namespace
}  // namespace rudderfish

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[2] : "";
  if (command == "fill" && argc == 4) {
    rudderfish::Fill(argv[1], std::atoi(argv[3]));
  } else if (command == "churn" && argc == 5) {
    rudderfish::Churn(argv[1], std::atoi(argv[3]), std::atoi(argv[4]));
  } else if (command == "measure" && argc == 4) {
    rudderfish::Measure(argv[1], std::atoi(argv[3]));
  } else {
    std::cerr << "live_figures KUBECONFIG fill PODS | churn RATE SECONDS | measure SECONDS\n";
    return 2;
  }
}
