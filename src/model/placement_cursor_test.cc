// SPDX-License-Identifier: Apache-2.0
#include "model/placement_cursor.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "model/evaluator.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::RandomWorld;

std::vector<NodeId> NodesOf(const uint64_t* set, const PlacementCursor& cursor) {
  std::vector<NodeId> nodes;
  ForEachNode(set, cursor.word_count(), [&](NodeId node) { nodes.push_back(node); });
  return nodes;
}

// The sets again, from first principles.
void ExpectConsistent(const PlacementCursor& cursor, const Placement& placement,
                      const State& state) {
  const Catalog& catalog = *state.catalog;
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    std::vector<NodeId> hosts, targets;
    for (NodeId node = 0; node < placement.node_count(); ++node) {
      EXPECT_EQ(cursor.on_node(w, node), placement.on_node(w, node));
      EXPECT_TRUE(cursor.free(node) == placement.free(node));
      if (placement.on_node(w, node) > 0) hosts.push_back(node);
      const bool accepts = catalog.layers[catalog.kinds[placement.kind(node)].layer].accepts_moves;
      if (accepts && placement.Fits(w, node)) targets.push_back(node);
    }
    EXPECT_EQ(NodesOf(cursor.Hosts(w), cursor), hosts);
    const bool movable = catalog.workloads[w].movable && placement.replicas(w) > 0;
    if (!movable) targets.clear();
    EXPECT_EQ(NodesOf(cursor.Targets(w), cursor), targets);
  }
}

TEST(PlacementCursor, KeepsHostsRoomAndTargetsThroughMoves) {
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    const State state = RandomWorld(&rng);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    PlacementCursor cursor;
    cursor.Reset(model);
    Placement placement = model.placement();
    for (int step = 0; step < 20; ++step) {
      const Move move{static_cast<WorkloadId>(rng.Below(placement.workload_count())),
                      static_cast<NodeId>(rng.Below(placement.node_count())),
                      static_cast<NodeId>(rng.Below(placement.node_count()))};
      if (placement.on_node(move.workload, move.from) == 0 || move.from == move.to) continue;
      const uint64_t promised = cursor.HashAfter(move);
      placement.Apply(move);
      cursor.Apply(move);
      EXPECT_EQ(cursor.hash(), promised);
      ExpectConsistent(cursor, placement, state);
    }
  }
}

TEST(PlacementCursor, RevertLeadsBackAndOrderDoesNotMatterToTheHash) {
  Rng rng(2);
  const State state = testing::ContinuumWorld({.replicas_max = 3}, &rng);
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  PlacementCursor cursor;
  cursor.Reset(model);
  const uint64_t start = cursor.hash();
  const double start_ms = cursor.by_kind().LatencyMs();
  const NodeId a = state.pods.node[0], b = (a + 1) % 6;
  const WorkloadId w = state.pods.workload[0];
  PodId other = 0;
  while (state.pods.workload[other] == w) ++other;
  const WorkloadId v = state.pods.workload[other];
  const NodeId c = state.pods.node[other], d = (c + 1) % 6;
  cursor.Apply({w, a, b});
  cursor.Apply({v, c, d});
  const uint64_t both = cursor.hash();
  cursor.Revert({v, c, d});
  cursor.Revert({w, a, b});
  EXPECT_EQ(cursor.hash(), start);
  EXPECT_EQ(cursor.by_kind().LatencyMs(), start_ms);
  cursor.Apply({v, c, d});
  cursor.Apply({w, a, b});
  EXPECT_EQ(cursor.hash(), both);
}

TEST(PlacementCursor, HandlesMoreNodesThanAWordHasBits) {
  testing::WorldBuilder world;
  const LayerId layer = world.Layer("cloud");
  const KindId kind = world.Kind("node", layer);
  const WorkloadId client = world.Workload("client", 1, 1, false),
                   service = world.Workload("service", 500, 100);
  for (int i = 0; i < 130; ++i) world.Node(kind, i % 2 == 0 ? 1000 : 100, 1000);
  world.Pod(client, 0);
  world.Pod(service, 128);
  world.Endpoint({.workload = client, .groups = {{{.workload = service, .execution_ms = 1}}}});
  const State state = world.Build();
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  PlacementCursor cursor;
  cursor.Reset(model);
  ExpectConsistent(cursor, model.placement(), state);
  cursor.Apply({service, 128, 64});
  EXPECT_EQ(NodesOf(cursor.Hosts(service), cursor), std::vector<NodeId>{64});
}

}  // namespace
}  // namespace rudderfish
