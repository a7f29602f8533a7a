// SPDX-License-Identifier: Apache-2.0
#include "evaluation/recorded_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/placement_run.h"
#include "tests/support/small_arrivals.h"

// A record of what the simulator did is measured as the simulator did.

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using Kind = RecordedChange::Kind;
using namespace std::chrono_literals;

constexpr uint64_t kSeed = 5;

// Where none ever waits: the nth pod that is asked about is the nth that comes.
std::shared_ptr<const Scenario> Quiet(std::string_view until) {
  auto scenario = std::make_shared<Scenario>(*testing::ArrivalsScenario(fmt::format(R"(
  streams:
    - {{workloads: {{web: 2, batch: 1, learner: 1}}, interval: {{exponential: 20s}},
        lifetime: {{exponential: 60s}}, count: 60}}
    - {{workloads: batch, interval: 0s, count: 6, waves: {{pods: 2, hold: 40s, pause: 9s}}}}
  start_delay: 1s to 3s
  users: users
{})",
                                                                                    until)));
  scenario->objective = Objective::Of(ObjectiveTerm::kEnergy);
  return scenario;
}

std::vector<RecordedChange> Simulate(const std::shared_ptr<const Scenario>& scenario,
                                     LifecycleMetrics* metrics) {
  const std::vector<EpisodePod> pods = PodsOfEpisode(*scenario, kSeed);
  const PlacementRule rule = *PlacementRuleNamed("least-allocated", *scenario->objective);
  Lifecycle world(scenario);
  CHECK(world.Start(kSeed).has_value());
  std::vector<RecordedChange> record;
  for (int64_t n = 0; world.NextPending(); ++n) {
    const NodeId node = rule({world.state(), world.totals(), world.pending_workload()});
    CHECK_NE(node, kNone);
    EXPECT_EQ(world.pending_workload(), pods[n].pod.workload);
    const SimTime at = world.state().at;
    EXPECT_EQ(at, pods[n].pod.at);
    record.push_back({at, Kind::kArrived, n});
    record.push_back({at, Kind::kBound, n, node});
    const SimTime ends = pods[n].pod.lifetime == kNever
                             ? pods[n].pod.deleted_at
                             : at + pods[n].start_delay + pods[n].pod.lifetime;
    if (ends <= scenario->arrivals->until) record.push_back({ends, Kind::kLeft, n});
    world.Bind(node);
  }
  *metrics = world.metrics();
  // A pod that leaves makes room for one that comes at the same time.
  std::stable_sort(record.begin(), record.end(), [](const auto& a, const auto& b) {
    return a.at != b.at ? a.at < b.at : a.kind == Kind::kLeft && b.kind != Kind::kLeft;
  });
  return record;
}

TEST(RecordedPlacement, IsMeasuredAsInTheSimulator) {
  for (const char* until : {"", "  until: 300s\n"}) {
    const auto scenario = Quiet(until);
    LifecycleMetrics simulated;
    const std::vector<RecordedChange> record = Simulate(scenario, &simulated);
    const Result<LifecycleMetrics> measured =
        MeasureRecorded(scenario, kSeed, record, simulated.end);
    ASSERT_TRUE(measured.has_value()) << measured.error().message;
    EXPECT_EQ(measured->arrived, simulated.arrived);
    EXPECT_EQ(measured->bindings, simulated.bindings);
    EXPECT_NEAR(measured->seconds, simulated.seconds, 1e-9 * simulated.seconds);
    EXPECT_NEAR(measured->objective_s, simulated.objective_s, 1e-9 * simulated.objective_s);
    EXPECT_NEAR(measured->fragmentation_s, simulated.fragmentation_s,
                1e-9 * simulated.fragmentation_s);
    EXPECT_NEAR(measured->pod_latency_s, simulated.pod_latency_s, 1e-9 * simulated.pod_latency_s);
    EXPECT_GT(measured->objective_s, 0);
  }
}

TEST(RecordedPlacement, AnObserverOfBindingsIsAskedAsInTheSimulator) {
  const auto scenario = Quiet("");
  LifecycleMetrics simulated;
  const std::vector<RecordedChange> record = Simulate(scenario, &simulated);
  const PlacementRule rule = *PlacementRuleNamed("least-allocated", *scenario->objective);
  int asked = 0;
  const BindingObserver observer = [&](const PlacementQuestion& question, NodeId node) {
    ++asked;
    EXPECT_EQ(rule(question), node);
  };
  ASSERT_TRUE(MeasureRecorded(scenario, kSeed, record, simulated.end, observer).has_value());
  EXPECT_EQ(asked, simulated.bindings);
}

TEST(RecordedPlacement, WaitingCountsFromArrivalToBinding) {
  const auto scenario = Quiet("");
  const std::vector<RecordedChange> record = {{10s, Kind::kArrived, 0},
                                              {10s, Kind::kArrived, 1},
                                              {14s, Kind::kBound, 1, 2},
                                              {20s, Kind::kLeft, 0},
                                              {30s, Kind::kLeft, 1}};
  const Result<LifecycleMetrics> measured = MeasureRecorded(scenario, kSeed, record, 30s);
  ASSERT_TRUE(measured.has_value()) << measured.error().message;
  EXPECT_DOUBLE_EQ(measured->seconds, 20);
  EXPECT_DOUBLE_EQ(measured->waiting_pods_s, 4 * 2 + 6);
  EXPECT_DOUBLE_EQ(measured->pods_s, 16);
  EXPECT_DOUBLE_EQ(measured->waiting.max_s(), 4);
  EXPECT_EQ(measured->never_bound, 1);
}

TEST(RecordedPlacement, WhatCannotHaveBeenIsRefused) {
  const auto scenario = Quiet("");
  const auto why = [&](std::vector<RecordedChange> record, SimTime end = 60s) {
    const Result<LifecycleMetrics> measured = MeasureRecorded(scenario, kSeed, record, end);
    return measured ? std::string() : measured.error().message;
  };
  EXPECT_THAT(why({{9s, Kind::kArrived, 0}, {8s, Kind::kBound, 0, 1}}), HasSubstr("backwards"));
  EXPECT_THAT(why({{9s, Kind::kArrived, 0}}, 8s), HasSubstr("backwards"));
  EXPECT_THAT(why({{9s, Kind::kArrived, 66}}), HasSubstr("the episode has 66"));
  EXPECT_THAT(why({{9s, Kind::kArrived, 0}, {9s, Kind::kArrived, 0}}), HasSubstr("twice"));
  EXPECT_THAT(why({{9s, Kind::kBound, 0, 1}}), HasSubstr("does not wait"));
  EXPECT_THAT(why({{9s, Kind::kLeft, 0}}), HasSubstr("not there"));
  EXPECT_THAT(why({{9s, Kind::kArrived, 0}, {9s, Kind::kBound, 0, 4}}), HasSubstr("there are 4"));
  std::vector<RecordedChange> crowd;
  for (int64_t pod = 0; pod < 9; ++pod) {
    crowd.push_back({9s, Kind::kArrived, pod});
    crowd.push_back({9s, Kind::kBound, pod, 0});
  }
  EXPECT_THAT(why(crowd), HasSubstr("no room"));
}

}  // namespace
}  // namespace rudderfish
