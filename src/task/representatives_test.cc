// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "task/migration.h"
#include "tests/support/small_world.h"

// Which alternatives a question lists, and in which order, written out from the header's rules.

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::RandomWorld;
using testing::WorldBuilder;

struct Listed {
  Listed(const State& start, int max_candidates)
      : state(start), task({.max_candidates = max_candidates}), model(LatencyLaw::Reach()) {
    model.Reset(state);
    task.Space(&model, {0}, &space);
  }
  State state;
  MigrationTask task;
  Evaluator model;
  ActionSpace space;
};

// Nodes in the order of rows, which settles ties.
std::vector<NodeId> Rows(const Listed& listed) {
  std::vector<NodeId> nodes;
  for (int row = 0; row < listed.state.nodes.size(); ++row)
    nodes.push_back(listed.space.ends.node(row).id);
  return nodes;
}

std::vector<Move> AllMoves(const Listed& listed) {
  std::vector<Move> moves;
  for (WorkloadId w = 0; w < listed.state.catalog->workload_count(); ++w) {
    for (NodeId to : Rows(listed)) {
      for (NodeId from : Rows(listed)) {
        if (MoveAllowed(listed.state, listed.model.placement(), {w, from, to}))
          moves.push_back({w, from, to});
      }
    }
  }
  return moves;
}

bool IsTarget(const Listed& listed, WorkloadId w, NodeId node) {
  const State& state = listed.state;
  return state.catalog->workloads[w].movable && listed.model.placement().Fits(w, node) &&
         state.catalog->layers[state.kind_of(node).layer].accepts_moves;
}

// The first of the nodes for which `better(node, all others)` holds against each one before.
template <class Better>
NodeId First(const std::vector<NodeId>& nodes, Better better) {
  NodeId best = nodes[0];
  for (NodeId node : nodes) {
    if (better(node, best)) best = node;
  }
  return best;
}

std::vector<Move> Representatives(const Listed& listed) {
  const Placement& placement = listed.model.placement();
  std::vector<Move> moves;
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    for (KindId i = 0; i < placement.kind_count(); ++i) {
      for (KindId j = 0; j < placement.kind_count(); ++j) {
        std::vector<NodeId> hosts, targets;
        for (NodeId node : Rows(listed)) {
          if (placement.kind(node) == i && placement.on_node(w, node) > 0) hosts.push_back(node);
          if (placement.kind(node) == j && IsTarget(listed, w, node)) targets.push_back(node);
        }
        if (hosts.empty() || targets.empty()) continue;
        const auto free = [&](NodeId node) { return placement.free(node).cpu_millis; };
        const auto pods = [&](NodeId node) { return placement.on_node(w, node); };
        const NodeId fullest = First(hosts, [&](auto a, auto b) { return free(a) < free(b); });
        const NodeId most = First(hosts, [&](auto a, auto b) { return pods(a) > pods(b); });
        const NodeId tight = First(targets, [&](auto a, auto b) { return free(a) < free(b); });
        const NodeId roomy = First(targets, [&](auto a, auto b) { return free(a) > free(b); });
        std::vector<NodeId> sources{fullest}, ends{tight};
        if (most != fullest) sources.push_back(most);
        if (roomy != tight) ends.push_back(roomy);
        for (NodeId from : sources) {
          for (NodeId to : ends) {
            if (from != to) moves.push_back({w, from, to});
          }
        }
        if (sources != ends || ends.size() > 1) continue;
        const auto is_other = [&](NodeId node) { return node != ends[0]; };
        const auto target = std::find_if(targets.begin(), targets.end(), is_other);
        const auto source = std::find_if(hosts.begin(), hosts.end(), is_other);
        if (target != targets.end()) {
          moves.push_back({w, ends[0], *target});
        } else if (source != hosts.end()) {
          moves.push_back({w, *source, ends[0]});
        }
      }
    }
  }
  return moves;
}

// Those with the largest gains, earlier ones first where gains are equal, in the order found.
std::vector<Move> Largest(Listed* listed, const std::vector<Move>& moves, size_t keep) {
  const auto gain = [&](const Move& move) {
    const Placement& placement = listed->model.placement();
    return listed->model.Gains().Gain(move.workload, placement.kind(move.from),
                                      placement.kind(move.to));
  };
  std::vector<size_t> order(moves.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return gain(moves[a]) > gain(moves[b]); });
  order.resize(std::min(keep, order.size()));
  std::sort(order.begin(), order.end());
  std::vector<Move> kept;
  for (size_t i : order) kept.push_back(moves[i]);
  return kept;
}

void ExpectCandidates(Listed* listed, const std::vector<Move>& moves) {
  const MoveEnds& ends = listed->space.ends;
  const Placement& placement = listed->model.placement();
  ASSERT_EQ(listed->space.candidates.size(), moves.size());
  for (size_t i = 0; i < moves.size(); ++i) {
    const Candidate& c = listed->space.candidates[i];
    const auto& [w, from, to] = moves[i];
    ASSERT_EQ(c.move, moves[i]) << i;
    EXPECT_EQ(c.pods, placement.on_node(w, from));
    EXPECT_EQ(c.gain_ms, listed->model.Gains().Gain(w, placement.kind(from), placement.kind(to)));
    EXPECT_EQ(ends.hosts()[c.source].workload, w);
    EXPECT_EQ(ends.node(ends.hosts()[c.source].row).id, from);
    EXPECT_EQ(ends.targets()[c.target].workload, w);
    EXPECT_EQ(ends.node(ends.targets()[c.target].row).id, to);
  }
}

TEST(MigrationTask, ListsAllAllowedMovesByWorkloadTargetAndSource) {
  for (int seed = 0; seed < 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 10);
    Listed listed(RandomWorld(&rng), 1024);
    ASSERT_TRUE(listed.space.exhaustive);
    ExpectCandidates(&listed, AllMoves(listed));
  }
}

TEST(MigrationTask, ListsRepresentativesOfWhichTheLargestGainsStayEarlierOnesFirst) {
  for (int seed = 0; seed < 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 11);
    const State state =
        seed % 3 == 0 ? RandomWorld(&rng) : ContinuumWorld({.clouds = 5, .edges = 10}, &rng);
    const Listed all(state, 1'000'000);
    const std::vector<Move> moves = AllMoves(all);
    const int count = static_cast<int>(moves.size());
    if (count < 2) continue;
    for (const int most : {1, 2, 3, 7, 20, count - 1, count, count + 1}) {
      SCOPED_TRACE(most);
      Listed listed(state, most);
      ASSERT_EQ(listed.space.exhaustive, count <= most);
      if (count <= most) {
        ExpectCandidates(&listed, moves);
      } else {
        ExpectCandidates(&listed, Largest(&listed, Representatives(listed), most));
      }
    }
  }
}

TEST(MigrationTask, ListsRepresentativesOfAsManyKindsAsItMay) {
  WorldBuilder world;
  const LayerId layer = world.Layer("all");
  for (int i = 0; i < 64; ++i) world.Kind("kind", layer, 1 + i * 0.01);
  const WorkloadId client = world.Workload("client", 100, 1, false),
                   web = world.Workload("web", 300, 1);
  for (KindId kind = 0; kind < 64; ++kind) world.Node(kind, 1000, 100);
  world.Pod(client, 0);
  world.Pod(web, 63);
  world.Endpoint({.workload = client, .groups = {{testing::CallTree{web, 10}}}});
  Listed listed(world.Build(), 40);
  ASSERT_EQ(listed.space.count(), 40);
  ExpectCandidates(&listed, Largest(&listed, Representatives(listed), 40));
}

TEST(MigrationTask, AMoveIsAllowedIfItsPodMayMoveAndTheOtherNodeTakesIt) {
  for (int seed = 0; seed < 40; ++seed) {
    Rng rng(seed, 12);
    const Listed listed(RandomWorld(&rng), 1024);
    const State& state = listed.state;
    std::set<std::tuple<WorkloadId, NodeId, NodeId>> allowed;
    for (PodId pod = 0; pod < state.pods.size(); ++pod) {
      const NodeId from = state.pods.node[pod];
      for (NodeId to = 0; to < state.nodes.size(); ++to) {
        if (to == from || !state.workload_of(pod).movable) continue;
        if (!state.catalog->layers[state.kind_of(to).layer].accepts_moves) continue;
        if (!state.nodes.free[to].Fits(state.workload_of(pod).requests)) continue;
        allowed.insert({state.pods.workload[pod], from, to});
      }
    }
    for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
      for (NodeId from = 0; from < state.nodes.size(); ++from) {
        for (NodeId to = 0; to < state.nodes.size(); ++to) {
          const Move move{w, from, to};
          const bool expected = allowed.count({w, from, to}) > 0;
          EXPECT_EQ(MoveAllowed(state, listed.model.placement(), move), expected);
          const int found = FindCandidate(listed.space, move);
          ASSERT_EQ(found != kStop, expected);
          if (expected) {
            EXPECT_EQ(listed.space.candidates[found].move, move);
          }
        }
      }
    }
  }
}

TEST(ParseMigrationOptions, TakesNumbersUpToTheirLimitsAndNoFurther) {
  const auto parses = [](const char* text) {
    return ParseMigrationOptions(*ParseYaml(text, "x.yaml")).has_value();
  };
  EXPECT_TRUE(parses("step_penalty_ms: 0"));
  EXPECT_TRUE(parses("step_penalty_ms: 1e6"));
  EXPECT_FALSE(parses("step_penalty_ms: 1000000.5"));
  EXPECT_FALSE(parses("step_penalty_ms: -0.5"));
  EXPECT_TRUE(parses("max_steps: 1"));
  EXPECT_TRUE(parses("max_steps: 1000000"));
  EXPECT_FALSE(parses("max_steps: 1000001"));
  EXPECT_TRUE(parses("max_candidates: 1"));
  EXPECT_FALSE(parses("max_candidates: 0"));
  EXPECT_TRUE(parses("max_candidates: 1000000"));
  EXPECT_FALSE(parses("max_candidates: 1000001"));
  EXPECT_TRUE(parses("step_penalty: growing"));
  EXPECT_TRUE(parses("features: model"));
}

}  // namespace
}  // namespace rudderfish
