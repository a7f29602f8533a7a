// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/evaluator.h"
#include "model/kind_ends.h"
#include "model/layer_targets.h"
#include "tests/support/small_world.h"

// All ends and all assignments of small worlds, found by trying everything.

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::WorldBuilder;

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<double> GrowingSteps(int count) {
  std::vector<double> sums(count + 1);
  for (int i = 0; i < count; ++i) sums[i + 1] = sums[i] + 0.5 * (i + 1);
  return sums;
}

struct Shape {
  int layers = 2;
  int movable = 2;
  int replicas_max = 3;
  int nodes_of_kind = 2;
};

// Two kinds a layer, one more in a layer that takes no pods and a layer without kinds; nodes just
// large enough, so that not everything fits everywhere.
State TightWorld(const Shape& shape, Rng* rng) {
  for (;;) {
    WorldBuilder world;
    std::vector<KindId> kinds;
    for (int i = 0; i < shape.layers; ++i) {
      const LayerId layer = world.Layer("layer");
      for (int k = 0; k < (shape.layers > 2 ? 1 : 2 - i); ++k)
        kinds.push_back(world.Kind("kind", layer, rng->Uniform(1, 3)));
    }
    world.Layer("empty");
    const LayerId closed = world.Layer("closed", false);
    kinds.insert(kinds.begin() + rng->Below(2), world.Kind("closed", closed, 1));
    for (LayerId from = 0; from <= closed; ++from) {
      for (LayerId to = 0; to <= closed; ++to) world.Latency(from, to, rng->Uniform(1, 60));
    }
    for (int w = 0; w < shape.movable; ++w)
      world.Workload("service", rng->Between(300, 900), rng->Between(300, 900));
    const WorkloadId client = world.Workload("client", 100, 100, false);
    std::vector<NodeId> nodes;
    for (KindId kind : kinds) {
      for (int i = rng->Between(1, shape.nodes_of_kind); i > 0; --i)
        nodes.push_back(world.Node(kind, rng->Between(900, 2400), rng->Between(900, 2400)));
    }
    std::vector<int> replicas;
    for (int w = 0; w < shape.movable; ++w) replicas.push_back(rng->Between(0, shape.replicas_max));
    replicas.push_back(1);
    if (!testing::PlaceAtRandom(replicas, nodes, rng, &world)) continue;
    for (int i = rng->Between(1, 2); i > 0; --i) {
      CallTree root = testing::RandomCalls(shape.movable, 2, rng);
      world.Endpoint({.workload = client, .groups = {{root}}});
    }
    return world.Build();
  }
}

struct World {
  explicit World(const State& start) : state(start), model(LatencyLaw::Reach()) {
    model.Reset(state);
    cursor.Reset(model);
    by_kind.Reset(model);
  }
  bool Accepts(KindId kind) const {
    return state.catalog->layers[state.catalog->kinds[kind].layer].accepts_moves;
  }
  std::vector<WorkloadId> Movers() const {
    std::vector<WorkloadId> movers;
    for (WorkloadId w = 0; w < state.catalog->workload_count(); ++w) {
      if (state.catalog->workloads[w].movable && model.placement().replicas(w) > 0)
        movers.push_back(w);
    }
    return movers;
  }

  State state;
  Evaluator model;
  PlacementCursor cursor;
  KindEvaluator by_kind;
};

using End = std::vector<std::vector<int>>;  // [mover][kind]

// Brings the pods to where the end has them and says what that costs; then back.
double LatencyOf(World* world, const End& end) {
  const std::vector<WorkloadId> movers = world->Movers();
  std::vector<std::function<void()>> back;
  for (size_t m = 0; m < movers.size(); ++m) {
    const WorkloadId w = movers[m];
    const int kinds = world->by_kind.kind_count();
    for (KindId to = 0; to < kinds; ++to) {
      for (KindId from = 0; from < kinds; ++from) {
        while (world->by_kind.count(w, to) < end[m][to] &&
               world->by_kind.count(w, from) > end[m][from]) {
          world->by_kind.Apply(w, from, to);
          back.push_back([=] { world->by_kind.Apply(w, to, from); });
        }
      }
    }
  }
  const double latency_ms = world->by_kind.LatencyMs();
  for (; !back.empty(); back.pop_back()) back.back()();
  return latency_ms;
}

// Whether the pods, each by itself, fit the rooms in any way.
bool Packs(std::vector<Resources> rooms, std::vector<Resources> pods) {
  if (pods.empty()) return true;
  const Resources pod = pods.back();
  pods.pop_back();
  for (Resources& room : rooms) {
    if (!room.Fits(pod)) continue;
    room -= pod;
    if (Packs(rooms, pods)) return true;
    room += pod;
  }
  return false;
}

bool Fits(const World& world, const End& end) {
  const Placement& placement = world.model.placement();
  const std::vector<WorkloadId> movers = world.Movers();
  for (KindId kind = 0; kind < placement.kind_count(); ++kind) {
    std::vector<Resources> rooms, pods;
    for (NodeId node = 0; node < placement.node_count(); ++node) {
      if (placement.kind(node) != kind) continue;
      rooms.push_back(placement.free(node));
      for (WorkloadId w : movers) {
        for (int i = 0; i < placement.on_node(w, node); ++i) rooms.back() += placement.requests(w);
      }
    }
    for (size_t m = 0; m < movers.size(); ++m)
      pods.insert(pods.end(), end[m][kind], placement.requests(movers[m]));
    if (!Packs(rooms, pods)) return false;
  }
  return true;
}

int MovesBetween(const World& world, const KindEvaluator& here, const End& end) {
  int moves = 0;
  const std::vector<WorkloadId> movers = world.Movers();
  for (size_t m = 0; m < movers.size(); ++m) {
    for (KindId kind = 0; kind < here.kind_count(); ++kind)
      moves += std::max(0, end[m][kind] - here.count(movers[m], kind));
  }
  return moves;
}

// All ways to put the movers' pods on kinds; where none may be moved to, no more than are there.
void AllEnds(const World& world, size_t mover, KindId kind, int left, End* end,
             std::vector<End>* ends) {
  const std::vector<WorkloadId> movers = world.Movers();
  if (mover == movers.size()) {
    ends->push_back(*end);
    return;
  }
  const WorkloadId w = movers[mover];
  const int kinds = world.model.placement().kind_count();
  if (kind == kinds) {
    if (left > 0) return;
    const int next =
        mover + 1 < movers.size() ? world.model.placement().replicas(movers[mover + 1]) : 0;
    AllEnds(world, mover + 1, 0, next, end, ends);
    return;
  }
  const int most =
      world.Accepts(kind) ? left : std::min(left, world.model.placement().on_kind(w, kind));
  for (int pods = 0; pods <= most; ++pods) {
    (*end)[mover][kind] = pods;
    AllEnds(world, mover, kind + 1, left - pods, end, ends);
  }
  (*end)[mover][kind] = 0;
}

std::vector<End> AllEnds(const World& world) {
  const std::vector<WorkloadId> movers = world.Movers();
  End end(movers.size(), std::vector<int>(world.model.placement().kind_count()));
  std::vector<End> ends;
  AllEnds(world, 0, 0, movers.empty() ? 0 : world.model.placement().replicas(movers[0]), &end,
          &ends);
  return ends;
}

TEST(KindEnds, AreAllThatFitAndCostLessThanTheBarAndBoundEveryPlan) {
  int listed_in_all = 0, left_out = 0;
  for (int seed = 0; seed < 80 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 17);
    World world(TightWorld({}, &rng));
    if (world.Movers().empty()) continue;
    const std::vector<double> steps = GrowingSteps(rng.Between(1, 6));
    const double start_ms = world.by_kind.LatencyMs();
    const double bar_ms = rng.Below(2) == 0 ? kNever : start_ms + 0.1;
    std::vector<std::pair<double, End>> expected;
    for (const End& end : AllEnds(world)) {
      const size_t moves = MovesBetween(world, world.by_kind, end);
      const bool fits = Fits(world, end);
      left_out += !fits;
      if (!fits || moves >= steps.size()) continue;
      const double latency_ms = LatencyOf(&world, end);
      if (latency_ms + steps[moves] < bar_ms) expected.push_back({latency_ms, end});
    }
    KindEnds ends;
    ASSERT_TRUE(ends.List(steps, bar_ms, 1'000'000, &world.cursor));
    EXPECT_EQ(ends.count(), static_cast<int64_t>(expected.size()));
    EXPECT_EQ(world.cursor.by_kind().LatencyMs(), start_ms);
    listed_in_all += static_cast<int>(expected.size());
    // From here, and from two moves on.
    const auto bound = [&](int depth, double bar) {
      double best = kNever;
      for (const auto& [latency_ms, end] : expected) {
        const size_t moves = depth + MovesBetween(world, world.by_kind, end);
        if (moves < steps.size()) best = std::min(best, latency_ms + steps[moves]);
      }
      return best < bar ? best : kNever;
    };
    for (int depth = 0; depth < 3 && depth < static_cast<int>(steps.size()); ++depth) {
      for (const double bar : {kNever, bound(depth, kNever), bound(depth, kNever) + 1e-6})
        EXPECT_EQ(ends.Bound(world.by_kind, depth, bar), bound(depth, bar)) << depth;
      const WorkloadId w = world.Movers()[0];
      KindId from = 0, to = 0;
      while (world.by_kind.count(w, from) == 0) ++from;
      while (!world.Accepts(to) || to == from) ++to;
      world.by_kind.Apply(w, from, to);
    }
  }
  EXPECT_GT(listed_in_all, 500);
  EXPECT_GT(left_out, 500);  // Packing has decided.
}

TEST(KindEnds, CountMultisetsOfPlacesBeforeTheyAreLookedAt) {
  // Two services of 3 and 2 pods, three kinds that take them and one that does not and has one.
  WorldBuilder world;
  const LayerId open = world.Layer("open"), closed = world.Layer("closed", false);
  for (int i = 0; i < 3; ++i) world.Node(world.Kind("open", open), 9000, 9000);
  const NodeId shut = world.Node(world.Kind("closed", closed), 9000, 9000);
  const WorkloadId a = world.Workload("a", 100, 100), b = world.Workload("b", 100, 100);
  for (int i = 0; i < 3; ++i) world.Pod(a, 0);
  world.Pod(b, 0);
  world.Pod(b, shut);
  world.Endpoint({.workload = a, .groups = {{CallTree{b, 1}}}});
  World small(world.Build());
  const int64_t ends = 10 * 10;  // 3 pods over 3 places: C(5, 2); 2 over 4: C(5, 3).
  KindEnds listed;
  EXPECT_TRUE(listed.List(GrowingSteps(9), kNever, ends, &small.cursor));
  EXPECT_EQ(listed.count(), 10 * 9);  // Both of b on the closed kind is no end.
  EXPECT_FALSE(listed.List(GrowingSteps(9), kNever, ends - 1, &small.cursor));
}

TEST(KindEnds, WhereNothingMayMoveThereAreNone) {
  WorldBuilder world;
  const NodeId node = world.Node(world.Kind("closed", world.Layer("closed", false)), 900, 900);
  world.Pod(world.Workload("a", 100, 100), node);
  world.Endpoint({.workload = 0});
  World closed(world.Build());
  KindEnds ends;
  EXPECT_TRUE(ends.List(GrowingSteps(9), kNever, 1, &closed.cursor));
  EXPECT_EQ(ends.count(), 0);
  EXPECT_EQ(ends.Bound(closed.by_kind, 0, kNever), kNever);
}

using Assignment = std::map<WorkloadId, LayerId>;  // Of the movers that are sent somewhere.

// What the assignment costs with every pod sent to the kind of the layer where it gains most, or
// infinity where it sends a workload nowhere.
double CostOf(World* world, const Assignment& assignment, const std::vector<double>& steps) {
  const auto& kinds = world->state.catalog->kinds;
  std::vector<std::function<void()>> back;
  bool all_move = true;
  for (const auto& [w, layer] : assignment) {
    const size_t before = back.size();
    for (KindId from = 0; from < world->by_kind.kind_count(); ++from) {
      if (world->by_kind.count(w, from) == 0 || kinds[from].layer == layer) continue;
      const float* gains = world->by_kind.GainsFrom(w, from);
      std::vector<std::pair<float, KindId>> choices;  // Largest gain; of equal ones the first kind.
      for (KindId kind = 0; kind < world->by_kind.kind_count(); ++kind) {
        if (kinds[kind].layer == layer) choices.push_back({-gains[kind], kind});
      }
      const KindId to = std::min_element(choices.begin(), choices.end())->second;
      for (int pods = world->by_kind.count(w, from); pods > 0; --pods) {
        world->by_kind.Apply(w, from, to);
        back.push_back([=, f = from, t = to, v = w] { world->by_kind.Apply(v, t, f); });
      }
    }
    all_move &= back.size() > before;
  }
  const size_t moves = back.size();
  const bool counts = all_move && moves > 0 && moves < steps.size();
  const double cost_ms = counts ? world->by_kind.LatencyMs() + steps[moves] : kNever;
  for (; !back.empty(); back.pop_back()) back.back()();
  return cost_ms;
}

std::vector<LayerId> Layers(const World& world) {
  std::set<LayerId> layers;
  for (KindId kind = 0; kind < world.by_kind.kind_count(); ++kind) {
    if (world.Accepts(kind)) layers.insert(world.state.catalog->kinds[kind].layer);
  }
  return {layers.begin(), layers.end()};
}

std::set<Assignment> Everything(const World& world) {
  std::set<Assignment> all{{}};
  for (WorkloadId w : world.Movers()) {
    const std::set<Assignment> before = all;
    for (Assignment assignment : before) {
      for (LayerId layer : Layers(world)) {
        assignment[w] = layer;
        all.insert(assignment);
      }
    }
  }
  return all;
}

bool LeadsTo(const CallGraph& calls, CallId from, CallId to) {
  while (to != kNone && to != from) to = calls.calls[to].caller;
  return to == from;
}

// All, those of an endpoint, one, a caller with its callee, and one with all that it leads to, to
// one layer.
std::set<Assignment> Groups(const World& world) {
  const CallGraph& calls = *world.state.calls;
  const std::vector<WorkloadId> movers = world.Movers();
  std::set<Assignment> groups;
  for (LayerId layer : Layers(world)) {
    const auto add = [&](const std::set<WorkloadId>& sent) {
      Assignment assignment;
      for (WorkloadId w : movers) {
        if (sent.count(w) > 0) assignment[w] = layer;
      }
      groups.insert(assignment);
    };
    add({movers.begin(), movers.end()});
    for (const Endpoint& endpoint : calls.endpoints) {
      std::set<WorkloadId> sent;
      for (CallId call = endpoint.root; call < endpoint.end; ++call)
        sent.insert(calls.calls[call].workload);
      add(sent);
    }
    for (CallId at = 0; at < calls.call_count(); ++at) {
      const Call& call = calls.calls[at];
      add({call.workload});
      if (call.caller != kNone) add({call.workload, calls.calls[call.caller].workload});
      if (!world.state.catalog->workloads[call.workload].movable) continue;
      std::set<WorkloadId> sent;
      for (CallId other = 0; other < calls.call_count(); ++other) {
        if (LeadsTo(calls, at, other)) sent.insert(calls.calls[other].workload);
      }
      add(sent);
    }
  }
  return groups;
}

void ExpectRanked(World* world, const std::set<Assignment>& assignments, double bar_ms,
                  const std::vector<double>& steps) {
  std::map<Assignment, double> expected;
  for (const Assignment& assignment : assignments) {
    const double cost_ms = CostOf(world, assignment, steps);
    if (cost_ms < bar_ms) expected[assignment] = cost_ms;
  }
  LayerTargets targets;
  targets.List(*world->state.catalog, *world->state.calls, steps, bar_ms, &world->cursor);
  std::map<Assignment, double> listed;
  for (int rank = 0; rank < targets.count(); ++rank) {
    Assignment assignment;
    for (WorkloadId w : world->Movers()) {
      if (targets.layers(rank)[w] != kNone) assignment[w] = targets.layers(rank)[w];
    }
    listed[assignment] = targets.cost_ms(rank);
    if (rank > 0) {
      EXPECT_GE(targets.cost_ms(rank), targets.cost_ms(rank - 1));
    }
  }
  EXPECT_EQ(listed, expected);
  EXPECT_EQ(world->cursor.by_kind().LatencyMs(), world->by_kind.LatencyMs());
}

TEST(LayerTargets, RankAllAssignmentsOfASmallWorldByWhatTheyCost) {
  for (int seed = 0; seed < 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 18);
    World world(TightWorld({.movable = 3}, &rng));
    const double bar_ms =
        rng.Below(2) == 0 ? kNever : world.by_kind.LatencyMs() * rng.Uniform(0.8, 1.2);
    ExpectRanked(&world, Everything(world), bar_ms, GrowingSteps(rng.Between(1, 9)));
  }
}

TEST(LayerTargets, RankUpToAThousandAssignmentsAndBeyondThatGroups) {
  for (const int movable : {5, 6}) {  // 4^5 = 1024.
    int full = 0;
    for (int seed = 0; full < 3 && !HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed, 19);
      World world(TightWorld({.layers = 3, .movable = movable, .replicas_max = 1}, &rng));
      if (static_cast<int>(world.Movers().size()) < movable) continue;
      ++full;
      ExpectRanked(&world, movable == 5 ? Everything(world) : Groups(world), kNever,
                   GrowingSteps(9));
    }
  }
}

}  // namespace
}  // namespace rudderfish
