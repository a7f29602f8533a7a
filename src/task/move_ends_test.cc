// SPDX-License-Identifier: Apache-2.0
#include "task/move_ends.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::RandomWorld;
using testing::WorldBuilder;

struct Listed {
  explicit Listed(const State& start) : state(start), model(LatencyLaw::Reach()) {
    model.Reset(state);
    ends.List(model, model.Gains());
  }
  State state;
  Evaluator model;
  MoveEnds ends;
};

bool AcceptsMoves(const State& state, NodeId node) {
  return state.catalog->layers[state.kind_of(node).layer].accepts_moves;
}

RC_GTEST_PROP(MoveEnds, AreTheNodesWithPodsAndTheNodesWithRoomInTheOrderOfRows, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const Listed listed(*rc::gen::arbitrary<bool>() ? RandomWorld(&rng) : ContinuumWorld({}, &rng));
  const MoveEnds& ends = listed.ends;
  const Placement& placement = listed.model.placement();
  int64_t moves = 0, cells = 0;
  size_t host_count = 0, target_count = 0;
  RC_ASSERT(ends.workload_count() == placement.workload_count());
  for (WorkloadId w = 0; w < ends.workload_count(); ++w) {
    const bool movable = listed.state.catalog->workloads[w].movable && placement.replicas(w) > 0;
    size_t hosts = 0, targets = 0;
    for (int row = 0; row < ends.node_count(); ++row) {
      const NodeId node = ends.node(row).id;
      if (const int here = placement.on_node(w, node); here > 0) {
        RC_ASSERT(ends.hosts(w)[hosts].workload == w);
        RC_ASSERT(ends.hosts(w)[hosts].row == row);
        RC_ASSERT(ends.hosts(w)[hosts].pods == here);
        ++hosts;
      }
      if (!movable || !AcceptsMoves(listed.state, node) || !placement.Fits(w, node)) continue;
      RC_ASSERT(ends.targets(w)[targets].workload == w);
      RC_ASSERT(ends.targets(w)[targets].row == row);
      RC_ASSERT(ends.targets(w)[targets].pods == placement.on_node(w, node));
      ++targets;
      for (NodeId from = 0; from < placement.node_count(); ++from) {
        moves += from != node && placement.on_node(w, from) > 0;
        cells += from != node ? placement.on_node(w, from) : 0;
      }
    }
    RC_ASSERT(ends.hosts(w).size() == hosts);
    RC_ASSERT(ends.targets(w).size() == targets);
    host_count += hosts;
    target_count += targets;
  }
  RC_ASSERT(ends.hosts().size() == host_count);
  RC_ASSERT(ends.targets().size() == target_count);
  RC_ASSERT(ends.moves() == moves);
  RC_ASSERT(ends.cells() == cells);
}

RC_GTEST_PROP(MoveEnds, RowsAreAllNodesByKeyAndSayWhatTheNodeIs, ()) {
  Rng rng(*rc::gen::arbitrary<uint32_t>());
  const Listed listed(RandomWorld(&rng));
  const MoveEnds& ends = listed.ends;
  const Placement& placement = listed.model.placement();
  RC_ASSERT(ends.node_count() == placement.node_count());
  for (int row = 0; row < ends.node_count(); ++row) {
    const MoveEnds::Node& node = ends.node(row);
    RC_ASSERT(ends.row(node.id) == row);
    RC_ASSERT(node.free == placement.free(node.id));
    RC_ASSERT(node.kind == placement.kind(node.id));
    RC_ASSERT((node.target >= 0) == AcceptsMoves(listed.state, node.id));
    if (row > 0) {
      const NodeId before = ends.node(row - 1).id;
      RC_ASSERT(ends.key(before) < ends.key(node.id) ||
                (ends.key(before) == ends.key(node.id) && before < node.id));
    }
  }
}

// Two nodes of one kind with equal room, one pod on each.
TEST(MoveEnds, KeysAreEqualForEqualNodesAndTellApartWhoRunsThere) {
  for (const bool same : {true, false}) {
    WorldBuilder world;
    const KindId kind = world.Kind("node", world.Layer("all"));
    const WorkloadId client = world.Workload("client", 100, 1, false);
    const WorkloadId web = world.Workload("web", 300, 1), db = world.Workload("db", 300, 1);
    const NodeId a = world.Node(kind, 1000, 100), b = world.Node(kind, 1000, 100);
    world.Pod(client, world.Node(kind, 500, 100));
    world.Pod(web, a);
    world.Pod(same ? web : db, b);
    world.Endpoint({.workload = client, .groups = {{testing::CallTree{web, 1}}}});
    const Listed listed(world.Build());
    EXPECT_EQ(listed.ends.key(a) == listed.ends.key(b), same);
  }
}

// Nodes that differ in one thing alone: kind, CPU, memory, who runs there, how many.
TEST(MoveEnds, KeysTellApartWhatANodeIsAndHolds) {
  WorldBuilder world;
  const LayerId layer = world.Layer("all");
  const KindId kind = world.Kind("node", layer), other = world.Kind("other", layer);
  const WorkloadId web = world.Workload("web", 100, 1), db = world.Workload("db", 100, 1);
  world.Node(kind, 1000, 100);
  world.Node(other, 1000, 100);
  world.Node(kind, 1001, 100);
  world.Node(kind, 1000, 101);
  world.Pod(web, world.Node(kind, 1100, 101));
  world.Pod(db, world.Node(kind, 1100, 101));
  const NodeId two = world.Node(kind, 1200, 102), mixed = world.Node(kind, 1200, 102);
  for (WorkloadId w : {web, web}) world.Pod(w, two);
  for (WorkloadId w : {web, db}) world.Pod(w, mixed);
  const NodeId three = world.Node(kind, 1300, 103);
  for (WorkloadId w : {web, db, db}) world.Pod(w, three);
  world.Endpoint({.workload = web, .groups = {{testing::CallTree{db, 1}}}});
  const Listed listed(world.Build());
  std::set<uint64_t> keys;
  for (NodeId node = 0; node <= three; ++node)
    EXPECT_TRUE(keys.insert(listed.ends.key(node)).second) << node;
}

// Few nodes are ranked pair by pair, many are sorted.
TEST(MoveEnds, ManyNodesAreOrderedAsFewAre) {
  for (const int nodes : {3, 48, 49, 130}) {
    WorldBuilder world;
    const KindId kind = world.Kind("node", world.Layer("all"));
    const WorkloadId client = world.Workload("client", 100, 1, false);
    const NodeId first = world.Node(kind, 1000, 100);
    for (int i = 1; i < nodes; ++i) world.Node(kind, 1000 + i / 2, 100);  // Twins among them.
    world.Pod(client, first);
    world.Endpoint({.workload = client});
    const Listed listed(world.Build());
    std::set<NodeId> seen;
    for (int row = 0; row < nodes; ++row) {
      const NodeId node = listed.ends.node(row).id;
      EXPECT_TRUE(seen.insert(node).second);
      EXPECT_EQ(listed.ends.row(node), row);
      if (row == 0) continue;
      const NodeId before = listed.ends.node(row - 1).id;
      EXPECT_LE(listed.ends.key(before), listed.ends.key(node));
      if (listed.ends.key(before) == listed.ends.key(node)) {
        EXPECT_LT(before, node);
      }
    }
  }
}

}  // namespace
}  // namespace rudderfish
