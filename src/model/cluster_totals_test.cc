// SPDX-License-Identifier: Apache-2.0
#include "model/cluster_totals.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>

#include "base/rng.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::WorldBuilder;

// Two kinds of node in two zones, users in a third; workload 0 wants CPU, 1 a share of a device.
State SmallCluster(int nodes, bool with_devices) {
  WorldBuilder world;
  const LayerId near = world.Layer("near"), far = world.Layer("far"), users = world.Layer("users");
  world.LatencyBothWays(users, near, 5);
  world.LatencyBothWays(users, far, 20);
  const KindId kinds[] = {world.Kind("near", near), world.Kind("far", far)};
  world.Workload("web", 250, 64);
  world.Workload("learner", 500, 512);
  for (int i = 0; i < nodes; ++i) world.Node(kinds[i % 2], 2000 + 1000 * (i % 3), 4096);
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
  const PlacementLaws laws = Laws(state);
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
        state.network.latency_ms[2 * 3 + rng.Below(2)] = rng.Uniform(1, 50);
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
