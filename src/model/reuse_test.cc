// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "model/evaluator.h"
#include "model/placement_cursor.h"
#include "tests/support/small_world.h"

// What is kept of the states before must not be seen: an object that has served other worlds
// answers to the bit as a fresh one.

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::ContinuumWorld;
using testing::RandomWorld;
using testing::WorldBuilder;

void ExpectSameGains(Evaluator* used, Evaluator* fresh) {
  const MoveGains &a = used->Gains(), &b = fresh->Gains();
  const Placement& placement = fresh->placement();
  ASSERT_EQ(a.target_count(), b.target_count());
  for (int i = 0; i < b.target_count(); ++i) ASSERT_EQ(a.target(i), b.target(i));
  for (KindId to = 0; to < placement.kind_count(); ++to) {
    ASSERT_EQ(a.TargetOf(to), b.TargetOf(to));
    ASSERT_EQ(a.GainOfEverything(to), b.GainOfEverything(to));
    for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
      ASSERT_EQ(a.GainOfAll(w, to), b.GainOfAll(w, to));
      for (KindId from = 0; from < placement.kind_count(); ++from)
        ASSERT_EQ(a.Gain(w, from, to), b.Gain(w, from, to)) << w << ": " << from << " to " << to;
    }
  }
}

void ExpectSame(Evaluator* used, Evaluator* fresh) {
  ASSERT_EQ(used->placement(), fresh->placement());
  for (int t = 0; t < Terms::kCount; ++t)
    ASSERT_EQ(TermValue(used->Now(), t), TermValue(fresh->Now(), t));
  const CallGraph& calls = fresh->calls();
  for (CallId call = 0; call < calls.call_count(); ++call) {
    ASSERT_EQ(used->cost(call), fresh->cost(call));
    ASSERT_EQ(used->EndpointOf(call), fresh->EndpointOf(call));
    for (KindId kind = 0; kind < fresh->placement().kind_count(); ++kind)
      ASSERT_EQ(used->SojournMs(call, kind), fresh->SojournMs(call, kind));
  }
  for (size_t i = 0; i < calls.endpoints.size(); ++i) {
    const int endpoint = static_cast<int>(i);
    ASSERT_EQ(used->IsSequential(endpoint), fresh->IsSequential(endpoint));
    ASSERT_EQ(used->EndpointLatencyMs(endpoint), fresh->EndpointLatencyMs(endpoint));
  }
  ExpectSameGains(used, fresh);
}

void ExpectSame(KindEvaluator* used, KindEvaluator* fresh, const Placement& placement) {
  ASSERT_EQ(used->kind_count(), fresh->kind_count());
  ASSERT_EQ(used->LatencyMs(), fresh->LatencyMs());
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    for (KindId from = 0; from < placement.kind_count(); ++from) {
      ASSERT_EQ(used->count(w, from), fresh->count(w, from));
      if (fresh->count(w, from) == 0) continue;
      const float *a = used->GainsFrom(w, from), *b = fresh->GainsFrom(w, from);
      for (KindId to = 0; to < placement.kind_count(); ++to)
        ASSERT_EQ(a[to], b[to]) << w << ": " << from << " to " << to;
    }
  }
}

Move AnyMove(const Placement& placement, Rng* rng) {
  for (;;) {
    const Move move{static_cast<WorkloadId>(rng->Below(placement.workload_count())),
                    static_cast<NodeId>(rng->Below(placement.node_count())),
                    static_cast<NodeId>(rng->Below(placement.node_count()))};
    if (placement.on_node(move.workload, move.from) > 0 && move.from != move.to) return move;
  }
}

// Calls over the workloads of a state, to take the place of its own.
std::shared_ptr<const CallGraph> OtherCalls(const State& state, Rng* rng) {
  WorldBuilder world;
  const LayerId layer = world.Layer("any");
  for (KindId kind = 0; kind < state.catalog->kind_count(); ++kind)
    world.Kind("kind", layer, rng->Uniform(1, 3));
  const int workloads = state.catalog->workload_count();
  for (WorkloadId w = 0; w < workloads; ++w) world.Workload("workload", 1, 1);
  for (int i = rng->Between(1, 4); i > 0; --i)
    world.Endpoint(testing::RandomCalls(workloads, 2, rng), rng->Uniform(1, 5));
  return world.Build().calls;
}

// The state with some more pods of each workload, room or not.
State WithMorePods(const State& state, Rng* rng) {
  State more = state;
  for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
    for (int i = rng->Between(0, 2); i > 0; --i) {
      const NodeId node = static_cast<NodeId>(rng->Below(state.nodes.size()));
      more.pods.workload.push_back(w);
      more.pods.node.push_back(kNone);
      BindPod(more.pods.size() - 1, node, &more);
    }
  }
  return more;
}

// The state with one more workload, which is never called and has no pods yet.
State WithAnotherWorkload(const State& state) {
  State more = state;
  Catalog catalog = *state.catalog;
  catalog.workloads.push_back({.name = "another", .requests = {.cpu_millis = 1}});
  more.catalog = std::make_shared<const Catalog>(std::move(catalog));
  return more;
}

// A sequence in which now calls, now pods, now workloads, now latencies, now everything is new.
class Worlds {
 public:
  explicit Worlds(uint64_t seed) : rng_(seed, 5), state_(RandomWorld(&rng_)) {}

  const State& Next() {
    switch (rng_.Below(6)) {
      case 0:
        state_ = RandomWorld(&rng_);
        break;
      case 1:
        state_ = ContinuumWorld(
            {.pattern = static_cast<testing::Pattern>(rng_.Below(3)), .replicas_max = 3}, &rng_);
        break;
      case 2:
        state_.calls = OtherCalls(state_, &rng_);
        break;
      case 3:
        state_ = WithMorePods(state_, &rng_);
        break;
      case 4:
        state_ = WithAnotherWorkload(state_);
        break;
      default:
        for (double& latency_ms : state_.network.latency_ms) latency_ms = rng_.Uniform(0, 99);
    }
    return state_;
  }
  Rng* rng() { return &rng_; }

 private:
  Rng rng_;
  State state_;
};

TEST(Evaluator, ThatHasServedOtherWorldsEqualsAFreshOneToTheBit) {
  for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
    Worlds worlds(3);
    Evaluator used(*law);
    for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
      SCOPED_TRACE(i);
      const State& state = worlds.Next();
      used.Reset(state);
      Evaluator fresh(*law);
      fresh.Reset(state);
      ExpectSame(&used, &fresh);
      if (state.nodes.size() < 2) continue;
      const Move move = AnyMove(fresh.placement(), worlds.rng());
      ASSERT_EQ(used.Try(move).latency_ms, fresh.Try(move).latency_ms);
      used.Commit(move);  // Left behind for the next world.
    }
  }
}

// Each move updates the gains; Reset recomputes them.
TEST(MoveGains, KeptThroughMovesEqualThoseOfAFreshEvaluatorToTheBit) {
  for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
    for (uint64_t seed = 0; seed < 60 && !HasFatalFailure(); ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed, 6);
      State state = seed % 3 == 0 ? ContinuumWorld({}, &rng) : RandomWorld(&rng);
      if (state.nodes.size() < 2) continue;
      Evaluator used(*law);
      used.Reset(state);
      State moved = state;
      for (int step = 0; step < 6; ++step) {
        used.Gains();
        const PodId pod = static_cast<PodId>(rng.Below(moved.pods.size()));
        const NodeId from = moved.pods.node[pod];
        const NodeId to = (from + 1 + rng.Below(moved.nodes.size() - 1)) % moved.nodes.size();
        used.Commit(Action{Migrate{pod, from, to}});
        MovePod(pod, to, &moved);
        Evaluator fresh(*law);
        fresh.Reset(moved);
        ExpectSame(&used, &fresh);
        used.Gains();
        used.Undo();  // Gains are those of where it is, not of where it was.
        used.Gains();
        used.Commit(Action{Migrate{pod, from, to}});
        ExpectSame(&used, &fresh);
      }
    }
  }
}

TEST(KindEvaluator, ThatHasServedOtherWorldsEqualsAFreshOneToTheBit) {
  Worlds worlds(4);
  KindEvaluator used;
  for (int i = 0; i < 200 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    const State& state = worlds.Next();
    Evaluator exact(i % 2 == 0 ? LatencyLaw::Reach() : LatencyLaw::Physical());
    exact.Reset(state);
    KindEvaluator fresh;
    fresh.Reset(exact);
    used.Reset(exact);
    ExpectSame(&used, &fresh, exact.placement());
    if (state.nodes.size() < 2) continue;
    const Move move = AnyMove(exact.placement(), worlds.rng());
    const KindId from = state.nodes.kind[move.from], to = state.nodes.kind[move.to];
    used.Apply(move.workload, from, to);
    fresh.LatencyMs();
    fresh.Apply(move.workload, from, to);
    ExpectSame(&used, &fresh, exact.placement());
  }
}

TEST(PlacementCursor, ThatHasServedOtherWorldsEqualsAFreshOne) {
  Worlds worlds(5);
  PlacementCursor used;
  for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    const State& state = worlds.Next();
    Evaluator exact(LatencyLaw::Reach());
    exact.Reset(state);
    PlacementCursor fresh;
    fresh.Reset(exact);
    used.Reset(exact);
    ASSERT_EQ(used.hash(), fresh.hash());
    ASSERT_EQ(used.kind_hash(), fresh.kind_hash());
    const auto movable = used.movable(), expected = fresh.movable();
    ASSERT_EQ(std::vector<WorkloadId>(movable.begin(), movable.end()),
              std::vector<WorkloadId>(expected.begin(), expected.end()));
    ASSERT_EQ(used.word_count(), fresh.word_count());
    for (int word = 0; word < fresh.word_count(); ++word) {
      for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
        ASSERT_EQ(used.Hosts(w)[word], fresh.Hosts(w)[word]);
        ASSERT_EQ(used.Targets(w)[word], fresh.Targets(w)[word]);
      }
      for (KindId kind = 0; kind < state.catalog->kind_count(); ++kind)
        ASSERT_EQ(used.OfKind(kind)[word], fresh.OfKind(kind)[word]);
    }
    ExpectSame(&used.by_kind(), &fresh.by_kind(), exact.placement());
  }
}

}  // namespace
}  // namespace rudderfish
