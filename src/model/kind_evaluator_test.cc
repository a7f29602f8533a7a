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

}  // namespace
}  // namespace rudderfish
