// SPDX-License-Identifier: Apache-2.0
#include "task/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "model/scheduling_rules.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::kMib;
using testing::WorldBuilder;

constexpr Objective kMixedObjective{.weight = {1, 0.5, 0.2, 1, 0.7, 0.3}};

// A cluster half full, with devices on the nodes of the second kind. `order` says at which place
// each node stands; the same seed gives the same nodes.
struct RandomCluster {
  RandomCluster(uint64_t seed, int nodes, const std::vector<NodeId>& order) {
    Rng rng(seed);
    WorldBuilder world;
    const LayerId near = world.Layer("near"), users = world.Layer("users");
    world.LatencyBothWays(users, near, 7);
    const KindId kinds[] = {world.Kind("plain", near), world.Kind("gpu", near)};
    for (int w = 0; w < 4; ++w) world.Workload("w", 250 + 500 * w, 128 + 700 * (3 - w));
    std::vector<NodeId> kind_of(nodes), pods_of(nodes);
    for (int i = 0; i < nodes; ++i) {
      kind_of[i] = static_cast<int>(rng.Below(2));
      pods_of[i] = static_cast<int>(rng.Below(4));
    }
    std::vector<int> at(nodes);
    for (int i = 0; i < nodes; ++i) at[order[i]] = i;
    for (int i = 0; i < nodes; ++i) {
      const KindId kind = kind_of[at[i]];
      const NodeId node = world.Node(kinds[kind], 2000 + 2000 * kind, 4096);
      for (int p = 0; p < pods_of[at[i]]; ++p) {
        const WorkloadId w = (at[i] + p) % 4;
        if (world.free(node).Fits(world.catalog().workloads[w].requests)) world.Pod(w, node);
      }
    }
    state = world.Build();
    auto catalog = std::make_shared<Catalog>(*state.catalog);
    catalog->workloads[3].devices = {.count = 1, .millis = 400};
    catalog->workloads[2].node_kinds = 2;  // Of the second kind alone.
    state.catalog = catalog;
    for (int i = 0; i < nodes; ++i)
      state.nodes.devices.push_back(Devices::Of(state.nodes.kind[i] == 1 ? 2 : 0));
    state.pods.devices.assign(state.pods.size(), 0);
    laws.costs = {{50, 100, 1, 5}, {80, 300, 3, 8}};
    for (WorkloadId w = 0; w < 4; ++w) laws.shapes.Add(catalog->workloads[w], 1 + w);
    laws.users = users;
    totals.Reset(state, laws);
  }

  PlacementQuestion Question(WorkloadId workload) const { return {state, totals, workload}; }

  State state;
  PlacementLaws laws;
  ClusterTotals totals;
};

std::vector<NodeId> InPlace(int nodes) {
  std::vector<NodeId> order(nodes);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(PlacementTask, EqualNodesAreOneCandidateAndEveryAllowedNodeHasOne) {
  const RandomCluster cluster(3, 40, InPlace(40));
  const PlacementTask task(kMixedObjective);
  PlacementSpace space;
  for (WorkloadId workload = 0; workload < 4; ++workload) {
    const PlacementQuestion question = cluster.Question(workload);
    task.Space(question, {}, &space);
    int nodes = 0;
    for (const PlacementCandidate& one : space.candidates) nodes += one.nodes;
    EXPECT_EQ(nodes, space.cluster.allowed_nodes);
    EXPECT_LT(space.count(), nodes);  // Some are equal.
    for (NodeId node = 0; node < 40; ++node) {
      ASSERT_EQ(space.candidate_of[node] != kNone, MayRunOn(question, node));
      if (space.candidate_of[node] == kNone) continue;
      const PlacementCandidate& one = space.candidates[space.candidate_of[node]];
      EXPECT_LE(one.node, node);
      // What it says holds for each of the nodes that it stands for.
      EXPECT_DOUBLE_EQ(one.cost, kMixedObjective.Cost(cluster.totals.Try(workload, node)));
    }
  }
}

// As kube-scheduler sees the same nodes and pods.
TEST(PlacementTask, TheMaskIsThatOfSchedulingRules) {
  int allowed = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const RandomCluster cluster(seed, 12, InPlace(12));
    const State& state = cluster.state;
    std::vector<SchedulingNode> nodes;
    for (NodeId node = 0; node < state.nodes.size(); ++node) {
      nodes.push_back({.name = NodeName(state, node),
                       .labels = {{"kind", state.kind_of(node).name}},
                       .allocatable = state.nodes.allocatable[node],
                       .pods_max = 110});
    }
    SchedulingRules rules;
    rules.Reset(std::move(nodes), {});
    std::vector<PodClassId> classes;
    for (const Workload& workload : state.catalog->workloads) {
      auto pod = std::make_shared<PodClass>();
      pod->object_namespace = "default";
      pod->labels = {{"app", std::to_string(classes.size())}};
      pod->amounts.requests = pod->amounts.held = workload.requests;
      if (workload.node_kinds != kAnyKind) pod->node_selector = {{"kind", "gpu"}};
      classes.push_back(rules.Register(pod));
    }
    for (PodId pod = 0; pod < state.pods.size(); ++pod)
      rules.Assume(classes[state.pods.workload[pod]], state.pods.node[pod]);
    const PlacementTask task(kMixedObjective);
    PlacementSpace space;
    Feasibility feasibility;
    for (WorkloadId workload = 0; workload < 3; ++workload) {  // Without shares of devices.
      task.Space(cluster.Question(workload), {}, &space);
      rules.Filter(classes[workload], &feasibility);
      for (NodeId node = 0; node < state.nodes.size(); ++node) {
        EXPECT_EQ(space.candidate_of[node] != kNone, feasibility.IsFeasible(node))
            << "seed " << seed << " workload " << workload << " node " << node;
        (space.candidate_of[node] != kNone ? allowed : refused) += 1;
      }
    }
  }
  EXPECT_GT(allowed, 100);
  EXPECT_GT(refused, 100);
}

TEST(PlacementTask, AMaskFromOutsideTakesNodesAway) {
  const RandomCluster cluster(5, 20, InPlace(20));
  const PlacementTask task(kMixedObjective);
  PlacementSpace space;
  std::vector<uint8_t> allowed(20, 0);
  allowed[4] = allowed[11] = 1;
  task.Space(cluster.Question(0), allowed, &space);
  for (NodeId node = 0; node < 20; ++node) {
    if (node == 4 || node == 11) continue;
    EXPECT_EQ(space.candidate_of[node], kNone);
  }
  EXPECT_LE(space.count(), 2);
}

TEST(PlacementTask, RelabellingNodesRelabelsTheRows) {
  constexpr int kNodes = 30;
  const PlacementTask task(kMixedObjective);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<NodeId> order = InPlace(kNodes);
    Rng rng(seed + 100);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[rng.Below(static_cast<uint32_t>(i))]);
    const RandomCluster before(seed, kNodes, InPlace(kNodes)), after(seed, kNodes, order);
    for (WorkloadId workload = 0; workload < 4; ++workload) {
      PlacementSpace space, moved;
      GraphBatch batch{.widths = PlacementTask::kWidths}, moved_batch = batch;
      task.Space(before.Question(workload), {}, &space);
      task.Space(after.Question(workload), {}, &moved);
      task.Encode(before.Question(workload), space, &batch);
      task.Encode(after.Question(workload), moved, &moved_batch);
      ASSERT_EQ(space.count(), moved.count());
      constexpr int kWidth = PlacementTask::kWidths.candidate;
      for (NodeId node = 0; node < kNodes; ++node) {
        const int a = space.candidate_of[node], b = moved.candidate_of[order[node]];
        ASSERT_EQ(a == kNone, b == kNone);
        if (a == kNone) continue;
        for (int f = 0; f < kWidth; ++f) {
          ASSERT_NEAR(batch.candidates[a * kWidth + f], moved_batch.candidates[b * kWidth + f],
                      1e-5)
              << PlacementTask::Features().candidate[f].name;
        }
      }
      for (int f = 0; f < PlacementTask::kWidths.context; ++f)
        EXPECT_NEAR(batch.context[f], moved_batch.context[f], 1e-5);
    }
  }
}

TEST(PlacementTask, FeaturesAreFiniteAndDiffer) {
  const PlacementTask task(kMixedObjective);
  GraphBatch batch{.widths = PlacementTask::kWidths};
  PlacementSpace space;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const RandomCluster cluster(seed, 25, InPlace(25));
    for (WorkloadId workload = 0; workload < 4; ++workload) {
      task.Space(cluster.Question(workload), {}, &space);
      task.Encode(cluster.Question(workload), space, &batch);
    }
  }
  const auto check = [](const FloatRows& rows, int width,
                        const std::vector<FeatureDescription>& features) {
    ASSERT_LE(features.size(), static_cast<size_t>(width));
    for (int f = 0; f < width; ++f) {
      std::set<float> values;
      for (size_t at = f; at < rows.size(); at += width) {
        ASSERT_TRUE(std::isfinite(rows[at]));
        ASSERT_LE(std::abs(rows[at]), 8.0F);
        values.insert(rows[at]);
      }
      if (f >= static_cast<int>(features.size())) {
        EXPECT_EQ(values, std::set<float>{0});
      }
    }
  };
  check(batch.candidates, PlacementTask::kWidths.candidate, PlacementTask::Features().candidate);
  check(batch.context, PlacementTask::kWidths.context, PlacementTask::Features().context);
}

TEST(PlacementTask, ScoresAreZeroForTheBestAndOneAwayInTheMean) {
  const RandomCluster cluster(9, 30, InPlace(30));
  const PlacementTask task(Objective::Of(ObjectiveTerm::kBalance));
  PlacementSpace space;
  task.Space(cluster.Question(1), {}, &space);
  ASSERT_GT(space.count(), 2);
  for (int s = 0; s < kPlacementScores; ++s) {
    double sum = 0;
    float most = -1e9F;
    for (const PlacementCandidate& one : space.candidates) {
      sum += one.nodes * static_cast<double>(one.score[s]);
      most = std::max(most, one.score[s]);
    }
    EXPECT_EQ(most, 0) << kPlacementScoreNames[s];
    const double mean = sum / space.cluster.allowed_nodes;
    EXPECT_TRUE(std::abs(mean + 1) < 1e-5 || mean == 0) << kPlacementScoreNames[s] << " " << mean;
  }
  PlacementMix greedy{};
  greedy[static_cast<int>(PlacementScore::kGreedy)] = 1;
  const PlacementCandidate& best = space.candidates[BestCandidate(space.candidates, greedy)];
  for (const PlacementCandidate& one : space.candidates) EXPECT_LE(best.cost, one.cost + 1e-12);
  EXPECT_EQ(BestCandidate({}, greedy), -1);
}

// Nodes of one size; a web pod is within 20 ms of the users at best, a device pod wants a half.
struct SmallCluster {
  explicit SmallCluster(int count) {
    WorldBuilder world;
    const LayerId here = world.Layer("here"), users = world.Layer("users");
    world.LatencyBothWays(users, here, 10);
    const KindId kind = world.Kind("kind", here);
    const KindId other = world.Kind("other", here);
    world.Workload("web", 500, 512);
    world.Workload("device", 500, 512);
    for (int i = 0; i < count; ++i) world.Node(i + 1 < count ? kind : other, 2000, 4096);
    state = world.Build();
    auto catalog = std::make_shared<Catalog>(*state.catalog);
    catalog->workloads[1].devices = {.count = 1, .millis = 500};
    state.catalog = catalog;
    laws.users = users;
    totals.Reset(state, laws);
  }

  void Limit(double hard_ms) {
    auto catalog = std::make_shared<Catalog>(*state.catalog);
    catalog->workloads[0].latency_limits.hard_ms = hard_ms;
    state.catalog = catalog;
  }

  int Candidates(WorkloadId workload) {
    totals.Reset(state, laws);
    const PlacementQuestion question{state, totals, workload};
    PlacementTask(kMixedObjective).Space(question, {}, &space);
    return space.count();
  }

  State state;
  PlacementLaws laws;
  ClusterTotals totals;
  PlacementSpace space;
};

TEST(PlacementTask, NodesThatDifferInAnythingAreCandidatesOfTheirOwn) {
  SmallCluster cluster(6);  // Five alike, one of another kind.
  EXPECT_EQ(cluster.Candidates(0), 2);
  EXPECT_EQ(cluster.space.candidates[0].nodes, 5);
  EXPECT_EQ(cluster.space.candidates[1].node, 5);
  cluster.state.nodes.allocatable[1].cpu_millis += 1;
  cluster.state.nodes.free[1].cpu_millis += 1;
  EXPECT_EQ(cluster.Candidates(0), 3);
  cluster.state.nodes.free[2].memory_bytes -= 1;
  EXPECT_EQ(cluster.Candidates(0), 4);
  cluster.state.nodes.free[2].memory_bytes += 1;
  BindPod(AddPod(0, &cluster.state), 3, &cluster.state);
  EXPECT_EQ(cluster.Candidates(0), 4);
  cluster.state.nodes.free[3] = cluster.state.nodes.free[0];  // Of which nothing but the pod tells.
  EXPECT_EQ(cluster.Candidates(0), 4);
  EXPECT_EQ(cluster.space.candidate_of[0], cluster.space.candidate_of[4]);
  EXPECT_NE(cluster.space.candidate_of[0], cluster.space.candidate_of[3]);
}

// Of many, so that unlike ones meet in the table too: those alike in what they differ in are one.
TEST(PlacementTask, ManyNodesThatDifferInOneThingAreAsManyCandidates) {
  enum Thing { kKind, kSize, kFreeCpu, kFreeMemory, kPods, kDeviceCount, kThings };
  for (int thing = 0; thing < kThings; ++thing) {
    SCOPED_TRACE(thing);
    Rng rng(thing);
    WorldBuilder world;
    const LayerId here = world.Layer("here");
    std::vector<KindId> kinds;
    for (int k = 0; k < 30; ++k) kinds.push_back(world.Kind("kind", here));
    world.Workload("web", 100, 100);
    world.Workload("nothing", 0, 0);
    std::vector<int> value_of;
    for (int n = 0; n < 300; ++n) {
      const int value = static_cast<int>(rng.Below(thing == kDeviceCount ? 8 : 30));
      value_of.push_back(value);
      const NodeId node =
          world.Node(kinds[thing == kKind ? value : 0], 9000 + (thing == kSize ? value : 0), 9000);
      for (int p = 0; thing == kPods && p < value; ++p) world.Pod(1, node);
    }
    State state = world.Build();
    for (NodeId node = 0; node < 300; ++node) {
      state.nodes.free[node].cpu_millis = 8000 - (thing == kFreeCpu ? value_of[node] : 0);
      state.nodes.free[node].memory_bytes =
          8000 * kMib - (thing == kFreeMemory ? value_of[node] : 0);
      state.nodes.devices.push_back(Devices::Of(8));
      if (thing == kDeviceCount) {  // As much in all: one device is used, and there are more.
        Devices& devices = state.nodes.devices.back();
        devices.count = static_cast<int8_t>(1 + value_of[node]);
        devices.free_millis = {500};
      }
    }
    const PlacementLaws laws;
    ClusterTotals totals;
    totals.Reset(state, laws);
    PlacementSpace space;
    PlacementTask(kMixedObjective).Space({state, totals, 0}, {}, &space);
    EXPECT_EQ(space.count(), thing == kDeviceCount ? 8 : 30);
    for (NodeId node = 0; node < 300; ++node)
      ASSERT_EQ(value_of[space.candidates[space.candidate_of[node]].node], value_of[node]);
  }
}

TEST(PlacementTask, EqualDevicesInAnotherOrderAreEqual) {
  SmallCluster cluster(6);
  for (int i = 0; i < 6; ++i) {
    Devices devices = Devices::Of(i == 3 ? 7 : 8);
    devices.free_millis = {100, 900, 300, 800, 500, 600, 700, 0};
    std::rotate(devices.free_millis.begin(), devices.free_millis.begin() + i % 2 * 3,
                devices.free_millis.begin() + 7);
    if (i == 2) std::reverse(devices.free_millis.begin(), devices.free_millis.end());
    if (i == 4) devices.free_millis = {100, 900, 300, 800, 500, 600, 650, 50};
    cluster.state.nodes.devices.push_back(devices);
  }
  // 0, 1 and 2; 3 has one device less; 4 has as much in all; 5 is of another kind.
  EXPECT_EQ(cluster.Candidates(1), 4);
  EXPECT_EQ(cluster.space.candidates[0].nodes, 3);
}

TEST(PlacementTask, TheHardLimitItselfIsAllowed) {
  SmallCluster cluster(3);
  cluster.Limit(20);
  EXPECT_EQ(cluster.Candidates(0), 2);
  EXPECT_EQ(cluster.space.cluster.allowed_nodes, 3);
  cluster.Limit(19.9);
  EXPECT_EQ(cluster.Candidates(0), 0);
  EXPECT_EQ(cluster.space.cluster.mean_distance, 0);
}

TEST(PlacementTask, WithoutNodesThereIsNoCandidate) {
  SmallCluster cluster(0);
  EXPECT_EQ(cluster.Candidates(0), 0);
  EXPECT_EQ(cluster.space.cluster.mean_cpu_millis, 0);
}

TEST(PlacementTask, MeansAreOverNodesThatAreReady) {
  SmallCluster cluster(1);
  EXPECT_EQ(cluster.Candidates(0), 1);
  EXPECT_EQ(cluster.space.cluster.mean_cpu_millis, 2000);
  EXPECT_EQ(cluster.space.cluster.mean_memory_bytes, 4096.0 * kMib);
  EXPECT_EQ(cluster.space.cluster.mean_distance, 0);
  EXPECT_EQ(cluster.space.candidates[0].score, (std::array<float, kPlacementScores>{}));
  cluster.state.nodes.lost = {1};
  EXPECT_EQ(cluster.Candidates(0), 0);
  EXPECT_EQ(cluster.space.cluster.mean_cpu_millis, 0);
  EXPECT_EQ(cluster.space.cluster.mean_memory_bytes, 0);
  EXPECT_EQ(cluster.space.cost_now, 0);
}

TEST(PlacementTask, TheBestOfAMixIsTheFirstOfEquals) {
  std::vector<PlacementCandidate> candidates(4);
  candidates[0].score = {-2, 0, -1};
  candidates[1].score = {-1, -1, 0};
  candidates[2].score = {-1, -1, 0};
  candidates[3].score = {0, -3, -1};
  EXPECT_EQ(MixOf(candidates[3], {1, 0.5, 2}), 0 - 1.5 - 2);
  EXPECT_EQ(MixOf(candidates[0], {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), -3);
  EXPECT_EQ(BestCandidate(candidates, {1, 1, 1}), 1);
  EXPECT_EQ(BestCandidate(candidates, {1, 0, 0}), 3);
  EXPECT_EQ(BestCandidate(candidates, {0, 1, 0}), 0);
  EXPECT_EQ(BestCandidate(candidates, {}), 0);
  EXPECT_EQ(BestCandidate(std::span(candidates).subspan(1, 1), {1, 1, 1}), 0);
  candidates[0].score[11] = -7;
  EXPECT_EQ(MixOf(candidates[0], {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), -7);
}

TEST(PlacementTask, ObjectivesAreReadAsTheyAreWritten) {
  for (const Objective& objective :
       {Objective::Of(ObjectiveTerm::kBalance), Objective::Of(ObjectiveTerm::kLatency),
        Objective{.weight = {0, 0, 1, 0, 0, 2}}, Objective{.weight = {1, 2, 3, 4, 5, 6, 7}},
        Objective{.weight = {2}}, Objective{.weight = {0.33333333, 1.0 / 3, 1e-7, 1e6}}}) {
    const auto read = ParseObjectiveText(ObjectiveText(objective), "text");
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, objective);
  }
  EXPECT_EQ(ObjectiveText({.weight = {0, 0, 1, 0, 0, 2}}), "utilisation:1,latency:2");
  EXPECT_FALSE(ParseObjectiveText("balance:1,coast:2", "text").has_value());
}

TEST(PlacementTask, ObjectivesAreAlikeInTheSameProportion) {
  const Objective balance = Objective::Of(ObjectiveTerm::kBalance);
  EXPECT_TRUE(AreAlike(balance, {.weight = {2}}));
  EXPECT_FALSE(AreAlike(balance, Objective::Of(ObjectiveTerm::kEnergy)));
  EXPECT_FALSE(AreAlike(balance, {.weight = {1, 0.001}}));
  EXPECT_TRUE(AreAlike({.weight = {1, 3}}, {.weight = {1e-3, 3e-3}}));
  EXPECT_TRUE(AreAlike({.weight = {1.0 / 3, 2.0 / 3}}, {.weight = {0.333333, 0.666667}}));
  EXPECT_FALSE(AreAlike({.weight = {1.0 / 3, 2.0 / 3}}, {.weight = {0.3333, 0.6667}}));
}

TEST(PlacementTask, ObjectivesAreNamedByTermsAndWeights) {
  EXPECT_EQ(ObjectiveText(Objective::Of(ObjectiveTerm::kEnergy)), "energy");
  EXPECT_EQ(ObjectiveText({.weight = {1, 0.5, 0, 0, 0, 0}}), "balance:1,energy:0.5");
}

}  // namespace
}  // namespace rudderfish
