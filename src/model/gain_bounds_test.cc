// SPDX-License-Identifier: Apache-2.0
#include "model/gain_bounds.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::ContinuumWorld;
using testing::RandomWorld;
using testing::WorldBuilder;

// Calls visit(move, gain by kind, exact gain) for every move of a movable workload, room or not.
template <class Visit>
void ForEachMove(Evaluator* model, Visit visit) {
  const State& state = model->state();
  for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
    if (!state.catalog->workloads[w].movable) continue;
    for (NodeId from = 0; from < state.nodes.size(); ++from) {
      if (model->placement().on_node(w, from) == 0) continue;
      for (NodeId to = 0; to < state.nodes.size(); ++to) {
        const KindId kind = model->placement().kind(to);
        if (to == from || model->Gains().TargetOf(kind) < 0) continue;
        const Move move{w, from, to};
        const double by_kind = model->Gains().Gain(w, model->placement().kind(from), kind);
        visit(move, by_kind, model->Now().latency_ms - model->Try(move).latency_ms);
      }
    }
  }
}

RC_GTEST_PROP(GainBounds, HoldTheExactGainOfEveryMove, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  State state = *rc::gen::arbitrary<bool>() ? RandomWorld(&rng) : ContinuumWorld({}, &rng);
  // From idle nodes to some beyond the knee, where shares no longer fall.
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    state.nodes.background_mbytes_per_s[node] =
        rng.Uniform(0, 1.1) * state.kind_of(node).bandwidth_mbytes_per_s;
  }
  Evaluator model(*rc::gen::arbitrary<bool>() ? LatencyLaw::Physical() : LatencyLaw::Reach());
  model.Reset(state);
  GainBounds bounds;
  bounds.Reset(model);
  ForEachMove(&model, [&](const Move& move, double by_kind, double exact) {
    const GainRange range = bounds.Of(move, by_kind);
    RC_ASSERT(range.least_ms <= exact);
    RC_ASSERT(exact <= range.most_ms);
  });
}

TEST(GainBounds, HoldAlongAPlan) {
  Rng rng(2);
  GainBounds bounds;
  for (int i = 0; i < 20; ++i) {
    const State state = RandomWorld(&rng);
    Evaluator model(LatencyLaw::Physical());
    model.Reset(state);
    for (int step = 0; step < 5; ++step) {
      bounds.Reset(model);
      Move last{kNone, kNone, kNone};
      ForEachMove(&model, [&](const Move& move, double by_kind, double exact) {
        const GainRange range = bounds.Of(move, by_kind);
        EXPECT_LE(range.least_ms, exact);
        EXPECT_GE(range.most_ms, exact);
        if (rng.Below(5) == 0) last = move;
      });
      if (last.workload != kNone) model.Commit(last);
    }
  }
}

// A caller outside and pods of one service, alone on their nodes, in one chain of calls: nothing is
// left open but rounding.
TEST(GainBounds, AreExactWhereThePodThatMovesSharesNoNode) {
  WorldBuilder world;
  const LayerId cloud = world.Layer("cloud"), edge = world.Layer("edge");
  const KindId wide = world.Kind("wide", cloud, 1, 100), narrow = world.Kind("narrow", edge, 2, 20);
  const WorkloadId client = world.Workload("client", 1, 1, false),
                   service = world.Workload("service", 100, 100);
  world.LatencyBothWays(cloud, edge, 20);
  const NodeId home = world.Node(wide, 1000, 1000);
  world.Pod(client, home);
  for (const KindId kind : {narrow, narrow, wide, wide, narrow}) {
    const NodeId node = world.Node(kind, 1000, 1000);
    if (node <= 3) world.Pod(service, node);
  }
  world.Endpoint({.workload = client, .groups = {{CallTree{service, 10, 0.5}}}}, 5);
  const State state = world.Build();
  Evaluator model(LatencyLaw::Physical());
  model.Reset(state);
  GainBounds bounds;
  bounds.Reset(model);
  int moves = 0;
  ForEachMove(&model, [&](const Move& move, double by_kind, double exact) {
    if (model.placement().on_node(service, move.to) > 0 || move.to == home) return;
    const GainRange range = bounds.Of(move, by_kind);
    EXPECT_NEAR(range.least_ms, exact, 1e-2);
    EXPECT_NEAR(range.most_ms, exact, 1e-2);
    ++moves;
  });
  EXPECT_EQ(moves, 6);
}

}  // namespace
}  // namespace rudderfish
