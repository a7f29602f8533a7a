// SPDX-License-Identifier: Apache-2.0
#include "model/placement_cursor.h"

#include <gtest/gtest.h>

#include <utility>
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
      EXPECT_EQ(cursor.on_node(w, node), placement.movable_on_node(w, node));
      EXPECT_TRUE(cursor.free(node) == placement.free(node));
      if (placement.movable_on_node(w, node) > 0) hosts.push_back(node);
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
    const State drawn = RandomWorld(&rng);
    const State state = i % 2 == 0 ? drawn : testing::WithPodsHeld(drawn, &rng);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    PlacementCursor cursor;
    cursor.Reset(model);
    Placement placement = model.placement();
    for (int step = 0; step < 20; ++step) {
      const Move move{static_cast<WorkloadId>(rng.Below(placement.workload_count())),
                      static_cast<NodeId>(rng.Below(placement.node_count())),
                      static_cast<NodeId>(rng.Below(placement.node_count()))};
      if (placement.movable_on_node(move.workload, move.from) == 0 || move.from == move.to)
        continue;
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

// A node of each kind in turn, a pod of the service on the last one.
State ManyNodes(int nodes) {
  testing::WorldBuilder world;
  const LayerId layer = world.Layer("cloud"), closed = world.Layer("closed", false);
  const KindId kinds[] = {world.Kind("node", layer), world.Kind("slow", layer, 2),
                          world.Kind("closed", closed)};
  const WorkloadId service = world.Workload("service", 500, 100);
  for (int i = 0; i < nodes; ++i) world.Node(kinds[i % 3], i % 5 == 0 ? 499 : 1000, 1000);
  world.Pod(service, (nodes - 1) % 5 == 0 ? nodes - 2 : nodes - 1);
  world.Endpoint({.workload = service});
  return world.Build();
}

TEST(PlacementCursor, SetsTakeAWordForEach64Nodes) {
  for (const auto& [nodes, words] :
       {std::pair{2, 1}, {63, 1}, {64, 1}, {65, 2}, {128, 2}, {129, 3}}) {
    const State state = ManyNodes(nodes);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    PlacementCursor cursor;
    cursor.Reset(model);
    EXPECT_EQ(cursor.word_count(), words);
    ExpectConsistent(cursor, model.placement(), state);
    std::vector<std::vector<NodeId>> of_kind(3);
    for (NodeId node = 0; node < nodes; ++node) of_kind[node % 3].push_back(node);
    for (KindId kind = 0; kind < 3; ++kind) {
      EXPECT_EQ(NodesOf(cursor.OfKind(kind), cursor), of_kind[kind]);
      EXPECT_EQ(cursor.KindAccepts(kind), kind < 2);
    }
    std::vector<NodeId> both;
    ForEachNode(cursor.OfKind(1), cursor.Targets(0), cursor.word_count(),
                [&](NodeId node) { both.push_back(node); });
    std::vector<NodeId> expected;
    for (NodeId node : of_kind[1]) {
      if (model.placement().Fits(0, node)) expected.push_back(node);
    }
    EXPECT_EQ(both, expected);
  }
}

// The known outputs of SplitMix64: the first two of seed 0's neighbours, and cells far out.
TEST(PlacementCursor, CellsHashAsSplitMix64OfWorkloadAndNode) {
  EXPECT_EQ(PlacementCursor::CellHash(0, 0), 0xE220A8397B1DCDAFull);
  EXPECT_EQ(PlacementCursor::CellHash(0, 1), 0x910A2DEC89025CC1ull);
  EXPECT_EQ(PlacementCursor::CellHash(1, 0), 0xC42C5A1AA3820138ull);
  EXPECT_EQ(PlacementCursor::CellHash(3, 70000), 0xC6C81C857EB9259Aull);
}

TEST(PlacementCursor, HashesAreSumsOverPodsByNodeAndByKind) {
  for (int seed = 0; seed < 40; ++seed) {
    Rng rng(seed, 14);
    const State state = RandomWorld(&rng);
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    PlacementCursor cursor;
    cursor.Reset(model);
    uint64_t by_node = 0, by_kind = 0;
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      const WorkloadId w = state.pods.workload[pod];
      by_node += PlacementCursor::CellHash(w, state.pods.node[pod]);
      by_kind += PlacementCursor::CellHash(w, state.nodes.kind[state.pods.node[pod]]);
    }
    EXPECT_EQ(cursor.hash(), by_node);
    EXPECT_EQ(cursor.kind_hash(), by_kind);
  }
}

TEST(PlacementCursor, FollowsLatencyByKindThroughMoves) {
  for (int seed = 0; seed < 40; ++seed) {
    Rng rng(seed, 15);
    const State state = RandomWorld(&rng);
    if (state.nodes.size() < 2) continue;
    Evaluator model(LatencyLaw::Reach());
    model.Reset(state);
    PlacementCursor cursor;
    cursor.Reset(model);
    State moved = state;
    for (int step = 0; step < 8; ++step) {
      const PodId pod = static_cast<PodId>(rng.Below(moved.pods.size()));
      const NodeId from = moved.pods.node[pod];
      const NodeId to = (from + 1 + rng.Below(moved.nodes.size() - 1)) % moved.nodes.size();
      const Move move{moved.pods.workload[pod], from, to};
      const uint64_t promised = cursor.KindHashAfter(move);
      cursor.Apply(move);
      MovePod(pod, to, &moved);
      EXPECT_EQ(cursor.kind_hash(), promised);
      for (KindId kind = 0; kind < cursor.kind_count(); ++kind) {
        int pods = 0;
        for (NodeId node = 0; node < cursor.node_count(); ++node)
          pods += cursor.kind(node) == kind ? cursor.on_node(move.workload, node) : 0;
        EXPECT_EQ(cursor.by_kind().count(move.workload, kind), pods);
      }
    }
    model.Reset(moved);
    EXPECT_NEAR(cursor.by_kind().LatencyMs(), model.Now().latency_ms, 1e-4);
  }
}

}  // namespace
}  // namespace rudderfish
