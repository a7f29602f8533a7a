// SPDX-License-Identifier: Apache-2.0
#include "model/evaluator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::RandomWorld;
using testing::WorldBuilder;

const LatencyLaw& LawOf(bool physical) {
  return physical ? LatencyLaw::Physical() : LatencyLaw::Reach();
}

// Any pod to any other node, room or not: the laws do not ask.
Move AnyMove(const State& state, Rng* rng) {
  const PodId pod = static_cast<PodId>(rng->Below(state.pods.size()));
  const NodeId from = state.pods.node[pod];
  const NodeId to = (from + 1 + rng->Below(state.nodes.size() - 1)) % state.nodes.size();
  return {state.pods.workload[pod], from, to};
}

void MovePodOf(const Move& move, State* state) {
  for (PodId pod = 0; pod < state->pods.size(); ++pod) {
    if (state->pods.workload[pod] == move.workload && state->pods.node[pod] == move.from) {
      MovePod(pod, move.to, state);
      return;
    }
  }
  FAIL() << "no such pod";
}

RC_GTEST_PROP(Evaluator, CommitEqualsAFreshResetToTheBit, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  State state = RandomWorld(&rng);
  if (state.nodes.size() < 2) return;
  const LatencyLaw& law = LawOf(*rc::gen::arbitrary<bool>());
  Evaluator incremental(law);
  incremental.Reset(state);
  State moved = state;
  for (int i = 0; i < 5; ++i) {
    const Move move = AnyMove(moved, &rng);
    incremental.Commit(move);
    MovePodOf(move, &moved);
    Evaluator fresh(law);
    fresh.Reset(moved);
    RC_ASSERT(incremental.placement() == fresh.placement());
    for (int t = 0; t < Terms::kCount; ++t) {
      RC_ASSERT(TermValue(incremental.Now(), t) == TermValue(fresh.Now(), t));
    }
    for (CallId call = 0; call < fresh.calls().call_count(); ++call) {
      RC_ASSERT(incremental.cost(call) == fresh.cost(call));
    }
  }
}

RC_GTEST_PROP(Evaluator, UndoRestoresToTheBit, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  State state = RandomWorld(&rng);
  if (state.nodes.size() < 2) return;
  Evaluator model(LawOf(*rc::gen::arbitrary<bool>()));
  model.Reset(state);
  const Placement placement = model.placement();
  const Terms terms = model.Now();
  State moved = state;
  const auto leaves_any = [&] {
    for (WorkloadId w = 0; w < model.placement().workload_count(); ++w) {
      for (NodeId node = 0; node < model.placement().node_count(); ++node) {
        if (model.placement().has_left(w, node)) return true;
      }
    }
    return false;
  };
  RC_ASSERT(!leaves_any());
  for (int i = 0; i < 4; ++i) {
    const Move move = AnyMove(moved, &rng);
    const Terms tried = model.Try(move);
    model.Commit(move);
    MovePodOf(move, &moved);
    RC_ASSERT(tried.latency_ms == model.Now().latency_ms);
    RC_ASSERT(model.placement().has_left(move.workload, move.from));
  }
  for (int i = 0; i < 4; ++i) model.Undo();
  RC_ASSERT(!leaves_any());
  RC_ASSERT(model.placement() == placement);
  for (int t = 0; t < Terms::kCount; ++t)
    RC_ASSERT(TermValue(model.Now(), t) == TermValue(terms, t));
  // And what is not seen through Now: the next move costs what it costs from a fresh start.
  Evaluator fresh(model.law());
  fresh.Reset(state);
  const Move move = AnyMove(state, &rng);
  RC_ASSERT(model.Try(move).latency_ms == fresh.Try(move).latency_ms);
}

RC_GTEST_PROP(Evaluator, MoveAndItsInverseRestoreStateAndTermsToTheBit, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  State state = RandomWorld(&rng);
  if (state.nodes.size() < 2) return;
  Evaluator model(LawOf(*rc::gen::arbitrary<bool>()));
  model.Reset(state);
  const Placement placement = model.placement();
  const Terms terms = model.Now();
  const Move move = AnyMove(state, &rng);
  model.Commit(move);
  model.Commit({move.workload, move.to, move.from});
  RC_ASSERT(model.placement() == placement);
  for (int t = 0; t < Terms::kCount; ++t)
    RC_ASSERT(TermValue(model.Now(), t) == TermValue(terms, t));
}

RC_GTEST_PROP(Evaluator, PartsSumToTheLatency, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const State state = RandomWorld(&rng);
  Evaluator model(LawOf(*rc::gen::arbitrary<bool>()));
  model.Reset(state);
  const Terms& t = model.Now();
  RC_ASSERT(std::abs(t.latency_ms -
                     (t.execution_ms + t.network_ms + t.transfer_ms + t.queueing_ms)) < 1e-9);
}

RC_GTEST_PROP(MoveGains, EqualTheModelsAnswerWhereBandwidthDoesNotMatter, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const State state = RandomWorld(&rng);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
    if (!state.catalog->workloads[w].movable) continue;
    for (NodeId from = 0; from < state.nodes.size(); ++from) {
      if (model.placement().on_node(w, from) == 0) continue;
      for (NodeId to = 0; to < state.nodes.size(); ++to) {
        if (to == from || !state.catalog->layers[state.kind_of(to).layer].accepts_moves) continue;
        const float predicted = model.Gains().Gain(w, state.nodes.kind[from], state.nodes.kind[to]);
        const double exact = model.Now().latency_ms - model.Try({w, from, to}).latency_ms;
        RC_ASSERT(std::abs(predicted - exact) < 1e-2 + 1e-5 * model.Now().latency_ms);
      }
    }
  }
}

RC_GTEST_PROP(MoveGains, GainOfAllEqualsMovingThemOneByOne, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const State state = RandomWorld(&rng);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  std::vector<NodeId> node_of_kind(state.catalog->kind_count(), kNone);
  for (NodeId node = 0; node < state.nodes.size(); ++node)
    node_of_kind[state.nodes.kind[node]] = node;
  const double before = model.Now().latency_ms;
  for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
    if (!state.catalog->workloads[w].movable || model.placement().replicas(w) == 0) continue;
    for (KindId kind = 0; kind < state.catalog->kind_count(); ++kind) {
      if (model.Gains().TargetOf(kind) < 0) continue;
      const float predicted = model.Gains().GainOfAll(w, kind);
      int moves = 0;
      for (NodeId from = 0; from < state.nodes.size(); ++from) {
        while (state.nodes.kind[from] != kind && model.placement().on_node(w, from) > 0) {
          model.Commit({w, from, node_of_kind[kind]});
          ++moves;
        }
      }
      const double exact = before - model.Now().latency_ms;
      for (; moves > 0; --moves) model.Undo();
      RC_ASSERT(std::abs(predicted - exact) < 1e-2 + 1e-5 * before);
    }
  }
}

RC_GTEST_PROP(MoveGains, GainOfEverythingEqualsMovingEverything, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const State state = RandomWorld(&rng);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  const double before = model.Now().latency_ms;
  for (NodeId to = 0; to < state.nodes.size(); ++to) {
    const KindId kind = state.nodes.kind[to];
    if (model.Gains().TargetOf(kind) < 0) continue;
    const float predicted = model.Gains().GainOfEverything(kind);
    int moves = 0;
    for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
      if (!state.catalog->workloads[w].movable) continue;
      for (NodeId from = 0; from < state.nodes.size(); ++from) {
        for (; state.nodes.kind[from] != kind && model.placement().on_node(w, from) > 0; ++moves) {
          model.Commit({w, from, to});
        }
      }
    }
    const double exact = before - model.Now().latency_ms;
    for (; moves > 0; --moves) model.Undo();
    RC_ASSERT(std::abs(predicted - exact) < 1e-2 + 1e-5 * before);
  }
}

// Two layers 10 ms apart each way, a caller in one and a callee in the other.
State TwoPods(double rate_per_second, double data_mbytes) {
  WorldBuilder world;
  const LayerId near = world.Layer("near"), far = world.Layer("far");
  const KindId fast = world.Kind("fast", near, 1, 100), slow = world.Kind("slow", far, 2, 50);
  const WorkloadId client = world.Workload("client", 100, 100, false),
                   server = world.Workload("server", 100, 100);
  world.Latency(near, far, 10);
  world.Latency(far, near, 30);
  world.Latency(near, near, 2);
  world.Latency(far, far, 4);
  const NodeId a = world.Node(fast, 1000, 1000);
  world.Node(fast, 1000, 1000);
  const NodeId c = world.Node(slow, 1000, 1000);
  world.Pod(client, a);
  world.Pod(server, c);
  world.Endpoint({.workload = client, .groups = {{CallTree{server, 20, data_mbytes}}}},
                 rate_per_second);
  return world.Build();
}

TEST(PhysicalLaw, CountsRequestAndResponsePayloadAndQueueing) {
  const State state = TwoPods(5, 1);
  Evaluator model(LatencyLaw::Physical());
  model.Reset(state);
  EXPECT_DOUBLE_EQ(model.Now().execution_ms, 40);     // 20 ms on a kind of slowness 2.
  EXPECT_DOUBLE_EQ(model.Now().network_ms, 10 + 30);  // There and back.
  EXPECT_DOUBLE_EQ(model.Now().transfer_ms,
                   2 * 1000 / 50.0);  // Twice 1 MB at the slower end's 50 MB/s.
  EXPECT_NEAR(model.Now().queueing_ms, 40 * 0.2 / 0.8, 1e-12);  // 5/s * 40 ms = 0.2 busy.
}

TEST(PhysicalLaw, SkipsTheNetworkOnOneNodeAndUsesItBetweenNodesOfALayer) {
  const State state = TwoPods(5, 1);
  Evaluator model(LatencyLaw::Physical());
  model.Reset(state);
  const Terms same_node = model.Try({1, 2, 0});
  EXPECT_NEAR(same_node.network_ms, 2 * kLoopbackMs, 1e-12);
  EXPECT_DOUBLE_EQ(same_node.transfer_ms, 0);
  const Terms same_layer = model.Try({1, 2, 1});
  EXPECT_DOUBLE_EQ(same_layer.network_ms, 2 + 2);
  EXPECT_DOUBLE_EQ(same_layer.transfer_ms, 2 * 1000 / 100.0);
}

TEST(ReachLaw, CountsTheRequestAloneAndOneMillisecondWithinALayer) {
  const State state = TwoPods(5, 1);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  EXPECT_DOUBLE_EQ(model.Now().network_ms, 10);
  EXPECT_DOUBLE_EQ(model.Now().transfer_ms, 1 / 1024.0 / 50);
  EXPECT_EQ(model.Now().queueing_ms, 0);
  EXPECT_DOUBLE_EQ(model.Try({1, 2, 1}).network_ms, 1);
  EXPECT_DOUBLE_EQ(model.Try({1, 2, 0}).network_ms, 1);  // Also on one node.
}

TEST(Share, FallsWithTheUseOfOthersAndIsATenthBeyondTheKnee) {
  EXPECT_DOUBLE_EQ(ShareMbytesPerS(100, 0), 100);
  EXPECT_DOUBLE_EQ(ShareMbytesPerS(100, 60), 40);
  EXPECT_DOUBLE_EQ(ShareMbytesPerS(100, 89.99), 100 - 89.99);
  EXPECT_DOUBLE_EQ(ShareMbytesPerS(100, 90), 10);
  EXPECT_DOUBLE_EQ(ShareMbytesPerS(100, 500), 10);
}

TEST(Share, CountsOnlyTrafficThatLeavesTheNode) {
  State state = TwoPods(50, 1);  // 50 MB/s each way, 100 in all.
  state.nodes.background_mbytes_per_s = {0, 0, 20};
  Evaluator model(LatencyLaw::Physical());
  model.Reset(state);
  // A pod's own traffic does not slow it: of the far node's 50 MB/s the background takes 20.
  EXPECT_DOUBLE_EQ(model.Now().transfer_ms, 2 * 1000 / 30.0);
}

TEST(Queueing, IsProcessorSharingBelowTheKneeAndItsTangentAbove) {
  EXPECT_EQ(QueueingMs(10, 0), 0);
  EXPECT_DOUBLE_EQ(QueueingMs(10, 0.5), 10);
  const double knee = QueueingMs(10, kQueueingKnee);
  EXPECT_NEAR(knee, 190, 1e-9);
  const double slope_below = (knee - QueueingMs(10, kQueueingKnee - 1e-7)) / 1e-7;
  const double slope_above = (QueueingMs(10, kQueueingKnee + 1e-7) - knee) / 1e-7;
  EXPECT_NEAR(slope_above / slope_below, 1, 1e-4);
  EXPECT_NEAR(QueueingMs(10, 2.0), 190 + 1.05 * 4000, 1e-6);
}

TEST(LatencyLaw, ACorrectedOneMultipliesEachPart) {
  const State state = TwoPods(5, 1);
  Evaluator model(LatencyLaw::Physical());
  model.Reset(state);
  const Terms plain = model.Now();
  Evaluator corrected(Corrected(LatencyLaw::Physical(),
                                {.execution = 0.5, .network = 2, .transfer = 3, .queueing = 0.25}));
  corrected.Reset(state);
  EXPECT_DOUBLE_EQ(corrected.Now().execution_ms, 0.5 * plain.execution_ms);
  EXPECT_DOUBLE_EQ(corrected.Now().network_ms, 2 * plain.network_ms);
  EXPECT_DOUBLE_EQ(corrected.Now().transfer_ms, 3 * plain.transfer_ms);
  EXPECT_DOUBLE_EQ(corrected.Now().queueing_ms, 0.25 * plain.queueing_ms);
  EXPECT_DOUBLE_EQ(corrected.Now().latency_ms,
                   corrected.Now().execution_ms + corrected.Now().network_ms +
                       corrected.Now().transfer_ms + corrected.Now().queueing_ms);
}

RC_GTEST_PROP(LatencyLaw, ACorrectedOneIsIncrementalToo, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  State state = RandomWorld(&rng);
  if (state.nodes.size() < 2) return;
  const LatencyLaw law =
      Corrected(LawOf(*rc::gen::arbitrary<bool>()),
                {.execution = 0.7, .network = 1.3, .transfer = 1.1, .queueing = 0.9});
  Evaluator model(law);
  model.Reset(state);
  for (int i = 0; i < 5; ++i) {
    const Move move = AnyMove(state, &rng);
    const Terms tried = model.Try(move);
    model.Commit(move);
    MovePodOf(move, &state);
    Evaluator fresh(law);
    fresh.Reset(state);
    for (int t = 0; t < Terms::kCount; ++t) {
      RC_ASSERT(TermValue(tried, t) == TermValue(fresh.Now(), t));
      RC_ASSERT(TermValue(model.Now(), t) == TermValue(fresh.Now(), t));
    }
  }
}

TEST(LatencyLaw, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto law = LatencyLaw::Named("reech");
  ASSERT_FALSE(law);
  EXPECT_EQ(law.error().message,
            "no latency model is called \"reech\"; there are reach and physical");
  EXPECT_EQ(LatencyLaw::Named("physical")->name, "physical");
}

TEST(Evaluator, AWorkloadWithoutPodsCostsNothingAndIsNoReasonToStop) {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId client = world.Workload("client", 100, 100, false);
  const WorkloadId absent = world.Workload("absent", 100, 100),
                   server = world.Workload("server", 100, 100);
  const NodeId a = world.Node(kind, 1000, 1000);
  world.Node(kind, 1000, 1000);
  world.Pod(client, a);
  world.Pod(server, a);
  world.Endpoint({.workload = client, .groups = {{CallTree{absent, 7}, CallTree{server, 20}}}});
  const State state = world.Build();
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  EXPECT_DOUBLE_EQ(model.Now().execution_ms, 20);
  EXPECT_DOUBLE_EQ(model.Now().network_ms, 1);
}

TEST(Evaluator, TheSlowestOfParallelGroupsCountsAndItsPartsAreReported) {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId client = world.Workload("client", 100, 100, false);
  const WorkloadId quick = world.Workload("quick", 100, 100),
                   slow = world.Workload("slow", 100, 100);
  const NodeId a = world.Node(kind, 1000, 1000);
  for (WorkloadId w : {client, quick, slow}) world.Pod(w, a);
  world.Endpoint({.workload = client,
                  .groups = {{CallTree{quick, 5}, CallTree{quick, 5}}, {CallTree{slow, 30}}}});
  const State state = world.Build();
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  EXPECT_DOUBLE_EQ(model.Now().execution_ms, 30);
  EXPECT_DOUBLE_EQ(model.Now().network_ms, 1);
}

TEST(Evaluator, TheObjectiveIsTheMeanOverEndpoints) {
  WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId client = world.Workload("client", 100, 100, false),
                   server = world.Workload("server", 100, 100);
  const NodeId a = world.Node(kind, 1000, 1000);
  for (WorkloadId w : {client, server}) world.Pod(w, a);
  world.Endpoint({.workload = client, .groups = {{CallTree{server, 10}}}});
  world.Endpoint({.workload = client, .groups = {{CallTree{server, 40}}}});
  const State state = world.Build();
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  EXPECT_DOUBLE_EQ(model.Now().execution_ms, 25);
  EXPECT_DOUBLE_EQ(model.Now().network_ms, 1);
}

}  // namespace
}  // namespace rudderfish
