// SPDX-License-Identifier: Apache-2.0
#include "model/kind_evaluator.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "model/evaluator.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::Pattern;
using testing::RandomWorld;

// Bandwidth is all that kinds do not tell under this law.
constexpr double kNodeEffectsMs = 1e-4;

// A random move of a pod to a kind that accepts it, room or not.
Move RandomMove(const Placement& placement, Rng* rng) {
  for (;;) {
    const Move move{static_cast<WorkloadId>(rng->Below(placement.workload_count())),
                    static_cast<NodeId>(rng->Below(placement.node_count())),
                    static_cast<NodeId>(rng->Below(placement.node_count()))};
    if (placement.on_node(move.workload, move.from) > 0 && move.from != move.to) return move;
  }
}

TEST(KindEvaluator, EqualsTheEvaluatorWhereItWasReset) {
  Rng rng(1);
  for (const LatencyLaw* law : {&LatencyLaw::Reach(), &LatencyLaw::Physical()}) {
    for (int i = 0; i < 100; ++i) {
      const State state = RandomWorld(&rng);
      Evaluator exact(*law);
      exact.Reset(state);
      KindEvaluator kinds;
      kinds.Reset(exact);
      EXPECT_NEAR(kinds.LatencyMs(), exact.Now().latency_ms, 1e-9);
    }
  }
}

TEST(KindEvaluator, FollowsMovesAndPredictsTheirGains) {
  Rng rng(2);
  for (int i = 0; i < 200; ++i) {
    const State state = RandomWorld(&rng);
    Evaluator exact(LatencyLaw::Reach());
    exact.Reset(state);
    KindEvaluator kinds;
    kinds.Reset(exact);
    for (int step = 0; step < 10; ++step) {
      const Move move = RandomMove(exact.placement(), &rng);
      const KindId from = exact.placement().kind(move.from), to = exact.placement().kind(move.to);
      const double before = exact.Now().latency_ms;
      const float gain = kinds.GainsFrom(move.workload, from)[to];
      exact.Commit(move);
      kinds.Apply(move.workload, from, to);
      EXPECT_NEAR(gain, before - exact.Now().latency_ms, 1e-4 + 1e-6 * before);
      EXPECT_NEAR(kinds.LatencyMs(), exact.Now().latency_ms, kNodeEffectsMs);
    }
  }
}

TEST(KindEvaluator, ForgetsHowItCameToAPlacement) {
  Rng rng(3);
  for (int i = 0; i < 100; ++i) {
    const State state = RandomWorld(&rng);
    Evaluator exact(LatencyLaw::Reach());
    exact.Reset(state);
    KindEvaluator kinds;
    kinds.Reset(exact);
    const double before = kinds.LatencyMs();
    std::vector<Move> moves;
    for (int step = 0; step < 5; ++step) {
      moves.push_back(RandomMove(exact.placement(), &rng));
      exact.Commit(moves.back());
      kinds.Apply(moves.back().workload, exact.placement().kind(moves.back().from),
                  exact.placement().kind(moves.back().to));
      kinds.LatencyMs();
    }
    for (; !moves.empty(); moves.pop_back()) {
      kinds.Apply(moves.back().workload, exact.placement().kind(moves.back().to),
                  exact.placement().kind(moves.back().from));
    }
    EXPECT_EQ(kinds.LatencyMs(), before);
  }
}

TEST(KindEvaluator, ServesWorldsOfDifferentShapesInTurn) {
  Rng rng(4);
  KindEvaluator kinds;
  for (int i = 0; i < 50; ++i) {
    const State state =
        i % 2 == 0 ? RandomWorld(&rng) : ContinuumWorld({.pattern = Pattern::kParallel}, &rng);
    Evaluator exact(LatencyLaw::Reach());
    exact.Reset(state);
    kinds.Reset(exact);
    EXPECT_NEAR(kinds.LatencyMs(), exact.Now().latency_ms, 1e-9);
  }
}

// Two ways to the same numbers: pod by pod over all kinds at once, and from branch sums.
void ExpectAgreement(const State& state, const LatencyLaw& law) {
  Evaluator exact(law);
  exact.Reset(state);
  KindEvaluator kinds;
  kinds.Reset(exact);
  const MoveGains& gains = exact.Gains();
  const Placement& placement = exact.placement();
  const double now = kinds.LatencyMs(), near = 1e-3 + 1e-5 * now;
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    if (!state.catalog->workloads[w].movable || placement.replicas(w) == 0) {
      for (KindId to = 0; to < placement.kind_count(); ++to) {
        EXPECT_EQ(gains.Gain(w, 0, to), 0);
        EXPECT_EQ(gains.GainOfAll(w, to), 0);
      }
      continue;
    }
    for (int target = 0; target < gains.target_count(); ++target) {
      const KindId to = gains.target(target);
      for (KindId from = 0; from < placement.kind_count(); ++from) {
        if (kinds.count(w, from) == 0) continue;
        EXPECT_NEAR(gains.Gain(w, from, to), kinds.GainsFrom(w, from)[to], near);
        EXPECT_EQ(gains.GainTo(w, from, target), gains.Gain(w, from, to));
        if (from == to) {
          EXPECT_EQ(gains.Gain(w, from, to), 0);
        }
      }
      const auto all = [&](auto apply) {
        for (KindId from = 0; from < placement.kind_count(); ++from) {
          for (int i = 0; i < placement.on_kind(w, from) && from != to; ++i) apply(from);
        }
      };
      all([&](KindId from) { kinds.Apply(w, from, to); });
      EXPECT_NEAR(gains.GainOfAll(w, to), now - kinds.LatencyMs(), near);
      EXPECT_EQ(gains.GainOfAllTo(w, target), gains.GainOfAll(w, to));
      all([&](KindId from) { kinds.Apply(w, to, from); });
    }
  }
}

TEST(KindEvaluator, AgreesWithMoveGainsOnAllMovesUnderBothLaws) {
  for (int seed = 0; seed < 120 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 20);
    ExpectAgreement(RandomWorld(&rng),
                    seed % 2 == 0 ? LatencyLaw::Reach() : LatencyLaw::Physical());
  }
}

// Whole vectors of alternatives, one more and one less.
TEST(KindEvaluator, AgreesWithMoveGainsForAnyNumberOfKinds) {
  for (int kinds = 1; kinds <= 18; ++kinds) {
    for (const int open_kinds : {1, 2, 3, kinds}) {
      if (open_kinds > kinds || ::testing::Test::HasFailure()) continue;
      SCOPED_TRACE(kinds);
      Rng rng(kinds, 21);
      testing::WorldBuilder world;
      const LayerId open = world.Layer("open"), closed = world.Layer("closed", false);
      for (LayerId from : {open, closed}) {
        for (LayerId to : {open, closed}) world.Latency(from, to, rng.Uniform(2, 50));
      }
      for (int i = 0; i < kinds; ++i) {
        const KindId kind =
            world.Kind("kind", i >= kinds - open_kinds ? open : closed, rng.Uniform(1, 3));
        world.Node(kind, 9000, 9000);
      }
      const WorkloadId a = world.Workload("a", 1, 1), b = world.Workload("b", 1, 1);
      for (WorkloadId w : {a, b, b, b}) world.Pod(w, static_cast<NodeId>(rng.Below(kinds)));
      const testing::CallTree call_a{.workload = a, .execution_ms = 9},
          call_b{.workload = b, .execution_ms = 8};
      world.Endpoint({.workload = a, .groups = {{call_b, call_a}}});
      world.Endpoint({.workload = b, .groups = {{call_a, call_b}, {call_b}}});
      ExpectAgreement(world.Build(), LatencyLaw::Reach());
    }
  }
}

// A client and two services on nodes of 40 and 80 MB/s; 1.5 MB are sent in two endpoints.
TEST(KindErrorMs, IsAllOfTheTransferAtTheFloorOfTheNarrowestKindAndAllLoopback) {
  testing::WorldBuilder world;
  const LayerId near = world.Layer("near"), far = world.Layer("far");
  const KindId slow = world.Kind("slow", near, 1, 40), fast = world.Kind("fast", far, 1, 80);
  world.Latency(near, near, 3);
  world.Latency(far, far, 5);
  const WorkloadId client = world.Workload("client", 1, 1, false),
                   web = world.Workload("web", 1, 1);
  world.Pod(client, world.Node(slow, 10, 10));
  world.Pod(web, world.Node(fast, 10, 10));
  world.Endpoint({.workload = client, .groups = {{testing::CallTree{web, 10, 1}}}});
  world.Endpoint({.workload = client, .groups = {{testing::CallTree{web, 10, 0.5}}}});
  const State state = world.Build();
  Evaluator model(LatencyLaw::Physical());
  model.Reset(state);
  const double per_call = 1.2e-7 * (4 + 16);  // Rounding of four calls and of what is done to them.
  const double transfer_ms = 1.5 * 2000 / 4, loopback_ms = 2 * (2 * 5 - 0.1);
  EXPECT_DOUBLE_EQ(KindErrorMs(model),
                   (transfer_ms + loopback_ms) / 2 + per_call * model.Now().latency_ms);
  Evaluator reach(LatencyLaw::Reach());
  reach.Reset(state);
  EXPECT_DOUBLE_EQ(KindErrorMs(reach), 1.5 / 1024 / 4 / 2 + per_call * reach.Now().latency_ms);
}

}  // namespace
}  // namespace rudderfish
