// SPDX-License-Identifier: Apache-2.0
#include "policy/move_order.h"

#include <gtest/gtest.h>

#include "task/migration.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;

// A way of chance from the model's placement, which stays.
std::vector<Move> AnyWay(const State& state, const Task& task, int steps, Rng* rng) {
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  model.ImagineMoves();
  ActionSpace space;
  std::vector<Move> way;
  for (int i = 0; i < steps; ++i) {
    task.Space(&model, {}, &space);
    if (space.count() == 0) break;
    way.push_back(space.candidates[rng->Below(static_cast<uint32_t>(space.count()))].move);
    model.CommitForGood(way.back());
  }
  return way;
}

TEST(MoveOrder, LeadsWhereTheWayLeadsWithOneMoveForEachPod) {
  Rng rng(1);
  const MigrationTask task({});
  MoveOrder order;
  int with_as_few_moves = 0, ways = 0;
  for (int i = 0; i < 60; ++i) {
    const State state = ContinuumWorld({}, &rng);
    const std::vector<Move> way = AnyWay(state, task, 12, &rng);
    Evaluator model(LatencyLaw::Reach()), there(LatencyLaw::Reach());
    model.Reset(state);
    there.Reset(state);
    there.ImagineMoves();
    for (const Move& move : way) there.Commit(move);
    int displaced = 0;
    for (WorkloadId w = 0; w < model.placement().workload_count(); ++w) {
      for (NodeId node = 0; node < model.placement().node_count(); ++node) {
        displaced +=
            std::max(0, there.placement().on_node(w, node) - model.placement().on_node(w, node));
      }
    }
    ActionSpace first;
    task.Space(&model, {}, &first);
    Plan plan;
    order.Order(&model, way, first, &plan);
    model.ImagineMoves();
    for (const Move& move : plan.moves) {
      ASSERT_TRUE(MoveAllowed(state, model.placement(), move));
      model.Commit(move);
    }
    EXPECT_TRUE(model.placement() == there.placement());
    EXPECT_GE(static_cast<int>(plan.moves.size()), displaced);
    EXPECT_LE(plan.moves.size(), way.size());
    with_as_few_moves += static_cast<int>(plan.moves.size()) == displaced;
    ++ways;
  }
  EXPECT_GE(with_as_few_moves, ways * 9 / 10);
}

TEST(MoveOrder, BeginsWithAnAlternativeOfTheQuestion) {
  Rng rng(2);
  const MigrationTask task({});
  MoveOrder order;
  for (int i = 0; i < 20; ++i) {
    const State state = ContinuumWorld({}, &rng);
    const std::vector<Move> way = AnyWay(state, task, 8, &rng);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    ActionSpace first;
    task.Space(&model, {}, &first);
    Plan all;
    order.Order(&model, way, first, &all);
    if (all.moves.size() < 2) continue;
    std::erase_if(first.candidates, [&](const Candidate& c) { return c.move == all.moves[0]; });
    Plan other;
    order.Order(&model, way, first, &other);
    ASSERT_FALSE(other.moves.empty());
    if (other.moves.size() == all.moves.size()) {
      EXPECT_FALSE(other.moves[0] == all.moves[0]);
    }
  }
}

// Two full nodes whose pods change places through the room of a third: no order of one move for
// each pod finds room, but the way that was taken does.
TEST(MoveOrder, GoesTheWayWhereNoOrderFindsRoom) {
  testing::WorldBuilder world;
  const KindId kind = world.Kind("node", world.Layer("all"));
  const WorkloadId client = world.Workload("client", 1, 1, false), a = world.Workload("a", 100, 1),
                   b = world.Workload("b", 100, 1);
  const NodeId first = world.Node(kind, 101, 100), second = world.Node(kind, 100, 100),
               spare = world.Node(kind, 100, 100);
  world.Pod(client, first);
  world.Pod(a, first);
  world.Pod(b, second);
  world.Endpoint(
      {.workload = client, .groups = {{testing::CallTree{a, 1}, testing::CallTree{b, 1}}}});
  const State state = world.Build();
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  const MigrationTask task({});
  ActionSpace space;
  task.Space(&model, {}, &space);
  const std::vector<Move> way{{a, first, spare}, {b, second, first}, {a, spare, second}};
  MoveOrder order;
  Plan plan;
  order.Order(&model, way, space, &plan);
  EXPECT_EQ(plan.moves, way);
}

}  // namespace
}  // namespace rudderfish
