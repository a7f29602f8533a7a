// SPDX-License-Identifier: Apache-2.0
#include "model/call_distances.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::RandomWorld;
using testing::WorldBuilder;

constexpr WorkloadId kFront = 0, kBack = 1, kStore = 2;
constexpr LayerId kNear = 0, kFar = 1;

// Three workloads in two layers: 1 ms within the near one, 3 ms within the far one, 10 ms there and
// 30 ms back between them; so round trips of 2, 6 and 40 ms, the worst.
struct SmallApplication {
  SmallApplication() {
    near = world.Layer("near"), far = world.Layer("far");
    world.Kind("near", near);
    world.Latency(near, near, 1);
    world.Latency(far, far, 3);
    world.Latency(near, far, 10);
    world.Latency(far, near, 30);
    for (const char* name : {"front", "back", "store"}) world.Workload(name, 100, 100);
  }

  LayerId near, far;
  WorldBuilder world;
};

// Front calls back, which calls the store three times.
State Chain() {
  SmallApplication made;
  const CallTree store{kStore, 1};
  made.world.Endpoint({.workload = kFront, .groups = {{{kBack, 1, 0.1, {{store, store, store}}}}}});
  return made.world.Build();
}

double DistanceOf(const CallDistances::Sums& sums) {
  return sums.weight == 0 ? 0
                          : static_cast<double>(sums.distance) / static_cast<double>(sums.weight);
}

double WeightOf(const CallDistances::Sums& sums) {
  return static_cast<double>(sums.weight) / static_cast<double>(CallDistances::kAllCalls);
}

CallDistances DistancesOf(const State& state, const std::vector<int32_t>& pods) {
  CallDistances distances;
  distances.Reset(state, pods);
  return distances;
}

TEST(CallDistances, AreMeansOverPairsOfPodsByWeight) {
  // Front: one near. Back: one near, one far. Store: two far.
  const CallDistances distances = DistancesOf(Chain(), {1, 0, 1, 1, 0, 2});
  EXPECT_EQ(distances.worst_ms(), 40);
  EXPECT_NEAR(WeightOf(distances.Now()), 1, 1e-9);
  // Front to back 2 and 40; back to the store 40, 40, 6 and 6, and thrice as many calls.
  const double front_ms = (2 + 40) / 2., store_ms = (40 + 40 + 6 + 6) / 4.;
  EXPECT_NEAR(40 * DistanceOf(distances.Now()), (front_ms + 3 * store_ms) / 4, 1e-4);
}

TEST(CallDistances, EdgesWithoutPodsAtOneEndCountNothing) {
  const CallDistances distances = DistancesOf(Chain(), {1, 0, 0, 2, 0, 0});
  EXPECT_NEAR(WeightOf(distances.Now()), 0.25, 1e-9);
  EXPECT_NEAR(DistanceOf(distances.Now()), 1, 1e-9);
  EXPECT_EQ(DistancesOf(Chain(), {5, 5, 0, 0, 5, 5}).Now(), CallDistances::Sums());
}

TEST(CallDistances, EndpointsCountByTheirRates) {
  const auto shop = [](double browse, double pay) {
    SmallApplication made;
    made.world.Endpoint({.workload = kFront, .groups = {{{kBack, 1}}}}, browse);
    made.world.Endpoint({.workload = kFront, .groups = {{{kStore, 1}, {kStore, 1}}}}, pay);
    return made.world.Build();
  };
  const std::vector<int32_t> pods = {1, 0, 0, 1, 1, 0};  // 40 ms to back, 2 to the store.
  EXPECT_NEAR(40 * DistanceOf(DistancesOf(shop(3, 1), pods).Now()), (3 * 40 + 2 * 2) / 5., 1e-4);
  EXPECT_NEAR(40 * DistanceOf(DistancesOf(shop(0, 5), pods).Now()), 2, 1e-4);
  // No endpoint gets requests: all count the same.
  EXPECT_NEAR(40 * DistanceOf(DistancesOf(shop(0, 0), pods).Now()), (40 + 2 * 2) / 3., 1e-4);
}

TEST(CallDistances, ACallBackIsOfTheSameEdge) {
  SmallApplication made;
  made.world.Endpoint({.workload = kFront, .groups = {{{kBack, 1, 0.1, {{{kFront, 1}}}}}}});
  const CallDistances distances = DistancesOf(made.world.Build(), {1, 0, 0, 1, 0, 0});
  EXPECT_NEAR(WeightOf(distances.Now()), 1, 1e-9);
  EXPECT_NEAR(DistanceOf(distances.Now()), 1, 1e-9);
}

// A pod that calls its like calls itself, too.
TEST(CallDistances, AWorkloadMayCallItself) {
  SmallApplication made;
  made.world.Endpoint({.workload = kBack, .groups = {{{kBack, 1}}}});
  const State state = made.world.Build();
  std::vector<int32_t> pods = {0, 0, 2, 1, 0, 0};
  CallDistances distances = DistancesOf(state, pods);
  const double both_ms = (4 * 2 + 4 * 40 + 6) / 9.;
  EXPECT_NEAR(40 * DistanceOf(distances.Now()), both_ms, 1e-4);
  const CallDistances::Sums more = distances.With(kBack, kFar, pods);
  EXPECT_NEAR(40 * DistanceOf(more), (4 * 2 + 8 * 40 + 4 * 6) / 16., 1e-4);
  distances.Change(kBack, kFar, 1, pods);
  EXPECT_EQ(distances.Now(), more);
}

TEST(CallDistances, AStateWithoutCallsCostsNothing) {
  State state = Chain();
  state.calls = nullptr;
  CallDistances distances = DistancesOf(state, {1, 1, 1, 1, 1, 1});
  EXPECT_TRUE(distances.empty());
  EXPECT_EQ(distances.Now(), CallDistances::Sums());
  EXPECT_EQ(distances.With(kBack, kNear, {}), CallDistances::Sums());
  EXPECT_EQ(distances.PartOf(kBack).calls, 0);
  EXPECT_EQ(distances.MeanMs(kBack, kNear, {}), 0);
  // A graph in which clients alone ask is none either.
  SmallApplication made;
  made.world.Endpoint({.workload = kFront});
  EXPECT_TRUE(DistancesOf(made.world.Build(), {1, 1, 1, 1, 1, 1}).empty());
}

TEST(CallDistances, SayWhatAPodWouldCall) {
  const std::vector<int32_t> pods = {3, 0, 0, 0, 1, 1};
  const CallDistances distances = DistancesOf(Chain(), pods);
  EXPECT_NEAR(distances.PartOf(kBack).calls, 1, 1e-9);
  EXPECT_NEAR(distances.PartOf(kBack).counted, 1, 1e-9);
  EXPECT_NEAR(distances.PartOf(kFront).calls, 0.25, 1e-9);
  EXPECT_EQ(distances.PartOf(kFront).counted, 0);  // There is no back yet.
  EXPECT_EQ(distances.MeanMs(kFront, kNear, pods), 0);
  // From the near layer 2 ms to front, 2 and 40 to the store; from the far one 40, 40 and 6.
  EXPECT_NEAR(distances.MeanMs(kBack, kNear, pods), (2 + 3 * 21) / 4., 1e-4);
  EXPECT_NEAR(distances.MeanMs(kBack, kFar, pods), (40 + 3 * 23) / 4., 1e-4);
}

TEST(CallDistances, LatencyMayChange) {
  State state = Chain();
  const std::vector<int32_t> pods = {1, 0, 0, 1, 0, 0};
  CallDistances distances = DistancesOf(state, pods);
  state.network.latency_ms = {1, 100, 20, 3};
  distances.LatencyChanged(state.network, pods);
  EXPECT_EQ(distances.worst_ms(), 120);
  EXPECT_NEAR(DistanceOf(distances.Now()), 1, 1e-9);
  state.network.latency_ms = {500, 100, 20, 3};  // Within a layer may be the worst of all.
  distances.LatencyChanged(state.network, pods);
  EXPECT_NEAR(DistanceOf(distances.Now()), 0.12, 1e-5);
  state.network.latency_ms = {0, 0, 0, 0};
  distances.LatencyChanged(state.network, pods);
  EXPECT_EQ(DistanceOf(distances.Now()), 0);
}

TEST(CallDistances, AMillionPodsAreNoOverflow) {
  const int32_t million = 1'000'000;
  CallDistances distances = DistancesOf(Chain(), {million, 0, 0, million, 0, million});
  EXPECT_NEAR(40 * DistanceOf(distances.Now()), (40 + 3 * 6) / 4., 1e-4);
}

// Over every pair of pods, as the header says it.
double BruteMs(const State& state) {
  std::map<std::pair<WorkloadId, WorkloadId>, double> weights;
  double rates = 0;
  for (const Endpoint& endpoint : state.calls->endpoints) rates += endpoint.rate_per_second;
  for (const Endpoint& endpoint : state.calls->endpoints) {
    for (CallId id = endpoint.root + 1; id < endpoint.end; ++id) {
      const Call& call = state.calls->calls[id];
      weights[std::minmax(call.workload, state.calls->calls[call.caller].workload)] +=
          endpoint.rate_per_second / rates;
    }
  }
  double sum = 0, all = 0;
  for (const auto& [edge, weight] : weights) {
    double ms = 0;
    int pairs = 0;
    for (PodId a = 0; a < state.pods.size(); ++a) {
      for (PodId b = 0; b < state.pods.size(); ++b) {
        if (state.pods.workload[a] != edge.first || state.pods.workload[b] != edge.second) continue;
        const LayerId from = state.kind_of(state.pods.node[a]).layer,
                      to = state.kind_of(state.pods.node[b]).layer;
        ms += state.network.LatencyMs(from, to) + state.network.LatencyMs(to, from);
        ++pairs;
      }
    }
    if (pairs == 0) continue;
    sum += weight * ms / pairs;
    all += weight;
  }
  return all > 0 ? sum / all : 0;
}

std::vector<int32_t> PodsIn(const State& state) {
  const int layers = state.catalog->layer_count();
  std::vector<int32_t> pods(static_cast<size_t>(state.catalog->workload_count()) * layers, 0);
  for (PodId pod = 0; pod < state.pods.size(); ++pod)
    ++pods[state.pods.workload[pod] * layers + state.kind_of(state.pods.node[pod]).layer];
  return pods;
}

RC_GTEST_PROP(CallDistances, AreWhatEveryPairOfPodsAddsUpTo, (uint64_t seed)) {
  Rng rng(seed);
  const State state = RandomWorld(&rng);
  const CallDistances distances = DistancesOf(state, PodsIn(state));
  const double ms = DistanceOf(distances.Now()) * distances.worst_ms();
  RC_ASSERT(std::abs(ms - BruteMs(state)) < 2e-6 * distances.worst_ms() + 1e-9);
  RC_ASSERT(DistanceOf(distances.Now()) >= 0 && DistanceOf(distances.Now()) <= 1);
}

RC_GTEST_PROP(CallDistances, ChangesAddUpToWhatResetComputesToTheBit, (uint64_t seed)) {
  Rng rng(seed);
  State state = RandomWorld(&rng);
  const int layers = state.catalog->layer_count(), workloads = state.catalog->workload_count();
  std::vector<int32_t> pods = PodsIn(state);
  CallDistances distances = DistancesOf(state, pods);
  for (int change = 0; change < 60; ++change) {
    const auto workload = static_cast<WorkloadId>(rng.Below(workloads));
    const auto layer = static_cast<LayerId>(rng.Below(layers));
    int32_t& count = pods[workload * layers + layer];
    if (rng.Below(10) == 0) {
      state.network.latency_ms[rng.Below(layers * layers)] = rng.Uniform(0, 300);
      distances.LatencyChanged(state.network, pods);
      continue;
    }
    const int by = count > 0 && rng.Below(2) == 0 ? -1 : 1;
    const CallDistances::Sums before = distances.Now(),
                              tried = distances.With(workload, layer, pods);
    distances.Change(workload, layer, by, pods);
    count += by;
    if (by > 0) RC_ASSERT(distances.Now() == tried);
    RC_ASSERT(distances.Now() == DistancesOf(state, pods).Now());
    // And back.
    CallDistances undone = distances;
    undone.Change(workload, layer, -by, pods);
    RC_ASSERT(undone.Now() == before);
  }
}

}  // namespace
}  // namespace rudderfish
