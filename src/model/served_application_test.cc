// SPDX-License-Identifier: Apache-2.0
#include "model/served_application.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

namespace rudderfish {
namespace {

TEST(ServiceLaw, HasTheShapeOfItsScv) {
  EXPECT_EQ(ServiceLaw::OfScv(0), (ServiceLaw{ServiceLaw::Shape::kConstant, 0}));
  EXPECT_EQ(ServiceLaw::OfScv(1), (ServiceLaw{ServiceLaw::Shape::kExponential, 1}));
  EXPECT_EQ(ServiceLaw::OfScv(0.5), (ServiceLaw{ServiceLaw::Shape::kLogNormal, 0.5}));
  EXPECT_EQ(ServiceLaw::OfScv(3), (ServiceLaw{ServiceLaw::Shape::kLogNormal, 3}));
}

TEST(SingleStation, IsOneCallOfAClient) {
  const ServedApplication station = SingleStation({.name = "pods", .slots = 3}, 40);
  EXPECT_EQ(station.calls->endpoints.size(), 1u);
  EXPECT_EQ(station.calls->endpoints[0].qos_ms, 400);
  EXPECT_EQ(station.calls->endpoints[0].root, 0);
  EXPECT_EQ(station.calls->endpoints[0].end, 2);
  EXPECT_EQ(station.calls->call_count(), 2);
  EXPECT_EQ(station.calls->calls[1].caller, 0);
  EXPECT_EQ(station.calls->calls[1].workload, 1);
  EXPECT_EQ(station.calls->kind_count, 1);
  EXPECT_EQ(station.calls->execution_ms, (std::vector<double>{0, 40}));
  EXPECT_EQ(station.service_ms, (std::vector<double>{0, 40}));
  EXPECT_FALSE(station.workloads[0].scaled);
  EXPECT_EQ(station.workloads[0].replicas, 0);
  EXPECT_TRUE(station.workloads[1].scaled);
  EXPECT_EQ(station.EndpointShares(), std::vector<double>{1});
  EXPECT_EQ(station.DemandS(), (std::vector<double>{0, 0.04}));
  EXPECT_EQ(station.CallsPerRequest(), (std::vector<double>{0, 1}));
  EXPECT_DOUBLE_EQ(station.CapacityPerS({0, 2}), 2 * 3 / 0.04);
}

// One endpoint calls web and db, the other web twice.
ServedApplication MixOf(double first_per_s, double second_per_s) {
  auto graph = std::make_shared<CallGraph>();
  graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 1},
                  {.workload = 2, .caller = 0, .first_group = 1, .last_group = 1},
                  {.workload = 0, .first_group = 1, .last_group = 2},
                  {.workload = 1, .caller = 3, .first_group = 2, .last_group = 2},
                  {.workload = 1, .caller = 3, .first_group = 2, .last_group = 2}};
  graph->groups = {{0, 2}, {2, 4}};
  graph->sequence = {1, 2, 4, 5};
  graph->endpoints = {{.name = "a", .root = 0, .end = 3, .rate_per_second = first_per_s},
                      {.name = "b", .root = 3, .end = 6, .rate_per_second = second_per_s}};
  ServedApplication mix;
  mix.calls = graph;
  mix.workloads = {{.name = "client", .scaled = false},
                   {.name = "web", .slots = 2},
                   {.name = "db"},
                   {.name = "idle"}};
  mix.service_ms = {0, 10, 50, 0, 20, 30};
  return mix;
}

TEST(ServedApplication, DemandsAreMeansOverTheMix) {
  const ServedApplication mix = MixOf(3, 1);
  EXPECT_EQ(mix.EndpointShares(), (std::vector<double>{0.75, 0.25}));
  const std::vector<double> demand_s = mix.DemandS();
  EXPECT_EQ(demand_s[0], 0);
  EXPECT_DOUBLE_EQ(demand_s[1], 0.75 * 0.01 + 0.25 * 0.05);
  EXPECT_DOUBLE_EQ(demand_s[2], 0.75 * 0.05);
  EXPECT_EQ(demand_s[3], 0);
  EXPECT_EQ(mix.CallsPerRequest(), (std::vector<double>{0, 0.75 + 0.5, 0.75, 0}));
  EXPECT_DOUBLE_EQ(mix.CapacityPerS({0, 1, 4, 0}), 2 / demand_s[1]);
  EXPECT_DOUBLE_EQ(mix.CapacityPerS({0, 4, 1, 0}), 1 / demand_s[2]);
  EXPECT_EQ(mix.workload_count(), 4);
}

TEST(ServedApplication, EndpointsWithoutRequestsCountTheSame) {
  EXPECT_EQ(MixOf(0, 0).EndpointShares(), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(MixOf(0, 2).EndpointShares(), (std::vector<double>{0, 1}));
  ServedApplication idle = MixOf(1, 1);
  idle.service_ms.assign(6, 0);
  EXPECT_EQ(idle.CapacityPerS({0, 1, 1, 1}), std::numeric_limits<double>::infinity());
}

// Probes at 5, 15, 25 ... s: who serves from 3 s to 21 s on, at any time alike, is ready at 5 s for
// 2 of these 18 seconds, at 15 s for 10, at 25 s for 6.
TEST(ServedApplication, PodsAreReadyAtTheProbeThatFindsThemServing) {
  ServedWorkload pods{.start_low_s = 3, .start_high_s = 21};
  EXPECT_EQ(pods.ReadyAfterS(7), 7);
  EXPECT_EQ(pods.MeanStartS(), 12);
  EXPECT_EQ(pods.LongestStartS(), 21);
  pods.probe_delay_s = 5;
  pods.probe_period_s = 10;
  EXPECT_EQ(pods.ReadyAfterS(0), 5);
  EXPECT_EQ(pods.ReadyAfterS(5), 5);
  EXPECT_EQ(pods.ReadyAfterS(5.1), 15);
  EXPECT_EQ(pods.ReadyAfterS(15), 15);
  EXPECT_NEAR(pods.MeanStartS(), (2 * 5 + 10 * 15 + 6 * 25) / 18., 1e-12);
  EXPECT_EQ(pods.LongestStartS(), 25);
  pods.pull_low_s = 20;
  pods.pull_high_s = 40;
  EXPECT_EQ(pods.LongestStartS(), 25);  // There is no node that lacks it.
  pods.image_nodes = 3;
  EXPECT_EQ(pods.LongestStartS(), 65);
  pods.start_low_s = pods.start_high_s = 6;
  EXPECT_EQ(pods.MeanStartS(), 15);
}

// Of three nodes one holds the image.
TEST(ServedApplication, TheFirstPodOnANodePulls) {
  EXPECT_EQ(PullsOf(1, 1, 3), 0);
  EXPECT_EQ(PullsOf(2, 1, 3), 1);
  EXPECT_EQ(PullsOf(9, 1, 3), 2);
  EXPECT_EQ(PullsOf(9, 3, 3), 0);
  EXPECT_EQ(PullsOf(9, 0, 0), 0);
}

}  // namespace
}  // namespace rudderfish
