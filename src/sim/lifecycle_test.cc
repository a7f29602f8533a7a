// SPDX-License-Identifier: Apache-2.0
#include "sim/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "tests/support/small_arrivals.h"

namespace rudderfish {
namespace {

using namespace std::chrono_literals;
using testing::ArrivalsScenario;

using Chooser = std::function<NodeId(const Lifecycle&)>;

NodeId FirstWithRoom(const Lifecycle& world) {
  for (NodeId node = 0; node < world.state().nodes.size(); ++node) {
    if (HasRoom(world.state(), world.pending_workload(), node)) return node;
  }
  return kNone;
}

// Where most of cpu and memory would be left.
NodeId LeastAllocated(const Lifecycle& world) {
  const State& state = world.state();
  const Resources& asked = state.workload_of(world.pending()).requests;
  NodeId best = kNone;
  double most = -1;
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    if (!HasRoom(state, world.pending_workload(), node)) continue;
    const Resources left = state.nodes.free[node] - asked;
    const Resources& all = state.nodes.allocatable[node];
    const double score = static_cast<double>(left.cpu_millis) / all.cpu_millis +
                         static_cast<double>(left.memory_bytes) / all.memory_bytes;
    if (score > most) most = score, best = node;
  }
  return best;
}

const LifecycleMetrics& Play(Lifecycle* world, const Chooser& choose, uint64_t seed = 1) {
  CHECK(world->Start(seed).has_value());
  while (world->NextPending()) world->Bind(choose(*world));
  return world->metrics();
}

LifecycleMetrics PlayOnce(std::string_view arrivals, const Chooser& choose, uint64_t seed = 1) {
  Lifecycle world(ArrivalsScenario(arrivals));
  return Play(&world, choose, seed);
}

double Row(const LifecycleMetrics& metrics, std::string_view name) {
  for (const MetricRow& row : metrics.Rows()) {
    if (row.name == name) return row.value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

constexpr std::string_view kPoisson = R"(
  streams:
    - {workloads: {web: 3, batch: 1, learner: 1}, interval: {exponential: 5s},
        lifetime: {exponential: 60s}, count: 500}
  start_delay: 1s to 3s
  users: users
  failures: {every: {exponential: 20m}, down: 1m}
)";

TEST(Lifecycle, PoissonArrivalsAreBoundRunAndDepart) {
  const LifecycleMetrics metrics = PlayOnce(kPoisson, LeastAllocated);
  EXPECT_EQ(metrics.arrived, 500);
  EXPECT_EQ(metrics.completed, 500);
  EXPECT_EQ(metrics.never_bound, 0);
  EXPECT_EQ(metrics.bindings, 500 + metrics.restarted);
  EXPECT_NEAR(metrics.makespan_s(), 2500, 500);
  // Little's law: 0.2 pods a second that stay for 62 s.
  EXPECT_NEAR(Row(metrics, "pods"), 0.2 * 62, 2.5);
  for (const MetricRow& row : metrics.Rows())
    RecordProperty(std::string(row.name), fmt::format("{:.6g}", row.value));
}

TEST(Lifecycle, SameSeedIsTheSameEpisodeWhateverRanBefore) {
  Lifecycle world(ArrivalsScenario(kPoisson));
  const auto values = [&](uint64_t seed) {
    std::vector<double> values;
    for (const MetricRow& row : Play(&world, LeastAllocated, seed).Rows())
      values.push_back(row.value);
    return values;
  };
  const std::vector<double> first = values(7);
  EXPECT_NE(values(8), first);
  EXPECT_EQ(values(7), first);
}

TEST(Lifecycle, AnotherPolicyMeetsTheSamePods) {
  const auto arrivals = [](const Chooser& choose) {
    std::vector<std::pair<int64_t, WorkloadId>> seen;
    Lifecycle world(ArrivalsScenario(
        "  streams: [{workloads: {web: 1, batch: 1}, interval: {exponential: 9s}, lifetime: 10s, "
        "count: 50}]"));
    CHECK(world.Start(3).has_value());
    while (world.NextPending()) {
      seen.emplace_back(world.state().at.count(), world.pending_workload());
      world.Bind(choose(world));
    }
    return seen;
  };
  EXPECT_EQ(arrivals(FirstWithRoom), arrivals(LeastAllocated));
}

TEST(Lifecycle, PodWaitsUntilThereIsRoom) {
  // 12 cores take 12 batch pods of 100 s; the 13th to 15th wait until the first have run.
  const LifecycleMetrics metrics = PlayOnce(
      "  streams: [{workloads: batch, interval: 1s, lifetime: 100s, count: 15}]", FirstWithRoom);
  EXPECT_EQ(metrics.completed, 15);
  EXPECT_EQ(metrics.refusals, 3 + 2);  // A bound pod lets the next of its kind be asked about.
  EXPECT_DOUBLE_EQ(metrics.waiting.max_s(), 88);  // Arrived at 12, bound at 100.
  EXPECT_DOUBLE_EQ(metrics.makespan_s(), 202);    // 102 + 100.
}

TEST(Lifecycle, PodsThatComeAtOneTimeAreAllThereBeforeTheFirstIsAskedAbout) {
  Lifecycle world(
      ArrivalsScenario("  streams:\n"
                       "    - {workloads: web, interval: 1s, lifetime: 100s, count: 3}\n"
                       "    - {workloads: [giant, batch, batch], interval: 1s, count: 3}\n"
                       "    - {workloads: batch, interval: 1s, lifetime: 100s, count: 3}"));
  ASSERT_TRUE(world.Start(1).has_value());
  using Queue = std::vector<WorkloadId>;
  constexpr WorkloadId kWeb = 0, kBatch = 1, kGiant = 3;
  std::vector<Queue> seen;
  while (world.NextPending()) {
    seen.emplace_back(1, world.pending_workload());
    seen.back().insert(seen.back().end(), world.next().begin(), world.next().end());
    world.Bind(FirstWithRoom(world));
  }
  // The giant, which fits nowhere, sleeps: no question is asked about it.
  const std::vector<Queue> expected = {{kWeb, kGiant, kBatch}, {kGiant, kBatch}, {kBatch},
                                       {kWeb, kBatch, kBatch}, {kBatch, kBatch}, {kBatch},
                                       {kWeb, kBatch, kBatch}, {kBatch, kBatch}, {kBatch}};
  EXPECT_EQ(seen, expected);
}

TEST(Lifecycle, OfALongQueueTheFirstAreTold) {
  Lifecycle world(ArrivalsScenario(
      "  streams: [{workloads: web, interval: 0s, count: 20, waves: {pods: 20, hold: 50s, pause: "
      "1s}}]"));
  ASSERT_TRUE(world.Start(1).has_value());
  std::vector<size_t> behind;
  while (world.NextPending()) {
    behind.push_back(world.next().size());
    world.Bind(FirstWithRoom(world));
  }
  ASSERT_EQ(behind.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(behind[i], std::min(Lifecycle::kNextMost, 19 - i)) << i;
}

TEST(Lifecycle, PodRunsItsLifetimeFromWhenItHasStarted) {
  const LifecycleMetrics metrics = PlayOnce(
      "  streams: [{workloads: web, interval: 1s, lifetime: 10s, count: 1}]\n"
      "  start_delay: 4s",
      FirstWithRoom);
  EXPECT_DOUBLE_EQ(metrics.makespan_s(), 14);
}

TEST(Lifecycle, PodThatNeverFitsIsCountedAndEndsNoEpisode) {
  const LifecycleMetrics metrics =
      PlayOnce("  streams: [{workloads: [giant, web], interval: 1s, lifetime: 10s, count: 4}]",
               FirstWithRoom);
  EXPECT_EQ(metrics.never_bound, 2);
  EXPECT_EQ(metrics.never_fit, 2);
  EXPECT_EQ(metrics.completed, 2);
}

TEST(Lifecycle, WavesAreDeletedTogetherAndRollingPodsOneByOne) {
  std::vector<int> pods;
  const auto count = [&](const Lifecycle& world) {
    pods.push_back(world.state().pods.size());
    return FirstWithRoom(world);
  };
  const LifecycleMetrics waves = PlayOnce(
      "  streams: [{workloads: web, interval: 3s, count: 6, waves: {pods: 3, hold: 20s, pause: "
      "5s}}]",
      count);
  EXPECT_THAT(pods, ::testing::ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_EQ(waves.deleted, 6);
  EXPECT_DOUBLE_EQ(waves.makespan_s(), 2 * (6 + 20) + 5);
  pods.clear();
  const LifecycleMetrics rolling = PlayOnce(
      "  streams: [{workloads: web, interval: 2s, count: 6, rolling: {pods: 3, hold: 3s, pause: "
      "1s}}]",
      count);
  EXPECT_THAT(pods, ::testing::ElementsAre(1, 2, 3, 3, 3, 3));
  EXPECT_DOUBLE_EQ(rolling.makespan_s(), 3 * 2 + 5 * 4);  // Pod 5, the last, goes at 6 + 5 * 4.
}

TEST(Lifecycle, PodsOfALostNodePendAgainOrAreGone) {
  constexpr std::string_view kText =
      "  streams: [{{workloads: batch, interval: 1s, lifetime: 100s, count: 2}}]\n"
      "  lost_pods: {}\n"
      "  events: [{{at: 50s, lose: small-1}}, {{at: 80s, return: small-1}}]";
  const LifecycleMetrics pend = PlayOnce(fmt::format(kText, "pend"), FirstWithRoom);
  EXPECT_EQ(pend.restarted, 2);
  EXPECT_EQ(pend.completed, 2);
  EXPECT_DOUBLE_EQ(pend.makespan_s(), 150);  // They restart elsewhere.
  const LifecycleMetrics gone = PlayOnce(fmt::format(kText, "gone"), FirstWithRoom);
  EXPECT_EQ(gone.lost, 2);
  EXPECT_EQ(gone.completed, 0);
  EXPECT_EQ(gone.never_bound, 0);
}

TEST(Lifecycle, ReturningNodeTakesWhoWaited) {
  const LifecycleMetrics metrics = PlayOnce(
      "  streams: [{workloads: learner, interval: 1s, lifetime: 100s, count: 9, start: 10s}]\n"
      "  events: [{at: 0s, lose: large-1}, {at: 0s, lose: large-2}, {at: 60s, return: large-2}]",
      FirstWithRoom);
  EXPECT_EQ(metrics.completed, 9);
  EXPECT_EQ(metrics.bindings, 9);  // Four at a time, at 60, 160 and 260 s.
  EXPECT_DOUBLE_EQ(metrics.makespan_s(), 350);
}

TEST(Lifecycle, LatencyOfTheChosenNodeFollowsTheEvents) {
  std::vector<double> latency_ms;
  PlayOnce(
      "  streams: [{workloads: web, interval: 10s, count: 3, lifetime: 5s}]\n  users: users\n"
      "  events: [{at: 15s, latency: {users: {near: 30ms}, near: {users: 40ms}}}]",
      [&](const Lifecycle& world) {
        latency_ms.push_back(world.totals().NodeUserMs(0));
        return 0;
      });
  EXPECT_THAT(latency_ms, ::testing::ElementsAre(10, 10, 70));
}

TEST(Lifecycle, EnergyAndCostAreThoseOfTheTimeThatPassed) {
  // One pod of 1 core on a small node of 2 for an hour: 75 W, two large ones asleep at 10 W.
  const LifecycleMetrics metrics = PlayOnce(
      "  streams: [{workloads: batch, interval: 1s, count: 1, lifetime: 1h}]", FirstWithRoom);
  EXPECT_NEAR(Row(metrics, "energy"), 0.095, 1e-9);
  EXPECT_NEAR(Row(metrics, "cost"), 1, 1e-9);
  EXPECT_NEAR(Row(metrics, "active_nodes"), 1, 1e-9);
  EXPECT_NEAR(Row(metrics, "utilisation_cpu"), 0.125, 1e-6);
}

// The web near calls two batches: the first near, 2 ms there and back, from 10 s on; the second
// far, 40 ms, from 20 s on. They end at 70 and 80 s, the web at 60 s.
TEST(Lifecycle, CallsAreThoseOfTheTimeInWhichBothEndsRun) {
  Scenario scenario = *ArrivalsScenario(R"(
  streams:
    - {workloads: web, interval: 1s, count: 1, lifetime: 60s}
    - {workloads: batch, start: 10s, interval: 10s, count: 2, lifetime: 60s}
  until: 100s
patterns:
  shop:
    buy: {client: web, rate: 1, qos: 1s, calls: [batch: {execution: 1ms}]}
)");
  EXPECT_TRUE(scenario.places_pods());
  scenario.objective = Objective::Of(ObjectiveTerm::kCalls);
  Lifecycle world(std::make_shared<const Scenario>(scenario));
  int bound = 0;
  const LifecycleMetrics metrics = Play(
      &world, [&](const Lifecycle&) { return bound++ < 2 ? 0 : 2; }, 1);
  EXPECT_NEAR(Row(metrics, "call_latency"), (10 * 2 + 40 * 21) / 50., 1e-4);
  // Of the worst, 50 ms from the far nodes to the users, over all of the time.
  EXPECT_NEAR(Row(metrics, "objective"), (10 * 2 + 40 * 21) / 50. / 100, 1e-5);
}

TEST(Lifecycle, LeavesFragmentationAloneAndMeasuresAllElseAlike) {
  const auto scenario = ArrivalsScenario(kPoisson);
  Lifecycle all(scenario), rest(scenario, Lifecycle::Measured::kAllButFragmentation);
  std::vector<MetricRow> expected = Play(&all, LeastAllocated).Rows();
  const std::vector<MetricRow> found = Play(&rest, LeastAllocated).Rows();
  EXPECT_GT(Row(all.metrics(), "fragmentation"), 0);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].name == "fragmentation") expected[i].value = 0;
    EXPECT_EQ(found[i].value, expected[i].value) << expected[i].name;
  }
}

TEST(Lifecycle, EndsAtItsEndThoughPodsRunOn) {
  const LifecycleMetrics metrics =
      PlayOnce("  streams: [{workloads: web, interval: 60s}]\n  until: 5m", FirstWithRoom);
  EXPECT_EQ(metrics.arrived, 6);  // The sixth at the end itself.
  EXPECT_EQ(metrics.end, 5min);
  EXPECT_DOUBLE_EQ(metrics.seconds, 300);
}

// Whatever a policy answers: the State stays consistent, every pod has one fate.
RC_GTEST_PROP(Lifecycle, KeepsItsBooks, (uint64_t seed, bool gone)) {
  Lifecycle world(ArrivalsScenario(fmt::format(R"(
  streams:
    - {{workloads: {{web: 2, batch: 1, learner: 1, giant: 0.1}}, interval: 0s to 4s,
        lifetime: 5s to 90s, count: 150}}
    - {{workloads: web, interval: 2s, count: 60, rolling: {{pods: 8, hold: 3s, pause: 1s}}}}
  start_delay: {{normal: [1s, 1s]}}
  lost_pods: {}
  failures: {{every: {{exponential: 3m}}, down: 1s to 30s}}
  events: [{{at: 40s, lose: small-2}}, {{at: 70s, return: small-2}}]
)",
                                               gone ? "gone" : "pend")));
  RC_ASSERT(world.Start(seed).has_value());
  Rng rng(seed, 99);
  while (world.NextPending()) {
    const NodeId node = static_cast<NodeId>(rng.Below(4));
    const bool binds = HasRoom(world.state(), world.pending_workload(), node);
    world.Bind(binds ? node : rng.Below(2) > 0 ? FirstWithRoom(world) : kNone);
    if (rng.Below(16) == 0) CheckConsistent(world.state());
  }
  CheckConsistent(world.state());
  const LifecycleMetrics& metrics = world.metrics();
  RC_ASSERT(metrics.arrived == 210);
  RC_ASSERT(metrics.completed + metrics.deleted + metrics.lost + world.state().pods.size() == 210);
  RC_ASSERT(metrics.bindings - metrics.restarted <= 210 - metrics.never_bound);
  RC_ASSERT((gone ? metrics.restarted : metrics.lost) == 0);
}

TEST(LifecycleDeathTest, RefusesANodeWithoutRoom) {
  Lifecycle world(ArrivalsScenario("  streams: [{workloads: giant, interval: 1s, count: 1}]"));
  CHECK(world.Start(1).has_value());
  CHECK(world.NextPending());
  EXPECT_DEATH(world.Bind(0), "HasRoom");
}

}  // namespace
}  // namespace rudderfish
