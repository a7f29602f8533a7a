// SPDX-License-Identifier: Apache-2.0
#include "policy/lookahead_placement.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <numeric>

#include "base/rng.h"
#include "policy/placement_rules.h"
#include "tests/support/count_allocations.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

// A few unlike nodes, partly in use, and workloads of every size.
struct QueueWorld {
  explicit QueueWorld(uint64_t seed) {
    Rng rng(seed);
    testing::WorldBuilder world;
    const LayerId site = world.Layer("site"), far = world.Layer("far");
    const LayerId users = world.Layer("users");
    world.LatencyBothWays(users, far, 30);
    const KindId kinds[] = {world.Kind("a", site), world.Kind("b", far)};
    for (int w = 0; w < 4; ++w)
      world.Workload(fmt::format("w{}", w), 250 << w, 256 << rng.Below(4));
    const int nodes = 3 + static_cast<int>(rng.Below(3));
    for (int n = 0; n < nodes; ++n) {
      const NodeId node = world.Node(kinds[rng.Below(2)], 1000 << rng.Below(3), 4096);
      for (int pod = static_cast<int>(rng.Below(3)); pod > 0; --pod) {
        const auto workload = static_cast<WorkloadId>(rng.Below(2));
        if (world.free(node).Fits(world.catalog().workloads[workload].requests))
          world.Pod(workload, node);
      }
    }
    state = world.Build();
    laws.costs = {{50, 100, 1, 5}, {40, 200, 2, 10}};
    laws.users = users;
    for (WorkloadId w = 0; w < 4; ++w) laws.shapes.Add(state.catalog->workloads[w], 1);
    totals.Reset(state, laws);
    for (int i = 0; i < 4; ++i) queue.push_back(static_cast<WorkloadId>(rng.Below(4)));
  }

  // Of its first `behind` pods after the first of the queue.
  PlacementQuestion Question(size_t behind) const {
    return {state, totals, queue[0], std::span<const WorkloadId>(queue).subspan(1, behind)};
  }

  State state;
  PlacementLaws laws;
  ClusterTotals totals;
  std::vector<WorkloadId> queue;
};

Objective ObjectiveOf(uint64_t seed) {
  Objective objective;
  Rng rng(seed, 1);
  for (double& weight : objective.weight) weight = rng.Below(2) == 0 ? 0 : rng.Uniform();
  objective.weight[0] += 0.1;
  return objective;
}

// What the queue from pod `at` on costs at best, all ways tried; where a pod fits somewhere it is
// placed.
double LeastCost(const Objective& objective, const std::vector<WorkloadId>& queue, size_t at,
                 size_t end, int waiting, State* state, ClusterTotals* totals) {
  const ClusterTerms now = totals->Now();
  if (at == end) return objective.Cost(now) + static_cast<double>(waiting) / now.ready_nodes;
  double least = std::numeric_limits<double>::infinity();
  for (NodeId node = 0; node < state->nodes.size(); ++node) {
    if (!MayRunOn({*state, *totals, queue[at]}, node)) continue;
    const PodId pod = AddPod(queue[at], state);
    BindPod(pod, node, state);
    totals->Placed(queue[at], node);
    least = std::min(least, LeastCost(objective, queue, at + 1, end, waiting, state, totals));
    RemovePod(pod, state);
    totals->Removed(queue[at], node);
  }
  if (!std::isinf(least)) return least;
  return LeastCost(objective, queue, at + 1, end, waiting + 1, state, totals);
}

double LeastCostFrom(const QueueWorld& world, const Objective& objective, NodeId first,
                     size_t pods) {
  State state = world.state;
  ClusterTotals totals;
  totals.CopyFor(state, world.totals);
  if (first == kNone) return LeastCost(objective, world.queue, 0, pods, 0, &state, &totals);
  const PodId pod = AddPod(world.queue[0], &state);
  BindPod(pod, first, &state);
  totals.Placed(world.queue[0], first);
  return LeastCost(objective, world.queue, 1, pods, 0, &state, &totals);
}

TEST(QueueLookahead, WithoutAQueueItIsGreedy) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const QueueWorld world(seed);
    const Objective objective = ObjectiveOf(seed);
    QueueLookahead search(PlacementTask(objective), {});
    EXPECT_EQ(search(world.Question(0)), GreedyNode(world.Question(0), objective)) << seed;
  }
}

// With a beam that holds all plans.
TEST(QueueLookahead, BeginsAsTheBestOfAllWaysToPlaceTheQueue) {
  int unlike_greedy = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const QueueWorld world(seed);
    const Objective objective = ObjectiveOf(seed);
    QueueLookahead search(PlacementTask(objective),
                          {.depth = 4, .width = 4096, .evaluations = 1'000'000});
    const NodeId node = search(world.Question(3));
    const NodeId greedy = GreedyNode(world.Question(3), objective);
    ASSERT_EQ(node == kNone, greedy == kNone);
    if (node == kNone) continue;
    const double best = LeastCostFrom(world, objective, kNone, 4);
    EXPECT_NEAR(LeastCostFrom(world, objective, node, 4), best, 1e-12) << seed;
    unlike_greedy += LeastCostFrom(world, objective, greedy, 4) > best + 1e-9 ? 1 : 0;
  }
  EXPECT_GT(unlike_greedy, 10) << "else these worlds show nothing";
}

// The roomy node is the better one for a small pod, and the only one for the large pod behind it.
TEST(QueueLookahead, LeavesTheRoomThatWhoComesNextNeeds) {
  testing::WorldBuilder builder;
  const KindId kind = builder.Kind("any", builder.Layer("site"));
  const WorkloadId small = builder.Workload("small", 500, 128);
  const WorkloadId large = builder.Workload("large", 2000, 128);
  const WorkloadId filler = builder.Workload("filler", 1000, 128);
  const NodeId roomy = builder.Node(kind, 2000, 4096), used = builder.Node(kind, 2000, 4096);
  builder.Pod(filler, used);
  const State state = builder.Build();
  const PlacementLaws laws;
  ClusterTotals totals;
  totals.Reset(state, laws);
  QueueLookahead search(PlacementTask(Objective::Of(ObjectiveTerm::kBalance)), {});
  EXPECT_EQ(search({state, totals, small}), roomy);
  const WorkloadId next[] = {large};
  EXPECT_EQ(search({state, totals, small, next}), used);
  const WorkloadId nothing_large[] = {small};
  EXPECT_EQ(search({state, totals, small, nothing_large}), roomy);
}

TEST(QueueLookahead, StaysWithinItsBudgetByBeingNarrowerThenShallower) {
  int cut = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const QueueWorld world(seed);
    const Objective objective = ObjectiveOf(seed);
    for (const int64_t budget : {1, 8, 20, 60}) {
      QueueLookahead search(PlacementTask(objective), {.evaluations = budget});
      const NodeId node = search(world.Question(3));
      // What was begun is finished: at most once more all nodes.
      EXPECT_LT(search.evaluations(), budget + world.state.nodes.size()) << seed;
      if (budget == 1) {
        EXPECT_EQ(node, GreedyNode(world.Question(3), objective)) << seed;
        continue;
      }
      QueueLookahead unbounded(PlacementTask(objective), {});
      unbounded(world.Question(3));
      cut += search.evaluations() < unbounded.evaluations() ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 0);
}

TEST(QueueLookahead, IsTheSameEachTimeAllocatesNothingAndLeavesAllAsItWas) {
  std::vector<std::unique_ptr<QueueWorld>> worlds;
  for (uint64_t seed = 0; seed < 20; ++seed) worlds.push_back(std::make_unique<QueueWorld>(seed));
  const Objective objective = ObjectiveOf(3);
  QueueLookahead used(PlacementTask(objective), {});
  std::vector<NodeId> first;
  for (const auto& world : worlds) {
    const State before = world->state;
    first.push_back(used(world->Question(3)));
    EXPECT_EQ(world->state.nodes.free, before.nodes.free);
    EXPECT_EQ(world->state.pods.node, before.pods.node);
    EXPECT_TRUE(first.back() == kNone || MayRunOn(world->Question(3), first.back()));
  }
  const long allocations = allocation_count;
  for (size_t i = 0; i < worlds.size(); ++i) EXPECT_EQ(used(worlds[i]->Question(3)), first[i]);
  EXPECT_EQ(allocation_count, allocations);
  for (size_t i = worlds.size(); i-- > 0;) {
    QueueLookahead fresh(PlacementTask(objective), {});
    EXPECT_EQ(fresh(worlds[i]->Question(3)), first[i]);
  }
}

}  // namespace
}  // namespace rudderfish
