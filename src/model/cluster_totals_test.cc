// SPDX-License-Identifier: Apache-2.0
#include "model/cluster_totals.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::WorldBuilder;

// Two kinds of node in two zones, users in a third; workload 0 wants CPU, 1 a share of a device.
// Webs call learners, and those webs.
State SmallCluster(int nodes, bool with_devices) {
  WorldBuilder world;
  const LayerId near = world.Layer("near"), far = world.Layer("far"), users = world.Layer("users");
  world.LatencyBothWays(users, near, 5);
  world.LatencyBothWays(users, far, 20);
  const KindId kinds[] = {world.Kind("near", near), world.Kind("far", far)};
  world.Workload("web", 250, 64);
  world.Workload("learner", 500, 512);
  for (int i = 0; i < nodes; ++i) world.Node(kinds[i % 2], 2000 + 1000 * (i % 3), 4096);
  world.LatencyBothWays(near, far, 12);
  world.Endpoint({.workload = 0, .groups = {{{1, 1}}}});
  State state = world.Build();
  auto catalog = std::make_shared<Catalog>(*state.catalog);
  catalog->workloads[0].latency_limits = {.soft_ms = 20, .hard_ms = 30};
  if (with_devices) {
    catalog->workloads[1].devices = {.count = 1, .millis = 300};
    for (int i = 0; i < nodes; ++i) state.nodes.devices.push_back(Devices::Of(i % 3));
  }
  state.catalog = catalog;
  return state;
}

PlacementLaws Laws(const State& state) {
  PlacementLaws laws{.costs = {{100, 200, 1.5, 10}, {50, 80, 0.25, 0}}, .users = 2};
  laws.shapes.Add(state.catalog->workloads[0], 3);
  laws.shapes.Add(state.catalog->workloads[1], 1);
  return laws;
}

void ExpectSame(const ClusterTerms& a, const ClusterTerms& b) {
  EXPECT_EQ(a.utilisation_sd, b.utilisation_sd);
  EXPECT_EQ(a.utilisation, b.utilisation);
  EXPECT_EQ(a.active_utilisation, b.active_utilisation);
  EXPECT_EQ(a.mean_node_utilisation, b.mean_node_utilisation);
  EXPECT_EQ(a.ready_nodes, b.ready_nodes);
  EXPECT_EQ(a.active_nodes, b.active_nodes);
  EXPECT_EQ(a.bound_pods, b.bound_pods);
  EXPECT_EQ(a.watts, b.watts);
  EXPECT_EQ(a.watts_share, b.watts_share);
  EXPECT_EQ(a.price_per_hour, b.price_per_hour);
  EXPECT_EQ(a.price_share, b.price_share);
  EXPECT_EQ(a.fragmentation, b.fragmentation);
  EXPECT_EQ(a.latency_ms, b.latency_ms);
  EXPECT_EQ(a.latency_penalty, b.latency_penalty);
  EXPECT_EQ(a.call_distance, b.call_distance);
  EXPECT_EQ(a.call_ms, b.call_ms);
  EXPECT_EQ(a.calls_counted, b.calls_counted);
}

TEST(ClusterTotals, AreWhatTheStateAmountsTo) {
  State state = SmallCluster(2, false);  // 2 and 3 cores, 4 GiB each.
  PlacementLaws laws = Laws(state);
  for (int i = 0; i < 4; ++i) BindPod(AddPod(0, &state), 0, &state);
  ClusterTotals totals;
  totals.Reset(state, laws);
  const ClusterTerms terms = totals.Now();
  EXPECT_NEAR(terms.utilisation_sd[0], 0.25, 1e-6);     // 50 % and 0 %.
  EXPECT_NEAR(terms.utilisation_sd[1], 1 / 32., 1e-6);  // 256 of 4096 MiB and none.
  EXPECT_NEAR(terms.mean_node_utilisation[0], 0.25, 1e-6);
  EXPECT_DOUBLE_EQ(terms.utilisation[0], 0.2);
  EXPECT_DOUBLE_EQ(terms.active_utilisation[0], 0.5);
  EXPECT_EQ(terms.active_nodes, 1);
  EXPECT_EQ(terms.bound_pods, 4);
  EXPECT_DOUBLE_EQ(terms.watts, 150);  // Half way from 100 to 200; the other sleeps at 0.
  EXPECT_DOUBLE_EQ(terms.watts_share, 150 / 280.);
  EXPECT_DOUBLE_EQ(terms.price_per_hour, 1.5);
  EXPECT_DOUBLE_EQ(terms.price_share, 1.5 / 1.75);
  EXPECT_DOUBLE_EQ(terms.fragmentation, 0);
  EXPECT_DOUBLE_EQ(terms.latency_ms, 10);  // Round trip.
  EXPECT_DOUBLE_EQ(terms.latency_penalty, 0);
}

// Of the most that the curve says, which here is more than at full use.
TEST(ClusterTotals, NodesDrawByTheirCurve) {
  State state = SmallCluster(2, false);  // 2 and 3 cores.
  PlacementLaws laws = Laws(state);
  laws.costs[0].curve.Add({0.25, 180});
  laws.costs[0].curve.Add({0.75, 220});
  ClusterTotals totals;
  totals.Reset(state, laws);
  EXPECT_DOUBLE_EQ(totals.Now().watts, 10);
  EXPECT_DOUBLE_EQ(totals.Try(0, 0).watts, 140);  // An eighth used: half way from 100 to 180.
  for (int i = 0; i < 4; ++i) BindPod(AddPod(0, &state), 0, &state);
  totals.Reset(state, laws);
  EXPECT_DOUBLE_EQ(totals.Now().watts, 200);  // Half used: half way from 180 to 220.
  EXPECT_DOUBLE_EQ(totals.Now().watts_share, 200 / (220. + 80));
}

TEST(ClusterTotals, LatencyCostsHalfBetweenTheLimitsAndAllBeyond) {
  const LatencyLimits limits{.soft_ms = 20, .hard_ms = 30};
  EXPECT_EQ(PlacementLaws::Penalty(limits, 20, 100), 0);
  EXPECT_EQ(PlacementLaws::Penalty(limits, 20.1, 100), 0.5);
  EXPECT_EQ(PlacementLaws::Penalty(limits, 30, 100), 0.5);
  EXPECT_EQ(PlacementLaws::Penalty(limits, 30.1, 100), 1);
  EXPECT_EQ(PlacementLaws::Penalty({.soft_ms = 20}, 1000, 1000), 0.5);
  EXPECT_EQ(PlacementLaws::Penalty({}, 0, 0), 0);
  EXPECT_EQ(PlacementLaws::Penalty({}, 25, 100), 0.25);  // None: what it is of the worst.
}

TEST(ClusterTotals, TryIsWhatPlacingGives) {
  State state = SmallCluster(3, true);
  const PlacementLaws laws = Laws(state);
  ClusterTotals totals;
  totals.Reset(state, laws);
  for (const auto& [workload, node] : {std::pair(0, 0), {1, 1}, {1, 2}, {1, 2}, {0, 2}}) {
    const ClusterTerms tried = totals.Try(workload, node);
    BindPod(AddPod(workload, &state), node, &state);
    totals.Placed(workload, node);
    ExpectSame(totals.Now(), tried);
  }
}

RC_GTEST_PROP(ClusterTotals, ChangesAddUpToWhatResetComputes, (uint64_t seed, bool with_devices)) {
  Rng rng(seed);
  State state = SmallCluster(rng.Between(1, 9), with_devices);
  state.nodes.lost.assign(state.nodes.size(), 0);
  PlacementLaws laws = Laws(state);
  if (rng.Uniform() < 0.5) laws.costs[0].curve.Add({0.4, rng.Uniform(0, 300)});
  ClusterTotals totals;
  totals.Reset(state, laws);
  for (int change = 0; change < 60; ++change) {
    const NodeId node = static_cast<NodeId>(rng.Below(state.nodes.size()));
    const WorkloadId workload = static_cast<WorkloadId>(rng.Below(2));
    switch (rng.Below(5)) {
      case 0:
        if (state.pods.size() > 0) {
          const PodId pod = static_cast<PodId>(rng.Below(state.pods.size()));
          const NodeId on = state.pods.node[pod];
          const WorkloadId of = state.pods.workload[pod];
          RemovePod(pod, &state);
          if (on != kNone) totals.Removed(of, on);
        }
        break;
      case 1:
        if (totals.PodsOn(node) == 0) {
          state.nodes.lost[node] ^= 1;
          totals.NodeChanged(node);
        }
        break;
      case 2:
        state.network.latency_ms[rng.Below(3) * 3 + rng.Below(2)] = rng.Uniform(1, 50);
        totals.LatencyChanged();
        break;
      default:
        if (HasRoom(state, workload, node)) {
          BindPod(AddPod(workload, &state), node, &state);
          totals.Placed(workload, node);
        }
    }
  }
  CheckConsistent(state);
  ClusterTotals fresh;
  fresh.Reset(state, laws);
  ExpectSame(totals.Now(), fresh.Now());
}

TEST(ClusterTotals, OfNothingAreNothing) {
  State state = SmallCluster(1, false);  // Two cores of the first kind.
  const PlacementLaws laws = Laws(state), none;
  ClusterTotals totals;
  totals.Reset(state, none);
  for (int i = 0; i < 2; ++i) BindPod(AddPod(0, &state), 0, &state);
  totals.Reset(state, none);
  EXPECT_EQ(totals.Now().fragmentation, 0);
  EXPECT_EQ(totals.Now().watts_share, 0);
  EXPECT_EQ(totals.Now().price_share, 0);
  EXPECT_EQ(totals.NodeUserMs(0), 0);
  EXPECT_EQ(totals.Now().latency_ms, 0);
  // One node is as good as its mean, and does not differ from it.
  EXPECT_NEAR(totals.Now().mean_node_utilisation[0], 0.25, 1e-6);
  EXPECT_EQ(totals.Now().utilisation_sd[0], 0);
  EXPECT_EQ(totals.Now().utilisation[2], 0);
  state.nodes.devices = {Devices::Of(0)};  // None of them is none.
  totals.Reset(state, none);
  EXPECT_FALSE(totals.Now().has_devices);
  state.nodes.devices.clear();
  UnbindPod(0, &state), UnbindPod(1, &state);
  state.nodes.lost = {1};
  totals.Reset(state, laws);
  const ClusterTerms terms = totals.Now();
  for (const double value : {terms.utilisation_sd[0], terms.utilisation[0], terms.watts_share,
                             terms.price_share, terms.fragmentation, terms.latency_ms,
                             terms.latency_penalty, terms.mean_node_utilisation[1]})
    EXPECT_EQ(value, 0);
  EXPECT_EQ(terms.ready_nodes, 0);
}

// Free CPU that a learner cannot use counts for its quarter: it wants 512 MiB, of which less is
// left on the node that 60 webs fill.
TEST(ClusterTotals, FragmentationIsTheShareOfCpuThatIsStranded) {
  State state = SmallCluster(2, false);
  auto catalog = std::make_shared<Catalog>(*state.catalog);
  catalog->workloads[0].requests = {25, 60 * (int64_t{1} << 20)};
  state.catalog = catalog;
  const PlacementLaws laws = Laws(state);
  for (int i = 0; i < 60; ++i) BindPod(AddPod(0, &state), 0, &state);
  ClusterTotals totals;
  totals.Reset(state, laws);
  EXPECT_DOUBLE_EQ(totals.Now().fragmentation, 0.25 * 500 / 5000);
}

TEST(ClusterTotals, PenaltiesAndLatenciesAreMeansOverPods) {
  State state = SmallCluster(2, false);
  const PlacementLaws laws = Laws(state);
  ClusterTotals totals;
  totals.Reset(state, laws);
  for (const auto& [workload, node] : {std::pair(0, 0), {0, 1}, {1, 1}}) {
    BindPod(AddPod(workload, &state), node, &state);
    totals.Placed(workload, node);
  }
  // Of three: near at 10 ms; far at 40 ms, beyond the hard limit of 30; as far without a limit.
  EXPECT_DOUBLE_EQ(totals.Now().latency_ms, (10 + 40 + 40) / 3.);
  EXPECT_NEAR(totals.Now().latency_penalty, (0 + 1 + 1) / 3., 1e-9);
  EXPECT_EQ(totals.NodeUserMs(0), 10);
  EXPECT_EQ(totals.NodeUserMs(1), 40);
  EXPECT_EQ(totals.NodeUserPenalty(1, 0), 0.25);
  ClusterTotals fresh;
  fresh.Reset(state, laws);
  ExpectSame(totals.Now(), fresh.Now());
  // There and back need not be as long.
  state.network.latency_ms[2 * 3 + 0] = 7;
  totals.LatencyChanged();
  EXPECT_EQ(totals.NodeUserMs(0), 12);
  EXPECT_DOUBLE_EQ(totals.Now().latency_ms, (12 + 40 + 40) / 3.);
  EXPECT_EQ(totals.NodeUserPenalty(1, 0), 0.3);
}

// One web near, two learners: one near, one far.
TEST(ClusterTotals, CallsAreAsFarAsTheirPodsAreApart) {
  State state = SmallCluster(2, false);
  const PlacementLaws laws = Laws(state);
  ClusterTotals totals;
  totals.Reset(state, laws);
  EXPECT_EQ(totals.Now().calls_counted, 0);
  EXPECT_EQ(totals.Now().call_distance, 0);
  for (const auto& [workload, node] : {std::pair(0, 0), {1, 0}, {1, 1}}) {
    BindPod(AddPod(workload, &state), node, &state);
    totals.Placed(workload, node);
  }
  // Round trips: 2 ms within the near zone, 24 to the far one; 40 from there to users is the worst.
  EXPECT_NEAR(totals.Now().call_ms, 13, 1e-4);
  EXPECT_NEAR(totals.Now().call_distance, 13 / 40., 1e-5);
  EXPECT_NEAR(totals.Now().calls_counted, 1, 1e-9);
  EXPECT_NEAR(totals.PartnerMs(0, 1), (24 + 2) / 2., 1e-4);
  EXPECT_NEAR(totals.CallsOf(1).counted, 1, 1e-9);
  state.network.latency_ms[0 * 3 + 1] = 100;
  totals.LatencyChanged();
  EXPECT_NEAR(totals.Now().call_ms, (2 + 112) / 2., 2e-4);
  EXPECT_NEAR(totals.Now().call_distance, 57 / 112., 1e-5);
  RemovePod(0, &state);
  totals.Removed(0, 0);
  EXPECT_EQ(totals.Now().call_distance, 0);
}

// The users' own layer is no place to be far from.
TEST(ClusterTotals, TheWorstLatencyIsThatOfAnotherLayer) {
  State state = SmallCluster(2, false);
  const PlacementLaws laws = Laws(state);
  state.network.latency_ms[2 * 3 + 2] = 500;
  ClusterTotals totals;
  totals.Reset(state, laws);
  EXPECT_EQ(totals.NodeUserPenalty(1, 1), 1);
}

// In steps of 2^-22, millionths and ns, so that sums are exact whatever their order.
TEST(ClusterTotals, SumsAreOfWholeNumbers) {
  State state = SmallCluster(3, false);
  PlacementLaws laws = Laws(state);
  laws.costs[0].price_per_hour = 1.23456789;
  for (int i = 0; i < 4; ++i) BindPod(AddPod(0, &state), 1, &state);  // A third of three cores.
  BindPod(AddPod(1, &state), 0, &state);
  state.network.latency_ms[2 * 3 + 0] = 10.0000004;
  ClusterTotals totals;
  totals.Reset(state, laws);
  const double third = std::round(4194304 / 3.), quarter = 1048576;
  EXPECT_DOUBLE_EQ(totals.Now().mean_node_utilisation[0], (third + quarter) / 3 / 4194304);
  EXPECT_DOUBLE_EQ(totals.Now().price_per_hour, 1.234568 + 0.25);
  EXPECT_DOUBLE_EQ(totals.Now().latency_ms, (4 * 40 + 15) / 5.);
  EXPECT_DOUBLE_EQ(totals.Now().latency_penalty, (4 + 0.375) / 5);
  state.network.latency_ms[2 * 3 + 0] = 25 / 3.;
  totals.LatencyChanged();
  EXPECT_DOUBLE_EQ(totals.Now().latency_penalty, (4 + 0.333333) / 5);
  EXPECT_DOUBLE_EQ(totals.Now().latency_ms, (4 * 40 + 13.333333) / 5);
}

// As of a live cluster: it does not tell which workload calls which.
PlacementLaws LawsWithoutUsers(const State& state) {
  PlacementLaws laws = Laws(state);
  laws.users = kNone;
  return laws;
}

TEST(ClusterTotals, AfterIsWhatSuchChangesGive) {
  State state = SmallCluster(4, true);  // None, one, two devices and none.
  state.calls = nullptr;
  const PlacementLaws laws = LawsWithoutUsers(state);
  BindPod(AddPod(0, &state), 0, &state);
  BindPod(AddPod(1, &state), 2, &state);
  state.nodes.devices[2].free_millis = {1000, 1000};  // Whole devices are what is counted here.
  ClusterTotals totals;
  totals.Reset(state, laws);
  const Resources web = state.catalog->workloads[0].requests,
                  learner = state.catalog->workloads[1].requests;
  // Two more on node 0, one with a device on node 1 and one on node 2 with both; then one away.
  const PodChange changes[] = {
      {0, 2, web, 0}, {2, 1, learner, 2}, {1, 1, learner, 1}, {0, -1, web, 0}, {2, 1, web, 0}};
  State other = state;
  other.nodes.free[0] -= web;
  other.nodes.free[2] = other.nodes.free[2] - learner - web;
  other.nodes.free[1] -= learner;
  other.nodes.devices[2].free_millis = {0, 0};
  other.nodes.devices[1].free_millis = {0};
  ClusterTotals replaced;
  replaced.Reset(other, laws);
  replaced.NodeReplaced(0, 2);
  replaced.NodeReplaced(1, 1);
  replaced.NodeReplaced(2, 3);
  EXPECT_EQ(replaced.PodsOn(2), 3);
  ExpectSame(totals.After(changes), replaced.Now());
  // And back, though more is given back than was taken: no device is free twice.
  const PodChange back[] = {{2, -1, learner, 2}, {2, -1, web, 0}, {1, -1, learner, 2}};
  replaced.NodeReplaced(0, 1);
  other.nodes.free[0] += web;
  replaced.NodeReplaced(0, 1);
  ExpectSame(replaced.After(back), totals.Now());
  // Of two devices one.
  const PodChange half[] = {{2, 1, {}, 1}};
  State one = state;
  one.nodes.devices[2].free_millis = {0, 1000};
  ClusterTotals with_one;
  with_one.Reset(one, laws);
  with_one.NodeReplaced(2, 2);
  ExpectSame(totals.After(half), with_one.Now());
  // Who gives one back gives back the first that is in use.
  one.nodes.devices[2].free_millis = {700, 0};
  with_one.NodeReplaced(2, 2);
  const PodChange freed[] = {{2, -1, {}, 1}};
  State two = one;
  two.nodes.devices[2].free_millis = {1000, 0};
  ClusterTotals first;
  first.Reset(two, laws);
  first.NodeReplaced(2, 1);
  ExpectSame(with_one.After(freed), first.Now());
}

TEST(ClusterTotals, LostNodesCountNowhere) {
  State state = SmallCluster(2, false);
  const PlacementLaws laws = Laws(state);
  state.nodes.lost = {0, 1};
  ClusterTotals totals;
  totals.Reset(state, laws);
  EXPECT_EQ(totals.Now().ready_nodes, 1);
  EXPECT_DOUBLE_EQ(totals.Now().watts, 10);
  EXPECT_DOUBLE_EQ(totals.Now().watts_share, 0.05);
}

}  // namespace
}  // namespace rudderfish
