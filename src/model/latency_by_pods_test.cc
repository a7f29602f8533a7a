// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/evaluator.h"
#include "model/kind_evaluator.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::RandomWorld;

// The laws of latency.h, written out over pods and pairs of pods: no sums by node or by kind, and
// the constants once more.
class ByPods {
 public:
  ByPods(const State& state, const LatencyLaw& law)
      : state_(state), calls_(*state.calls), physical_(law.name == "physical") {
    pods_of_.resize(state.catalog->workload_count());
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      if (state.pods.node[pod] != kNone) pods_of_[state.pods.workload[pod]].push_back(pod);
    }
    traffic_.assign(state.pods.size(), 0);
    for (CallId call = 0; call < calls_.call_count(); ++call) AddTraffic(call);
  }

  double NodeUseMbytesPerS(NodeId node) const {
    double use = state_.nodes.background_mbytes_per_s[node];
    for (PodId pod = 0; pod < state_.pods.size(); ++pod) {
      if (state_.pods.node[pod] == node) use += traffic_[pod];
    }
    return use;
  }

  Evaluator::CallCost Cost(CallId call) const {
    const Call& c = calls_.calls[call];
    const auto& callees = pods_of_[c.workload];
    Evaluator::CallCost cost;
    for (PodId pod : callees) {
      const double execution_ms = ExecutionMs(call, pod);
      cost.execution_ms += execution_ms / callees.size();
      cost.queueing_ms += WaitMs(call, pod) / callees.size();
    }
    if (c.caller == kNone) return cost;
    const auto& callers = pods_of_[calls_.calls[c.caller].workload];
    const double pairs = static_cast<double>(callers.size() * callees.size());
    for (PodId a : callers) {
      for (PodId b : callees) {
        cost.hop_ms += HopMs(a, b) / pairs;
        cost.transfer_ms += TransferMs(c.data_mbytes, a, b) / pairs;
      }
    }
    return cost;
  }

  Terms Below(CallId call) const {
    const Call& c = calls_.calls[call];
    Terms slowest;
    for (int g = c.first_group; g < c.last_group; ++g) {
      Terms sum;
      for (int i = calls_.groups[g].first; i < calls_.groups[g].last; ++i) {
        const Terms callee = Below(calls_.sequence[i]);
        const Evaluator::CallCost cost = Cost(calls_.sequence[i]);
        sum.execution_ms += callee.execution_ms;
        sum.queueing_ms += callee.queueing_ms;
        sum.network_ms += callee.network_ms + cost.hop_ms;
        sum.transfer_ms += callee.transfer_ms + cost.transfer_ms;
        sum.latency_ms += callee.latency_ms + cost.hop_ms + cost.transfer_ms;
      }
      if (g == c.first_group || sum.latency_ms > slowest.latency_ms) slowest = sum;
    }
    const Evaluator::CallCost own = Cost(call);
    slowest.execution_ms += own.execution_ms;
    slowest.queueing_ms += own.queueing_ms;
    slowest.latency_ms += own.execution_ms + own.queueing_ms;
    return slowest;
  }

  Terms Mean() const {
    Terms mean;
    const double each = 1.0 / calls_.endpoints.size();
    for (const Endpoint& endpoint : calls_.endpoints) {
      const Terms terms = Below(endpoint.root);
      mean.latency_ms += terms.latency_ms * each;
      mean.execution_ms += terms.execution_ms * each;
      mean.network_ms += terms.network_ms * each;
      mean.transfer_ms += terms.transfer_ms * each;
      mean.queueing_ms += terms.queueing_ms * each;
    }
    return mean;
  }

 private:
  NodeId NodeOf(PodId pod) const { return state_.pods.node[pod]; }
  const NodeKind& KindOf(PodId pod) const { return state_.kind_of(NodeOf(pod)); }
  double ExecutionMs(CallId call, PodId pod) const {
    return calls_.ExecutionMs(call, state_.nodes.kind[NodeOf(pod)]);
  }

  double RateOf(CallId call) const {
    for (const Endpoint& endpoint : calls_.endpoints) {
      if (call >= endpoint.root && call < endpoint.end) return endpoint.rate_per_second;
    }
    ADD_FAILURE() << "call " << call << " is of no endpoint";
    return 0;
  }

  void AddTraffic(CallId call) {
    const Call& c = calls_.calls[call];
    if (c.caller == kNone) return;
    const auto& callers = pods_of_[calls_.calls[c.caller].workload];
    const auto& callees = pods_of_[c.workload];
    const double payload = RateOf(call) * c.data_mbytes / (callers.size() * callees.size());
    const double counted = physical_ ? 2 * payload : payload / 1024;
    for (PodId a : callers) {
      for (PodId b : callees) {
        if (NodeOf(a) == NodeOf(b)) continue;
        traffic_[a] += counted;
        traffic_[b] += counted;
      }
    }
  }

  double WaitMs(CallId call, PodId pod) const {
    if (!physical_) return 0;
    double busy = 0;
    for (CallId other = 0; other < calls_.call_count(); ++other) {
      if (calls_.calls[other].workload != state_.pods.workload[pod]) continue;
      const double per_pod = RateOf(other) / pods_of_[state_.pods.workload[pod]].size();
      busy += per_pod * ExecutionMs(other, pod) / 1000;
    }
    const double factor = busy <= 0.95 ? busy / (1 - busy) : 19 + (busy - 0.95) * 400;
    return ExecutionMs(call, pod) * factor;
  }

  double HopMs(PodId a, PodId b) const {
    const LayerId from = KindOf(a).layer, to = KindOf(b).layer;
    const Network& network = state_.network;
    if (!physical_) return from == to ? 1 : network.LatencyMs(from, to);
    if (NodeOf(a) == NodeOf(b)) return 0.1;
    return network.LatencyMs(from, to) + network.LatencyMs(to, from);
  }

  double Share(PodId pod) const {
    const double bandwidth = KindOf(pod).bandwidth_mbytes_per_s;
    const double others = NodeUseMbytesPerS(NodeOf(pod)) - traffic_[pod];
    return others / bandwidth < 0.9 ? bandwidth - others : bandwidth / 10;
  }

  double TransferMs(double data_mbytes, PodId a, PodId b) const {
    if (physical_ && NodeOf(a) == NodeOf(b)) return 0;
    const double ms = data_mbytes / std::min(Share(a), Share(b));
    return physical_ ? 2 * 1000 * ms : ms / 1024;
  }

  const State& state_;
  const CallGraph& calls_;
  bool physical_;
  std::vector<std::vector<PodId>> pods_of_;
  std::vector<double> traffic_;  // [pod] to and from pods on other nodes
};

// With kinds of different bandwidth, traffic that is not ours, and a pod that is not bound.
State BusyWorld(uint64_t seed) {
  Rng rng(seed, 1);
  State state = RandomWorld(&rng);
  while (state.calls->call_count() > 60) state = RandomWorld(&rng);
  Catalog catalog = *state.catalog;
  for (NodeKind& kind : catalog.kinds) kind.bandwidth_mbytes_per_s = rng.Uniform(2, 60);
  state.catalog = std::make_shared<const Catalog>(std::move(catalog));
  for (double& background : state.nodes.background_mbytes_per_s) background = rng.Uniform(0, 20);
  state.pods.workload.push_back(0);
  state.pods.node.push_back(kNone);
  return state;
}

void ExpectNear(double value, double expected) {
  EXPECT_NEAR(value, expected, 1e-9 * std::max(1.0, std::abs(expected)));
}

void ExpectEqual(const Evaluator& model, const State& state) {
  const ByPods pods(state, model.law());
  for (CallId call = 0; call < state.calls->call_count(); ++call) {
    const Evaluator::CallCost &cost = model.cost(call), expected = pods.Cost(call);
    ExpectNear(cost.execution_ms, expected.execution_ms);
    ExpectNear(cost.queueing_ms, expected.queueing_ms);
    ExpectNear(cost.hop_ms, expected.hop_ms);
    ExpectNear(cost.transfer_ms, expected.transfer_ms);
  }
  for (NodeId node = 0; node < state.nodes.size(); ++node)
    ExpectNear(model.NodeUseMbytesPerS(node), pods.NodeUseMbytesPerS(node));
  for (size_t i = 0; i < state.calls->endpoints.size(); ++i) {
    ExpectNear(model.EndpointLatencyMs(static_cast<int>(i)),
               pods.Below(state.calls->endpoints[i].root).latency_ms);
  }
  const Terms now = model.Now(), mean = pods.Mean();
  for (int t = 0; t < Terms::kCount; ++t) ExpectNear(TermValue(now, t), TermValue(mean, t));
}

TEST(Evaluator, EqualsTheLawsWrittenOutOverPairsOfPods) {
  for (uint64_t seed = 0; seed < 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    State state = BusyWorld(seed);
    Rng rng(seed, 2);
    LatencyLaw physical = LatencyLaw::Physical();
    physical.slowest_of_each = false;  // What that adds: model/parallel_calls_test.cc.
    for (const LatencyLaw* law :
         {&LatencyLaw::Reach(), static_cast<const LatencyLaw*>(&physical)}) {
      Evaluator model(*law);
      model.Reset(state);
      ExpectEqual(model, state);
      if (state.nodes.size() < 2) continue;
      State moved = state;
      for (int step = 0; step < 2; ++step) {
        const PodId pod = static_cast<PodId>(rng.Below(moved.pods.size() - 1));
        const NodeId from = moved.pods.node[pod];
        const NodeId to = (from + 1 + rng.Below(moved.nodes.size() - 1)) % moved.nodes.size();
        model.Commit(Action{Migrate{pod, from, to}});
        MovePod(pod, to, &moved);
      }
      ExpectEqual(model, moved);
    }
  }
}

// So many nodes that pairs of them are not summed one by one.
TEST(Evaluator, EqualsTheLawsWhereManyNodesHavePodsOfBothEnds) {
  testing::WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId kind = world.Kind("node", layer);
  const WorkloadId front = world.Workload("front", 10, 10), back = world.Workload("back", 10, 10);
  Rng rng(7);
  for (int i = 0; i < 50; ++i) {
    const NodeId node = world.Node(kind, 8000, 8000);
    for (uint32_t pods = rng.Below(3); pods > 0; --pods) world.Pod(front, node);
    for (uint32_t pods = 1 + rng.Below(2); pods > 0; --pods) world.Pod(back, node);
  }
  world.Endpoint(
      {.workload = front, .groups = {{{.workload = back, .execution_ms = 2, .data_mbytes = 0.5}}}});
  State state = world.Build();
  Catalog catalog = *state.catalog;
  for (NodeKind& one : catalog.kinds) one.bandwidth_mbytes_per_s = 30;
  state.catalog = std::make_shared<const Catalog>(std::move(catalog));
  for (double& background : state.nodes.background_mbytes_per_s) background = rng.Uniform(0, 29);
  for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
    Evaluator model(*law);
    model.Reset(state);
    EXPECT_GT(model.Now().transfer_ms, 0);
    ExpectEqual(model, state);
  }
}

TEST(Evaluator, KnowsOfEveryCallItsEndpointItsCallerAndWhomItTouches) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const State state = BusyWorld(seed);
    const CallGraph& calls = *state.calls;
    Evaluator model(LatencyLaw::Physical());
    model.Reset(state);
    for (size_t i = 0; i < calls.endpoints.size(); ++i) {
      bool parallel = false;
      for (CallId call = calls.endpoints[i].root; call < calls.endpoints[i].end; ++call) {
        EXPECT_EQ(model.EndpointOf(call), static_cast<int>(i));
        parallel |= calls.calls[call].last_group - calls.calls[call].first_group >= 2;
      }
      EXPECT_EQ(model.IsSequential(static_cast<int>(i)), !parallel);
    }
    for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
      std::vector<CallId> touching;
      for (CallId call = 0; call < calls.call_count(); ++call) {
        const CallId by = calls.calls[call].caller;
        const WorkloadId caller = by == kNone ? kNone : calls.calls[by].workload;
        EXPECT_EQ(model.CallerOf(call), caller);
        if (calls.calls[call].workload == w || caller == w) touching.push_back(call);
      }
      const auto listed = model.CallsTouching(w);
      EXPECT_EQ(std::vector<CallId>(listed.begin(), listed.end()), touching);
    }
  }
}

TEST(Evaluator, AWorldWithoutCallsCostsNothingAndNoMoveGains) {
  testing::WorldBuilder world;
  const LayerId layer = world.Layer("all");
  const KindId kind = world.Kind("node", layer), other = world.Kind("other", layer, 2);
  const WorkloadId web = world.Workload("web", 100, 100);
  world.Pod(web, world.Node(kind, 1000, 1000));
  world.Node(other, 1000, 1000);
  const State state = world.Build();
  for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
    Evaluator model(*law);
    model.Reset(state);
    EXPECT_EQ(model.Now().latency_ms, 0);
    EXPECT_EQ(model.Try({web, 0, 1}).latency_ms, 0);
    EXPECT_EQ(model.Gains().Gain(web, kind, other), 0);
    EXPECT_EQ(model.Gains().GainOfEverything(other), 0);
    EXPECT_EQ(KindErrorMs(model), 0);
    KindEvaluator kinds;
    kinds.Reset(model);
    EXPECT_EQ(kinds.LatencyMs(), 0);
    EXPECT_EQ(kinds.GainsFrom(web, kind)[other], 0);
  }
}

TEST(Terms, AreCountedInTheOrderOfTheirNames) {
  const Terms terms{
      .latency_ms = 1, .execution_ms = 2, .network_ms = 3, .transfer_ms = 4, .queueing_ms = 5};
  ASSERT_EQ(TermNames().size(), static_cast<size_t>(Terms::kCount));
  for (int i = 0; i < Terms::kCount; ++i) EXPECT_EQ(TermValue(terms, i), i + 1);
  EXPECT_EQ(TermNames()[1], "execution_ms");
  EXPECT_EQ(TermNames()[4], "queueing_ms");
}

}  // namespace
}  // namespace rudderfish
