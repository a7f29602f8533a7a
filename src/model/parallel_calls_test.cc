// SPDX-License-Identifier: Apache-2.0
#include "model/parallel_calls.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "model/evaluator.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::WorldBuilder;

// Three layers, some far from others; each pod has a node of its own, so that none is on one node.
struct Scattered {
  WorldBuilder world;
  std::vector<KindId> kinds;
  std::vector<WorkloadId> workloads;

  Scattered(int count, Rng* rng) {
    std::vector<LayerId> layers;
    for (int i = 0; i < 3; ++i) {
      layers.push_back(world.Layer("l" + std::to_string(i)));
      kinds.push_back(world.Kind("k" + std::to_string(i), layers[i], 1.0 + i));
    }
    for (const LayerId a : layers)
      for (const LayerId b : layers) world.Latency(a, b, a == b ? 1 : rng->Uniform() * 100);
    for (int w = 0; w < count; ++w) {
      workloads.push_back(world.Workload("w" + std::to_string(w), 100, 100, w > 0));
      const int pods = w == 0 ? 1 : 1 + static_cast<int>(rng->Below(3));
      for (int p = 0; p < pods; ++p)
        world.Pod(workloads[w], world.Node(kinds[rng->Below(3)], 1000, 1000));
    }
  }
};

CallTree Leaf(WorkloadId workload, double ms) {
  return {.workload = workload, .execution_ms = ms, .data_mbytes = 0};
}

// The mean over all ways in which a request can choose replicas, one by one.
class AllChoices {
 public:
  explicit AllChoices(const Evaluator& model) : model_(model), pod_(model.calls().call_count()) {}

  double MeanMs() {
    const Endpoint& e = model_.calls().endpoints[0];
    return Choose(e.root, e.end, e.root);
  }

 private:
  double Choose(CallId call, CallId end, CallId root) {
    if (call == end) return Latency(root);
    double sum = 0;
    int pods = 0;
    const State& state = model_.state();
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      if (state.pods.workload[pod] != model_.calls().calls[call].workload) continue;
      pod_[call] = state.nodes.kind[state.pods.node[pod]];
      sum += Choose(call + 1, end, root);
      ++pods;
    }
    return sum / pods;
  }

  double Latency(CallId call) const {
    const CallGraph& calls = model_.calls();
    double slowest = 0;
    for (int g = calls.calls[call].first_group; g < calls.calls[call].last_group; ++g) {
      double sum = 0;
      for (int i = calls.groups[g].first; i < calls.groups[g].last; ++i) {
        const CallId callee = calls.sequence[i];
        sum += model_.HopMsBetween(pod_[call], pod_[callee]) + Latency(callee);
      }
      slowest = std::max(slowest, sum);
    }
    return model_.SojournMs(call, pod_[call]) + slowest;
  }

  const Evaluator& model_;
  std::vector<KindId> pod_;
};

double Parts(const Terms& t) {
  return t.execution_ms + t.network_ms + t.transfer_ms + t.queueing_ms;
}

TEST(ParallelCalls, OfOneCallEachAreWaitedForAsLongAsAllChoicesSay) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    Scattered at(5, &rng);
    const auto& w = at.workloads;
    at.world.Endpoint(
        {.workload = w[0],
         .groups = {{{.workload = w[1],
                      .execution_ms = 5,
                      .data_mbytes = 0,
                      .groups = {{Leaf(w[2], 3)}, {Leaf(w[3], 20)}, {Leaf(w[4], 9)}}}}}});
    const State state = at.world.Build();
    Evaluator model(LatencyLaw::Physical());
    model.Reset(state);
    EXPECT_NEAR(model.Now().latency_ms, AllChoices(model).MeanMs(), 1e-9) << seed;
    EXPECT_NEAR(model.Now().latency_ms, Parts(model.Now()), 1e-9);
  }
}

TEST(ParallelCalls, WithCallsBehindThemAreNearWhatAllChoicesSay) {
  double error = 0, by_means_error = 0;
  constexpr int kWorlds = 60;
  LatencyLaw by_means = LatencyLaw::Physical();
  by_means.slowest_of_each = false;
  for (uint64_t seed = 1; seed <= kWorlds; ++seed) {
    Rng rng(seed);
    Scattered at(5, &rng);
    const auto& w = at.workloads;
    CallTree deep = Leaf(w[2], 3);
    deep.groups = {{Leaf(w[3], 4)}, {Leaf(w[4], 6)}};
    at.world.Endpoint({.workload = w[0],
                       .groups = {{{.workload = w[1],
                                    .execution_ms = 5,
                                    .data_mbytes = 0,
                                    .groups = {{deep}, {Leaf(w[3], 20), Leaf(w[4], 9)}}}}}});
    const State state = at.world.Build();
    Evaluator model(LatencyLaw::Physical()), means(by_means);
    model.Reset(state);
    means.Reset(state);
    const double exact = AllChoices(model).MeanMs();
    error += std::abs(model.Now().latency_ms / exact - 1) / kWorlds;
    by_means_error += std::abs(means.Now().latency_ms / exact - 1) / kWorlds;
    EXPECT_NEAR(model.Now().latency_ms, exact, 0.06 * exact) << seed;
    EXPECT_NEAR(model.Now().latency_ms, Parts(model.Now()), 1e-9);
  }
  EXPECT_LT(error, 0.01);
  EXPECT_GT(by_means_error, 3 * error) << "what is gained over the slowest of means";
}

TEST(ParallelCalls, WithoutAWayToDifferAreTheSlowestOfMeans) {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId client = world.Workload("client", 100, 100, false),
                   quick = world.Workload("quick", 100, 100),
                   slow = world.Workload("slow", 100, 100);
  for (const WorkloadId w : {client, quick, slow}) world.Pod(w, world.Node(kind, 1000, 1000));
  world.Endpoint(
      {.workload = client, .groups = {{Leaf(quick, 5), Leaf(quick, 5)}, {Leaf(slow, 30)}}});
  const State state = world.Build();
  LatencyLaw by_means = LatencyLaw::Physical();
  by_means.slowest_of_each = false;
  Evaluator model(LatencyLaw::Physical()), means(by_means);
  model.Reset(state);
  means.Reset(state);
  EXPECT_NEAR(model.Now().latency_ms, means.Now().latency_ms, 1e-9);
  EXPECT_NEAR(model.Now().execution_ms, means.Now().execution_ms, 1e-9);
}

TEST(ParallelCalls, OfWorkloadsWithoutPodsCostNothing) {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId client = world.Workload("client", 100, 100, false),
                   there = world.Workload("there", 100, 100),
                   gone = world.Workload("gone", 100, 100);
  for (const WorkloadId w : {client, there}) world.Pod(w, world.Node(kind, 1000, 1000));
  CallTree absent = Leaf(gone, 50);
  absent.groups = {{Leaf(there, 1)}};
  world.Endpoint({.workload = client, .groups = {{Leaf(there, 5)}, {absent}}});
  const State state = world.Build();
  Evaluator model(LatencyLaw::Physical());
  model.Reset(state);
  EXPECT_TRUE(std::isfinite(model.Now().latency_ms));
  EXPECT_LT(model.Now().latency_ms, 50);
}

}  // namespace
}  // namespace rudderfish
