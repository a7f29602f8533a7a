// SPDX-License-Identifier: Apache-2.0
#include "policy/tree_walk.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "model/evaluator.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

struct Placed {
  int32_t parent = kNone;
  Move move;
  uint64_t hash = 0;
};

// Up to `size` placements of a world, each a random move from a random earlier one.
std::vector<Placed> RandomTree(const State& state, const PlacementCursor& root, int size,
                               Rng* rng) {
  std::vector<Placed> tree{{.hash = root.hash()}};
  std::vector<PlacementCursor> cursors{root};
  for (int i = 0; i < size; ++i) {
    const auto parent = static_cast<int32_t>(rng->Below(tree.size()));
    const Move move{static_cast<WorkloadId>(rng->Below(state.catalog->workload_count())),
                    static_cast<NodeId>(rng->Below(state.nodes.size())),
                    static_cast<NodeId>(rng->Below(state.nodes.size()))};
    PlacementCursor cursor = cursors[parent];
    if (cursor.on_node(move.workload, move.from) == 0 || move.from == move.to) continue;
    cursor.Apply(move);
    tree.push_back({parent, move, cursor.hash()});
    cursors.push_back(std::move(cursor));
  }
  return tree;
}

TEST(TreeWalk, LeadsFromAnyPlacementToAnyOther) {
  Rng rng(1);
  for (int i = 0; i < 30; ++i) {
    const State state = testing::RandomWorld(&rng);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    PlacementCursor cursor;
    cursor.Reset(model);
    const std::vector<Placed> tree = RandomTree(state, cursor, 60, &rng);
    TreeWalk walk;
    walk.BeginAtRoot();
    for (int step = 0; step < 200; ++step) {
      const auto node = static_cast<int32_t>(rng.Below(tree.size()));
      walk.GoTo(tree, node, &cursor);
      EXPECT_EQ(cursor.hash(), tree[node].hash);
    }
  }
}

TEST(TreeWalk, MovesToANodeAreThoseFromTheRootInOrder) {
  const Move first{0, 1, 2}, second{1, 0, 1}, other{0, 2, 3};
  const std::vector<Placed> tree{{}, {0, first}, {0, other}, {1, second}};
  std::vector<Move> moves{other};
  MovesTo(tree, 3, &moves);
  EXPECT_EQ(moves, (std::vector<Move>{first, second}));
  MovesTo(tree, 0, &moves);
  EXPECT_TRUE(moves.empty());
}

}  // namespace
}  // namespace rudderfish
