// SPDX-License-Identifier: Apache-2.0
#include "model/steady_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "model/gamma_law.h"
#include "model/queueing.h"

namespace rudderfish {
namespace {

std::shared_ptr<ServedApplication> SteadyStation(const ServedWorkload& workload, double qos_ms) {
  auto station = std::make_shared<ServedApplication>(SingleStation(workload, 50));
  auto graph = std::make_shared<CallGraph>(*station->calls);
  graph->endpoints[0].qos_ms = qos_ms;
  station->calls = graph;
  return station;
}

double LateOf(double mean, double variance, double qos_s) {
  return 1 - GammaLaw{mean, variance}.BelowNearly(qos_s);
}

TEST(SteadyLoad, OnePodIsAQueueOfTheory) {
  for (const int slots : {1, 3}) {
    for (const double scv : {0.0, 0.5, 1.0, 2.0}) {
      const ServedWorkload pods{.name = "pods", .slots = slots, .service = ServiceLaw::OfScv(scv)};
      SteadyLoad steady(SteadyStation(pods, 120));
      EXPECT_DOUBLE_EQ(steady.CapacityPerS(std::vector<int>{0, 1}), 20.0 * slots);
      EXPECT_DOUBLE_EQ(steady.CapacityPerS(std::vector<int>{0, 4}), 80.0 * slots);
      for (const double use : {0.1, 0.5, 0.9}) {
        const QueueLaw law = AllenCunneenQueue({20 * slots * use, 20, slots}, 1, scv);
        const double late = LateOf(law.response_mean_s(), law.response_variance_s2(), 0.12);
        EXPECT_NEAR(steady.LateShare(std::vector<int>{0, 1}, 20 * slots * use), late, 1e-9);
        // Pods that know nothing of each other are queues of their own.
        EXPECT_NEAR(steady.LateShare(std::vector<int>{0, 3}, 60 * slots * use), late, 1e-9);
      }
    }
  }
}

TEST(SteadyLoad, SharedSlotsStretchEachCall) {
  for (const int slots : {1, 3}) {
    for (const double scv : {0.0, 1.0, 2.0}) {
      const ServedWorkload pods{.name = "pods",
                                .slots = slots,
                                .discipline = Discipline::kShared,
                                .service = ServiceLaw::OfScv(scv)};
      SteadyLoad steady(SteadyStation(pods, 120));
      EXPECT_NEAR(steady.LateShare(std::vector<int>{0, 1}, 0), LateOf(.05, scv * .0025, .12), 1e-9);
      for (const double use : {0.1, 0.5, 0.9}) {
        const Station station{20 * slots * use, 20, slots};
        const double stretch = SharingStretch(station), more = stretch - 1;
        const double waits = ErlangC(slots, use * slots);
        const double variation = SharingVariation(use, slots, waits, stretch, scv);
        const double variance =
            .0025 * (scv * stretch * stretch + (1 + scv) * more * more * variation);
        EXPECT_NEAR(steady.LateShare(std::vector<int>{0, 2}, 40 * slots * use),
                    LateOf(.05 * stretch, variance, .12), 1e-9);
      }
    }
  }
}

TEST(SteadyLoad, TurnsMakeArrivalsRegular) {
  ServedWorkload pods{.name = "pods", .slots = 2};
  pods.balancing = Balancing::kRoundRobin;
  SteadyLoad steady(SteadyStation(pods, 120));
  for (const int count : {1, 2, 5}) {
    const QueueLaw law = AllenCunneenQueue({34, 20, 2}, 1.0 / count, 1);
    EXPECT_NEAR(steady.LateShare(std::vector<int>{0, count}, 34 * count),
                LateOf(law.response_mean_s(), law.response_variance_s2(), 0.12), 1e-9);
  }
}

TEST(SteadyLoad, TheShorterLineIsBetweenOwnAndPooled) {
  for (const int slots : {1, 2}) {
    for (const int choices : {2, 3}) {
      ServedWorkload pods{.name = "pods", .slots = slots, .choices = choices};
      pods.balancing = Balancing::kLeastRequests;
      SteadyLoad steady(SteadyStation(pods, 120));
      for (const int count : {1, 2, 6}) {
        for (const double use : {0.3, 0.8, 0.95}) {
          const double rate = 20 * slots * use;
          const Wait own = MmcQueue({rate, 20, slots}).wait;
          const Wait pooled = MmcQueue({rate * count, 20, slots * count}).wait;
          const double many = (ShortestOfChoicesResponse(use, choices) - 1) / (20 * slots) *
                              std::pow(own.probability, choices - 1);
          const double mean =
              count == 1 ? own.mean_s() : std::min(own.mean_s(), many + pooled.mean_s());
          const double share = mean / own.mean_s();
          EXPECT_NEAR(steady.LateShare(std::vector<int>{0, count}, rate * count),
                      LateOf(0.05 + mean, 0.0025 + own.variance_s2() * share * share, 0.12), 1e-9)
              << slots << " " << count << " " << use;
        }
      }
    }
  }
}

TEST(SteadyLoad, WithoutLoadOnlyComputingAndNetworkTakeTime) {
  const ServedWorkload pods{.name = "pods", .service = ServiceLaw::OfScv(0.5)};
  auto station = SteadyStation(pods, 90);
  station->network_ms = 4;
  SteadyLoad steady(station);
  EXPECT_NEAR(steady.LateShare(std::vector<int>{0, 1}, 0),
              LateOf(0.05 + 2 * 0.004, 0.5 * 0.0025, 0.09), 1e-12);
  EXPECT_EQ(steady.LateShare(std::vector<int>{0, 1}, 20), 1);
  EXPECT_LT(steady.LateShare(std::vector<int>{0, 1}, 19.9), 1);
}

// Two endpoints: "a" (3 of 4 requests) calls web, which calls db twice one after another; "b"
// calls web, which calls db, search and web's other half at once.
std::shared_ptr<ServedApplication> SteadyPages() {
  auto graph = std::make_shared<CallGraph>();
  graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 2},
                  {.workload = 2, .caller = 1, .first_group = 2, .last_group = 2},
                  {.workload = 2, .caller = 1, .first_group = 2, .last_group = 2},
                  {.workload = 0, .first_group = 2, .last_group = 3},
                  {.workload = 1, .caller = 4, .first_group = 3, .last_group = 6},
                  {.workload = 2, .caller = 5, .first_group = 6, .last_group = 6},
                  {.workload = 3, .caller = 5, .first_group = 6, .last_group = 6},
                  {.workload = 3, .caller = 5, .first_group = 6, .last_group = 6}};
  graph->groups = {{0, 1}, {1, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}};
  graph->sequence = {1, 2, 3, 5, 6, 7, 8};
  graph->endpoints = {{.name = "a", .root = 0, .end = 4, .rate_per_second = 3, .qos_ms = 90},
                      {.name = "b", .root = 4, .end = 9, .rate_per_second = 1, .qos_ms = 130}};
  auto pages = std::make_shared<ServedApplication>();
  pages->calls = graph;
  pages->workloads = {{.name = "client", .scaled = false},
                      {.name = "web", .slots = 2, .service = ServiceLaw::OfScv(0.5)},
                      {.name = "db", .service = ServiceLaw::OfScv(2)},
                      {.name = "search", .service = ServiceLaw::OfScv(0.8)}};
  pages->service_ms = {0, 20, 10, 30, 0, 40, 60, 50, 70};
  pages->network_ms = 1;
  return pages;
}

struct MeanAndVariance {
  double mean = 0, variance = 0;
};

// The greater of two independent normal variables, by integrating over all values.
MeanAndVariance GreaterOf(const MeanAndVariance& a, const MeanAndVariance& b) {
  double mass = 0, mean = 0, square = 0;
  const auto below = [](double x, const MeanAndVariance& law) {
    return std::erfc((law.mean - x) / std::sqrt(2 * law.variance)) / 2;
  };
  constexpr double kStep = 1e-5;
  double before = 0;
  for (double x = -1; x < 1.5; x += kStep) {
    const double now = below(x, a) * below(x, b), middle = x - kStep / 2;
    mass += now - before;
    mean += middle * (now - before);
    square += middle * middle * (now - before);
    before = now;
  }
  EXPECT_NEAR(mass, 1, 1e-6);
  return {mean, square - mean * mean};
}

TEST(SteadyLoad, ResponsesAreSumsInSeriesAndTheGreatestInParallel) {
  const auto pages = SteadyPages();
  SteadyLoad steady(pages);
  // Computing in ms, calls a request, and mean squares with their own spread.
  EXPECT_NEAR(steady.demand_s()[1], 0.025, 1e-12);
  EXPECT_NEAR(steady.demand_s()[2], 0.045, 1e-12);
  EXPECT_NEAR(steady.calls()[2], 1.75, 1e-12);
  EXPECT_NEAR(steady.calls()[3], 0.5, 1e-12);
  const std::vector<int> replicas = {1, 2, 3, 2};
  EXPECT_NEAR(steady.CapacityPerS(replicas), 2 / 0.03, 1e-9);
  const double rate = 40;
  const auto wait_of = [&](double calls, double mean_s, double square_s2, int pods, int slots) {
    const Wait wait = AllenCunneenQueue({rate * calls / pods, 1 / mean_s, slots}, 1,
                                        square_s2 / (mean_s * mean_s) - 1)
                          .wait;
    return MeanAndVariance{wait.mean_s(), wait.variance_s2()};
  };
  const MeanAndVariance web = wait_of(1, 0.025, 1.5 * (0.75 * 4e-4 + 0.25 * 16e-4), 2, 2);
  const MeanAndVariance db = wait_of(1.75, 0.18 / 7, 3 * (3 * 1e-4 + 3 * 9e-4 + 36e-4) / 7, 3, 1);
  const MeanAndVariance search = wait_of(0.5, 0.06, 1.8 * (25e-4 + 49e-4) / 2, 2, 1);
  const auto call = [](const MeanAndVariance& wait, double service_s, double scv) {
    return MeanAndVariance{0.002 + wait.mean + service_s,
                           wait.variance + scv * service_s * service_s};
  };
  const auto sum = [](const MeanAndVariance& a, const MeanAndVariance& b) {
    return MeanAndVariance{a.mean + b.mean, a.variance + b.variance};
  };
  const MeanAndVariance a = sum(call(web, 0.02, 0.5), sum(call(db, 0.01, 2), call(db, 0.03, 2)));
  // The greatest of three: of the first two taken as normal, and the third.
  const MeanAndVariance b = sum(
      call(web, 0.04, 0.5),
      GreaterOf(GreaterOf(call(db, 0.06, 2), call(search, 0.05, 0.8)), call(search, 0.07, 0.8)));
  EXPECT_NEAR(steady.LateShare(replicas, rate),
              0.75 * LateOf(a.mean, a.variance, 0.09) + 0.25 * LateOf(b.mean, b.variance, 0.13),
              1e-5);
}

// Without any spread the greatest is the greatest mean.
TEST(SteadyLoad, OfConstantTimesTheLongestCounts) {
  auto pages = SteadyPages();
  for (ServedWorkload& one : pages->workloads) one.service = ServiceLaw::OfScv(0);
  auto graph = std::make_shared<CallGraph>(*pages->calls);
  graph->endpoints[0].qos_ms = 60 + 3 * 2 + 0.001;   // Just in time: 20 + 10 + 30.
  graph->endpoints[1].qos_ms = 110 + 2 * 2 + 0.001;  // 40 + the longest of 60, 50 and 70.
  pages->calls = graph;
  EXPECT_EQ(SteadyLoad(pages).LateShare(std::vector<int>{1, 1, 1, 1}, 0), 0);
  graph = std::make_shared<CallGraph>(*graph);
  graph->endpoints[1].qos_ms -= 0.002;
  pages->calls = graph;
  EXPECT_EQ(SteadyLoad(pages).LateShare(std::vector<int>{1, 1, 1, 1}, 0), 0.25);
  graph = std::make_shared<CallGraph>(*graph);
  graph->endpoints[0].qos_ms -= 0.002;
  pages->calls = graph;
  EXPECT_EQ(SteadyLoad(pages).LateShare(std::vector<int>{1, 1, 1, 1}, 0), 1);
}

TEST(SteadyLoad, WhoIsNotScaledOrNotCalledBoundsNothing) {
  auto station = SteadyStation({.name = "pods"}, 120);
  station->workloads.push_back({.name = "idle"});
  SteadyLoad steady(station);
  EXPECT_DOUBLE_EQ(steady.CapacityPerS(std::vector<int>{0, 2, 0}), 40);
  station = std::make_shared<ServedApplication>(*station);
  station->workloads[1].scaled = false;
  EXPECT_EQ(SteadyLoad(station).CapacityPerS(std::vector<int>{0, 2, 0}),
            std::numeric_limits<double>::infinity());
  EXPECT_NEAR(SteadyLoad(station).LateShare(std::vector<int>{0, 2, 0}, 100),
              LateOf(0.05, 0.0025, 0.12), 1e-12);
}

}  // namespace
}  // namespace rudderfish
