// SPDX-License-Identifier: Apache-2.0
#include "sim/event_simulator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/queueing.h"
#include "tests/support/count_allocations.h"

namespace rudderfish {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

std::shared_ptr<const RateCurve> SteadyCurve(double per_s) {
  return std::make_shared<const RateCurve>(RateCurve::Steady(per_s));
}

ServedWorkload StationOf(int slots, ServiceLaw service) {
  return {.name = "station", .slots = slots, .service = service};
}

TEST(EventSimulator, ThoseWhoArePresentAreThoseWhoStay) {
  ServedWorkload workload = StationOf(3, ServiceLaw::OfScv(2));
  workload.replicas = 2;
  auto curve = std::make_shared<RateCurve>();
  curve->per_s = {5.5, 5.5, 0};
  curve->step_s = 1000;
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(workload, 1000)));
  simulator.Start(curve, 3);
  simulator.AdvanceTo(int64_t{100'000} * kSecondNs);
  const WorkloadSums sums = simulator.sums(1);
  EXPECT_GT(sums.served, 7000);
  EXPECT_EQ(sums.served, sums.calls);
  EXPECT_EQ(simulator.in_flight(), 0);
  EXPECT_EQ(sums.present_ns, sums.sojourn_ns);
  EXPECT_EQ(sums.sojourn_ns - sums.wait_ns, sums.busy_ns);
  EXPECT_EQ(simulator.requests().response_ns, sums.sojourn_ns);
}

// client -> front -> (a then b) beside c, each 10 ms, of constant time.
ServedApplication FanOut() {
  auto calls = std::make_shared<CallGraph>();
  calls->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 3},
                  {.workload = 2, .caller = 1, .first_group = 3, .last_group = 3},
                  {.workload = 3, .caller = 1, .first_group = 3, .last_group = 3},
                  {.workload = 4, .caller = 1, .first_group = 3, .last_group = 3}};
  calls->groups = {{0, 1}, {1, 3}, {3, 4}};
  calls->sequence = {1, 2, 3, 4};
  calls->endpoints = {{.name = "page", .root = 0, .end = 5, .rate_per_second = 1, .qos_ms = 50}};
  ServedApplication application;
  application.calls = calls;
  application.service_ms = {0, 10, 10, 10, 35};
  application.workloads = {{.name = "client", .replicas = 0, .scaled = false}};
  for (const char* name : {"front", "a", "b", "c"}) {
    application.workloads.push_back({.name = name, .slots = 100, .service = ServiceLaw::OfScv(0)});
  }
  return application;
}

TEST(EventSimulator, SequencesAddUpAndOfParallelGroupsTheSlowestCounts) {
  ServedApplication application = FanOut();
  application.network_ms = 1;
  EventSimulator simulator(std::make_shared<const ServedApplication>(application));
  simulator.Start(SteadyCurve(2), 1);
  simulator.AdvanceTo(100 * kSecondNs);
  const RequestSums& requests = simulator.requests();
  ASSERT_GT(requests.completed, 150);
  // 1 + 10 + max(1 + 10 + 1 + 1 + 10 + 1, 1 + 35 + 1) + 1
  EXPECT_NEAR(
      static_cast<double>(requests.response_ns) / 1e6 / static_cast<double>(requests.completed), 49,
      1e-3);
  EXPECT_EQ(requests.late, 0);
  EXPECT_EQ(simulator.sums(2).served, simulator.sums(4).served);
}

// Two exponential stations one after the other: Burke's theorem makes the second an M/M/1, too.
TEST(EventSimulator, StationsInSeriesAreIndependentOfEachOther) {
  ServedApplication application = FanOut();
  application.service_ms = {0, 50, 80, 1e-6, 1e-6};
  for (int w : {1, 2}) {
    application.workloads[w].slots = 1;
    application.workloads[w].service = ServiceLaw();
  }
  EventSimulator simulator(std::make_shared<const ServedApplication>(application));
  simulator.Start(SteadyCurve(8), 1);
  simulator.AdvanceTo(int64_t{200'000} * kSecondNs);
  const double mean_s = static_cast<double>(simulator.requests().response_ns) / 1e9 /
                        static_cast<double>(simulator.requests().completed);
  EXPECT_NEAR(mean_s / (1 / (20.0 - 8) + 1 / (12.5 - 8)), 1, .02);
}

TEST(EventSimulator, ClientsGiveUpAndTryAgain) {
  ServedApplication application = SingleStation(StationOf(1000, ServiceLaw::OfScv(0)), 1000);
  application.timeout_s = .4;
  application.retries = 2;
  application.retry_delay_s = .1;
  EventSimulator simulator(std::make_shared<const ServedApplication>(application));
  auto curve = std::make_shared<RateCurve>();
  curve->per_s = {10, 10, 0};
  curve->step_s = 10;
  simulator.Start(curve, 1);
  simulator.AdvanceTo(60 * kSecondNs);
  const RequestSums& requests = simulator.requests();
  EXPECT_GT(requests.arrived, 100);
  EXPECT_EQ(requests.failed, requests.arrived);
  EXPECT_EQ(requests.completed, 0);
  EXPECT_EQ(requests.timeouts, 3 * requests.arrived);
  EXPECT_EQ(requests.retries, 2 * requests.arrived);
  // Servers finish calls that no client waits for.
  EXPECT_EQ(simulator.sums(1).served, 3 * requests.arrived);
  EXPECT_EQ(simulator.in_flight(), 0);
}

TEST(EventSimulator, CallsWithoutAPlaceFailTheirRequest) {
  ServedApplication application = FanOut();
  application.workloads[3].slots = 1;
  application.workloads[3].queue_limit = 0;
  EventSimulator simulator(std::make_shared<const ServedApplication>(application));
  auto curve = std::make_shared<RateCurve>();
  curve->per_s.assign(1001, 100);
  curve->per_s.push_back(0);
  simulator.Start(curve, 1);
  simulator.AdvanceTo(1100 * kSecondNs);
  const RequestSums& requests = simulator.requests();
  // The flow into b is a Poisson flow moved by a constant: Erlang's loss with a load of 1.
  EXPECT_NEAR(static_cast<double>(requests.failed) / static_cast<double>(requests.arrived),
              ErlangB(1, 1.0), .01);
  EXPECT_EQ(requests.failed, simulator.sums(3).refused);
  EXPECT_EQ(requests.arrived, requests.failed + requests.completed);
}

TEST(EventSimulator, NewPodsStartLateAndOldOnesDrain) {
  ServedWorkload workload = StationOf(1, ServiceLaw::OfScv(0));
  workload.balancing = Balancing::kRoundRobin;
  workload.replicas_min = 0;
  workload.start_low_s = workload.start_high_s = 20;
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(workload, 1000)));
  simulator.Start(SteadyCurve(2), 1);
  simulator.AdvanceTo(10 * kSecondNs);
  simulator.SetReplicas(1, 4);
  simulator.AdvanceTo(29 * kSecondNs);
  EXPECT_EQ(simulator.pods().ready(1), 1);
  EXPECT_EQ(simulator.replicas(1), 4);
  simulator.AdvanceTo(31 * kSecondNs);
  EXPECT_EQ(simulator.pods().ready(1), 4);
  const int64_t backlog = simulator.in_flight();
  EXPECT_GT(backlog, 15);  // Twice its capacity for 30 s: nothing of it was forgotten.
  simulator.SetReplicas(1, 0);
  EXPECT_EQ(simulator.pods().ready(1), 0);
  const int64_t refused = simulator.sums(1).refused;
  simulator.AdvanceTo(300 * kSecondNs);
  EXPECT_EQ(simulator.in_flight(), 0);
  EXPECT_EQ(simulator.requests().completed, simulator.sums(1).calls);
  EXPECT_GT(simulator.sums(1).refused, refused);
  // 31 s of the first pod, 21 of three, and the draining of their lines.
  const double pod_s = static_cast<double>(simulator.sums(1).pod_ns) / 1e9;
  EXPECT_GE(pod_s, 31 + 3 * 21 + 10);
  EXPECT_LE(pod_s, 31 + 3 * 21 + static_cast<double>(backlog) + 4);
}

// Four slots and one more place: as many are turned away as of M/M/4/5, whatever service is like.
TEST(EventSimulator, SharedSlotsTurnAwayTheCallThatIsOneTooMany) {
  ServedWorkload workload = StationOf(4, ServiceLaw::OfScv(0));
  workload.discipline = Discipline::kShared;
  workload.queue_limit = 1;
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(workload, 1000)));
  simulator.Start(SteadyCurve(4), 3);
  simulator.AdvanceTo(int64_t{30'000} * kSecondNs);
  const WorkloadSums sums = simulator.sums(1);
  EXPECT_NEAR(static_cast<double>(sums.refused) / static_cast<double>(sums.refused + sums.calls),
              FiniteQueue({4, 1, 4}, 5).blocking(), .01);
}

// Clients give up at 3 s and try again once; pods that are to go serve who is there.
TEST(EventSimulator, SharedSlotsAreThoseOfPodsThatComeAndGo) {
  ServedWorkload workload = StationOf(2, ServiceLaw::OfScv(1));
  workload.discipline = Discipline::kShared;
  workload.balancing = Balancing::kLeastRequests;
  workload.replicas_min = 0;
  workload.start_low_s = workload.start_high_s = 5;
  ServedApplication application = SingleStation(workload, 1000);
  application.timeout_s = 3;
  application.retries = 1;
  application.retry_delay_s = .5;
  EventSimulator simulator(std::make_shared<const ServedApplication>(application));
  simulator.Start(SteadyCurve(3), 9);
  simulator.AdvanceTo(60 * kSecondNs);
  EXPECT_GT(simulator.requests().timeouts, 50);
  EXPECT_GT(simulator.requests().retries, 50);
  simulator.SetReplicas(1, 4);
  simulator.AdvanceTo(90 * kSecondNs);
  EXPECT_EQ(simulator.pods().ready(1), 4);
  simulator.SetReplicas(1, 0);
  const int64_t left = simulator.sums(1).calls - simulator.sums(1).served;
  EXPECT_GT(left, 10);
  simulator.AdvanceTo(400 * kSecondNs);
  const WorkloadSums sums = simulator.sums(1);
  EXPECT_EQ(sums.served, sums.calls);
  EXPECT_EQ(sums.present_ns, sums.sojourn_ns);
  // Calls that had no slot of their own still computed for as long as they needed.
  EXPECT_NEAR(static_cast<double>(sums.sojourn_ns - sums.wait_ns) / sums.busy_ns, 1, 1e-6);
  simulator.SetReplicas(1, 1);  // In the place of a pod that is gone.
  simulator.AdvanceTo(410 * kSecondNs);
  EXPECT_GT(simulator.sums(1).served, sums.served);
}

// Probes find pods serving 15 s after their image is there, which takes 30 s on the second and the
// third node; from then on images are everywhere.
TEST(EventSimulator, PodsPullTheirImageWhereTheyAreTheFirstAndAreReadyAtAProbe) {
  ServedWorkload workload = StationOf(1, ServiceLaw::OfScv(0));
  workload.start_low_s = 6;
  workload.start_high_s = 14;
  workload.image_nodes = 3;
  workload.pull_low_s = workload.pull_high_s = 30;
  workload.probe_delay_s = 5;
  workload.probe_period_s = 10;
  EventSimulator simulator(std::make_shared<const ServedApplication>(SingleStation(workload, 10)));
  simulator.Start(SteadyCurve(2), 1);
  const auto ready_at = [&](int64_t s) {
    simulator.AdvanceTo(s * kSecondNs);
    return simulator.pods().ready(1);
  };
  simulator.SetReplicas(1, 3);
  EXPECT_EQ(ready_at(10), 1);
  simulator.SetReplicas(1, 2);  // It was pulling, and so does the next.
  simulator.SetReplicas(1, 3);
  EXPECT_EQ(ready_at(44), 1);
  EXPECT_EQ(ready_at(46), 2);
  EXPECT_EQ(ready_at(54), 2);
  EXPECT_EQ(ready_at(56), 3);
  simulator.SetReplicas(1, 1);
  simulator.SetReplicas(1, 5);
  std::vector<PodSight> pods;
  simulator.pods().See(&pods);
  ASSERT_EQ(pods.size(), 5U);
  EXPECT_FALSE(pods[4].ready);
  EXPECT_EQ(pods[4].ready_ns, (56 + 15) * kSecondNs);
  EXPECT_EQ(ready_at(70), 1);
  EXPECT_EQ(ready_at(72), 5);
}

TEST(EventSimulator, TheSameSeedIsTheSameRunAndReplicasDoNotChangeWhoComes) {
  ServedApplication served = FanOut();
  served.workloads[1].slots = 1;
  served.workloads[1].discipline = Discipline::kShared;
  const auto application = std::make_shared<const ServedApplication>(served);
  EventSimulator a(application), b(application);
  a.Start(SteadyCurve(50), 7);
  b.Start(SteadyCurve(50), 7);
  a.AdvanceTo(50 * kSecondNs);
  for (int i = 1; i <= 500; ++i) b.AdvanceTo(i * kSecondNs / 10);  // In other steps.
  EXPECT_EQ(a.requests().response_ns, b.requests().response_ns);
  EXPECT_EQ(a.events(), b.events());
  a.Start(SteadyCurve(50), 7);
  a.SetReplicas(2, 8);
  a.AdvanceTo(50 * kSecondNs);
  EXPECT_EQ(a.requests().arrived, b.requests().arrived);
  a.Start(SteadyCurve(50), 8);
  a.AdvanceTo(50 * kSecondNs);
  EXPECT_NE(a.requests().arrived, b.requests().arrived);
}

TEST(EventSimulator, AllocatesNothingOnceItHasSeenItsWorst) {
  ServedApplication served = FanOut();
  served.workloads[2].slots = 40;
  served.workloads[2].discipline = Discipline::kShared;
  const auto application = std::make_shared<const ServedApplication>(served);
  EventSimulator simulator(application);
  simulator.Start(SteadyCurve(3000), 7);
  simulator.AdvanceTo(10 * kSecondNs);
  const int64_t before = simulator.events();
  const long allocations = allocation_count;
  simulator.AdvanceTo(11 * kSecondNs);
  EXPECT_EQ(allocation_count, allocations);
  EXPECT_GT(simulator.events() - before, 10'000);
}

std::shared_ptr<const RateCurve> UsersOf(double per_s, double again, double think_s) {
  RateCurve curve = RateCurve::Steady(per_s);
  curve.users = {.again = again,
                 .think_s = think_s,
                 .thinking = again * per_s * think_s,
                 .starts_per_s = {per_s * (1 - again)}};
  return std::make_shared<const RateCurve>(std::move(curve));
}

// Users who think and come back are a network of two stations; each of them has the law that it
// would have by itself (J. R. Jackson, "Networks of waiting lines", 1957).
TEST(EventSimulator, UsersWhoReturnWaitAsInANetworkOfJackson) {
  ServedWorkload workload = StationOf(1, ServiceLaw::OfScv(1));
  workload.replicas = 1;
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(workload, 10)));  // 100 a second.
  simulator.Start(UsersOf(70, .9, 5), 11);
  simulator.AdvanceTo(int64_t{10} * kSecondNs);
  const RequestSums early = simulator.requests();
  EXPECT_NEAR(static_cast<double>(early.arrived), 700, 4 * std::sqrt(700));  // From the start.
  simulator.AdvanceTo(int64_t{6000} * kSecondNs);
  const RequestSums sums = simulator.requests() - early;
  // Users come by chance, and each of them asks ten times: the count varies by more than a
  // Poisson's. Of 7 a second, sums of geometric numbers (variance 90, mean 10).
  EXPECT_NEAR(static_cast<double>(sums.arrived), 70 * 5990, 4 * std::sqrt(7. * 5990 * (90 + 100)));
  const double mean_ms = static_cast<double>(sums.response_ns) / 1e6 / sums.completed;
  EXPECT_NEAR(mean_ms, 1000. / (100 - 70), 2);
}

TEST(EventSimulator, WhoWaitsForAnAnswerDoesNotAsk) {
  ServedWorkload workload = StationOf(1, ServiceLaw::OfScv(0));
  workload.replicas = 1;
  EventSimulator simulator(
      std::make_shared<const ServedApplication>(SingleStation(workload, 1000)));
  RateCurve closed = RateCurve::Steady(0);  // Some fifty users, who stay.
  closed.users = {.again = 1, .think_s = 5, .thinking = 50, .starts_per_s = {0}};
  simulator.Start(std::make_shared<const RateCurve>(closed), 5);
  simulator.AdvanceTo(int64_t{2000} * kSecondNs);
  const RequestSums sums = simulator.requests();
  EXPECT_NEAR(static_cast<double>(sums.completed), 2000, 5);  // It is never idle,
  EXPECT_LE(simulator.in_flight(), 90);                       // and the line ends somewhere.
  EXPECT_GE(simulator.in_flight(), 20);
  EXPECT_EQ(sums.arrived, sums.completed + simulator.in_flight());
}

TEST(EventSimulator, WhoFailsAsksAgainAsWell) {
  ServedWorkload workload = StationOf(1, ServiceLaw::OfScv(0));
  workload.replicas = 1;
  ServedApplication application = SingleStation(workload, 1);
  EventSimulator simulator(std::make_shared<const ServedApplication>(application));
  const std::vector<int> none = {0, 0};
  simulator.Start(UsersOf(20, .75, 2), 3, none);
  simulator.AdvanceTo(int64_t{2000} * kSecondNs);
  const RequestSums sums = simulator.requests();
  EXPECT_EQ(sums.failed, sums.arrived);
  EXPECT_NEAR(static_cast<double>(sums.arrived), 40000, 4 * std::sqrt(5. * 2000 * (12 + 16)));
}

TEST(RequestSource, FollowsItsCurve) {
  auto curve = std::make_shared<RateCurve>();
  curve->step_s = 100;
  curve->per_s = {0, 100, 100, 20, 0};
  RequestSource source(curve, 5, 1);
  std::vector<int> count(5);
  for (int64_t at = source.NextNs(); at != RequestSource::kNone; at = source.NextNs())
    ++count[at / (100 * kSecondNs)];
  EXPECT_EQ(count[4], 0);
  for (int i = 0; i < 4; ++i) {
    const double expected = curve->MeanOf(100 * i, 100 * (i + 1)) * 100;
    EXPECT_NEAR(count[i], expected, 4 * std::sqrt(expected)) << i;
  }
}

TEST(EventHeap, GivesEventsInTheOrderOfTime) {
  EventHeap heap;
  Rng rng(1);
  std::vector<int64_t> taken;
  int64_t now = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (heap.soonest_ns() == EventHeap::kNothing || rng.Below(100) < 52) {
      heap.Add({now + rng.Below(1000), i, 0});
    } else {
      const int64_t soonest = heap.soonest_ns();
      const TimedEvent event = heap.Take();
      ASSERT_EQ(event.at_ns, soonest);
      ASSERT_GE(event.at_ns, now);
      now = event.at_ns;
      taken.push_back(now);
    }
  }
  EXPECT_GT(taken.size(), 9000U);
}

TEST(ResponseHistogram, GivesPercentilesToAPercent) {
  ResponseHistogram histogram;
  Rng rng(1);
  std::vector<double> values;
  for (int i = 0; i < 100'000; ++i) {
    const double seconds = std::exp(3 * rng.Normal());
    values.push_back(seconds);
    histogram.Add(static_cast<int64_t>(seconds * 1e9));
  }
  std::sort(values.begin(), values.end());
  for (int share : {5, 50, 95, 99})
    EXPECT_NEAR(histogram.QuantileS(share / 100.0) / values[share * 1000], 1, .01) << share;
}

TEST(ResponseHistogram, WhatHasNoAnswerIsSlowerThanAll) {
  ResponseHistogram histogram;
  EXPECT_EQ(histogram.QuantileS(.5), 0);
  for (int i = 0; i < 90; ++i) histogram.Add(1'000'000'000);
  EXPECT_NEAR(histogram.QuantileS(.99), 1, .02);
  EXPECT_NEAR(histogram.QuantileS(.5, 10), 1, .02);
  EXPECT_TRUE(std::isinf(histogram.QuantileS(.95, 10)));
  EXPECT_TRUE(std::isinf(ResponseHistogram().QuantileS(.5, 1)));
}

}  // namespace
}  // namespace rudderfish
