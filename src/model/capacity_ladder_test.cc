// SPDX-License-Identifier: Apache-2.0
#include "model/capacity_ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "model/load_model.h"
#include "model/steady_load.h"

namespace rudderfish {
namespace {

// A page calls web, then db twice, then two more at once.
std::shared_ptr<const ServedApplication> Shop() {
  auto graph = std::make_shared<CallGraph>();
  graph->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 3},
                  {.workload = 2, .caller = 1, .first_group = 3, .last_group = 3},
                  {.workload = 2, .caller = 1, .first_group = 3, .last_group = 3},
                  {.workload = 3, .caller = 1, .first_group = 3, .last_group = 3}};
  graph->groups = {{0, 1}, {1, 3}, {3, 4}};
  graph->sequence = {1, 2, 3, 4};
  graph->endpoints = {{.name = "page", .root = 0, .end = 5, .rate_per_second = 1, .qos_ms = 400}};
  auto shop = std::make_shared<ServedApplication>();
  shop->calls = graph;
  const auto workload = [](const char* name, int most, int64_t cpu) {
    return ServedWorkload{.name = name,
                          .slots = 2,
                          .service = ServiceLaw::OfScv(0.5),
                          .replicas = 2,
                          .replicas_max = most,
                          .start_low_s = 10,
                          .start_high_s = 20,
                          .cpu_millis = cpu};
  };
  shop->workloads = {{.name = "client", .replicas = 1, .scaled = false},
                     workload("web", 8, 200),
                     workload("db", 6, 100),
                     workload("search", 5, 400)};
  shop->service_ms = {0, 60, 10, 15, 30};
  return shop;
}

TEST(SteadyLoad, LateShareIsThatOfTheModelOfLoadInEquilibrium) {
  const auto shop = Shop();
  SteadyLoad steady(shop);
  for (const double rate : {20.0, 40.0, 50.0}) {
    LoadModel model(shop);
    for (int i = 0; i < 400; ++i) model.Advance(1, rate);
    const LoadOutcome before = model.outcome();
    for (int i = 0; i < 100; ++i) model.Advance(1, rate);
    const double late =
        (model.outcome().late - before.late) / (model.outcome().requests - before.requests);
    const double expected = steady.LateShare(std::vector<int>{1, 2, 2, 2}, rate);
    EXPECT_NEAR(expected, late, 0.01 + 0.25 * late) << rate;
  }
}

TEST(SteadyLoad, AllRequestsAreLateBeyondCapacity) {
  SteadyLoad steady(Shop());
  const std::vector<int> replicas = {1, 2, 2, 2};
  EXPECT_NEAR(steady.CapacityPerS(replicas), 2 * 2 / 0.06, 1e-9);
  EXPECT_EQ(steady.LateShare(replicas, 67), 1);
  EXPECT_LT(steady.LateShare(replicas, 10), 0.01);
}

TEST(CapacityLadder, GrowsByOnePodAndServesEverMore) {
  const CapacityLadder ladder(Shop(), 0.01);
  ASSERT_EQ(ladder.rungs(), 8 + 6 + 5 - 3 + 1);
  for (int rung = 1; rung < ladder.rungs(); ++rung) {
    int more = 0;
    for (int w = 0; w < 4; ++w) {
      const int change = ladder.Replicas(rung)[w] - ladder.Replicas(rung - 1)[w];
      EXPECT_GE(change, 0);
      more += change;
    }
    EXPECT_EQ(more, 1);
    EXPECT_GE(ladder.ServesPerS(rung), ladder.ServesPerS(rung - 1));
    EXPECT_LE(ladder.ServesPerS(rung), ladder.CapacityPerS(rung));
  }
  const std::span<const int> highest = ladder.Replicas(ladder.rungs() - 1);
  EXPECT_EQ(std::vector<int>(highest.begin(), highest.end()), (std::vector<int>{1, 8, 6, 5}));
}

TEST(CapacityLadder, ARungServesItsRateWithinTheLimitAndNoMore) {
  const auto shop = Shop();
  const CapacityLadder ladder(shop, 0.01);
  SteadyLoad steady(shop);
  for (int rung = 0; rung < ladder.rungs(); rung += 3) {
    const double rate = ladder.ServesPerS(rung);
    const double least = steady.LateShare(ladder.Replicas(ladder.rungs() - 1), 1e-3);
    EXPECT_LE(steady.LateShare(ladder.Replicas(rung), rate), least + 0.0101 * (1 - least));
    EXPECT_EQ(ladder.RungFor(rate), rung);
    EXPECT_NEAR(ladder.LateShare(rung, rate), 0.01, 0.004);
    EXPECT_EQ(ladder.LateShare(rung, 1.1 * ladder.CapacityPerS(rung)), 1);
  }
  EXPECT_EQ(ladder.RungFor(0), 0);
  EXPECT_EQ(ladder.RungFor(1e9), ladder.rungs() - 1);
}

TEST(CapacityLadder, RungWithinIsTheHighestOfWhichAllPodsAreThere) {
  const CapacityLadder ladder(Shop(), 0.01);
  for (int rung = 0; rung < ladder.rungs(); ++rung) {
    const std::span<const int> exact = ladder.Replicas(rung);
    std::vector<int> replicas(exact.begin(), exact.end());
    replicas[0] = 0;  // The client is not scaled.
    EXPECT_EQ(ladder.RungWithin(replicas), rung);
    if (rung == 0) continue;
    for (int w = 1; w < 4; ++w) {
      --replicas[w];
      EXPECT_LT(ladder.RungWithin(replicas), std::max(rung, 1));
      ++replicas[w];
    }
  }
  EXPECT_EQ(ladder.RungWithin(std::vector<int>{0, 0, 1, 1}), 0);
}

TEST(CapacityLadder, OfTenTimesSlowerPodsStillHasARungForEveryRate) {
  ServedApplication slow = *Shop();
  for (double& one : slow.service_ms) one *= 10;  // Later than the qos, even alone.
  const CapacityLadder ladder(std::make_shared<const ServedApplication>(slow), 0.01);
  EXPECT_GT(ladder.ServesPerS(ladder.rungs() - 1), 0);
  EXPECT_LT(ladder.RungFor(0.5), ladder.rungs() - 1);
}

TEST(CapacityLadder, TheClientNeedNotStandFirst) {
  ServedApplication shop = *Shop();
  std::swap(shop.workloads[0], shop.workloads[3]);  // The client and search.
  auto graph = std::make_shared<CallGraph>(*shop.calls);
  for (Call& call : graph->calls) {
    if (call.workload == 0 || call.workload == 3) call.workload = 3 - call.workload;
  }
  shop.calls = graph;
  const CapacityLadder plain(Shop(), 0.01),
      moved(std::make_shared<const ServedApplication>(shop), 0.01);
  ASSERT_EQ(plain.rungs(), moved.rungs());
  for (int rung = 0; rung < plain.rungs(); ++rung) {
    constexpr int kAt[] = {3, 1, 2, 0};
    for (int w = 0; w < 4; ++w) EXPECT_EQ(plain.Replicas(rung)[w], moved.Replicas(rung)[kAt[w]]);
    EXPECT_NEAR(plain.ServesPerS(rung), moved.ServesPerS(rung), 1e-9);
    EXPECT_NEAR(plain.CapacityPerS(rung), moved.CapacityPerS(rung), 1e-9);
    EXPECT_NEAR(plain.cores(rung), moved.cores(rung), 1e-12);
    EXPECT_EQ(plain.pods(rung), moved.pods(rung));
    EXPECT_NEAR(plain.LateShare(rung, 60), moved.LateShare(rung, 60), 1e-6);
    EXPECT_EQ(moved.RungWithin(moved.Replicas(rung)), rung);
  }
}

// 32 utilisations from 0.3 to 0.99, straight between them; from there on straight to 1 at 1.03.
TEST(CapacityLadder, LateShareIsThatOfTheSteadyLoadBeyondWhatNothingMends) {
  for (const double slowness :
       {1.0, 4.0}) {  // Of which the latter is late now and then, even alone.
    ServedApplication slow = *Shop();
    for (double& one : slow.service_ms) one *= slowness;
    const auto shop = std::make_shared<const ServedApplication>(slow);
    const CapacityLadder ladder(shop, 0.01);
    SteadyLoad steady(shop);
    const double least = steady.LateShare(ladder.Replicas(ladder.rungs() - 1), 1e-3);
    for (int rung = 0; rung < ladder.rungs(); rung += 4) {
      const double capacity = ladder.CapacityPerS(rung);
      EXPECT_NEAR(capacity, steady.CapacityPerS(ladder.Replicas(rung)), 1e-9);
      const auto late = [&](double use) {
        return std::max(0.0, steady.LateShare(ladder.Replicas(rung), use * capacity) - least);
      };
      for (int i = 0; i < 32; ++i) {
        const double use = 0.3 + 0.69 * i / 31;
        EXPECT_NEAR(ladder.LateShare(rung, use * capacity), late(use), 1e-6) << i;
        if (i == 31) continue;
        const double next = 0.3 + 0.69 * (i + 1) / 31;
        EXPECT_NEAR(ladder.LateShare(rung, (0.75 * use + 0.25 * next) * capacity),
                    0.75 * late(use) + 0.25 * late(next), 1e-6);
      }
      EXPECT_NEAR(ladder.LateShare(rung, 0.1 * capacity), late(0.3), 1e-6);
      EXPECT_NEAR(ladder.LateShare(rung, 1.01 * capacity), (late(0.99) + 1) / 2, 1e-6);
      EXPECT_EQ(ladder.LateShare(rung, 1.03 * capacity), 1);
    }
  }
}

// One pod that is late now and then, even when idle: idle means one request in 1000 s.
TEST(CapacityLadder, WhatNothingMendsIsWhatIsLateAtAThousandthPerSecond) {
  auto station =
      std::make_shared<ServedApplication>(SingleStation({.name = "pods", .replicas_max = 1}, 100));
  auto graph = std::make_shared<CallGraph>(*station->calls);
  graph->endpoints[0].qos_ms = 150;
  station->calls = graph;
  const CapacityLadder ladder(station, 0.01);
  ASSERT_EQ(ladder.rungs(), 1);
  SteadyLoad steady(station);
  const std::vector<int> one = {0, 1};
  EXPECT_NEAR(ladder.LateShare(0, 3), steady.LateShare(one, 3) - steady.LateShare(one, 1e-3), 1e-6);
}

// The next pod is of the workload where it saves the most late requests for its cores, at a
// twentieth more than is served now.
TEST(CapacityLadder, APodMoreGoesWhereItSavesMost) {
  const auto shop = Shop();
  const CapacityLadder ladder(shop, 0.01);
  SteadyLoad steady(shop);
  constexpr double kCores[] = {0, 0.2, 0.1, 0.4};
  constexpr int kMost[] = {1, 8, 6, 5};
  int told_apart = 0;
  for (int rung = 0; rung + 1 < ladder.rungs(); ++rung) {
    const std::span<const int> here = ladder.Replicas(rung);
    const double rate = 1.05 * ladder.ServesPerS(rung);
    int best = 0, second_best = 0;
    double saved[4] = {};
    for (int w = 1; w < 4; ++w) {
      if (here[w] == kMost[w]) continue;
      std::vector<int> more(here.begin(), here.end());
      ++more[w];
      saved[w] = (steady.LateShare(here, rate) - steady.LateShare(more, rate)) / kCores[w];
      if (saved[w] > saved[best]) best = w;
    }
    for (int w = 1; w < 4; ++w)
      second_best = w != best && saved[w] > saved[second_best] ? w : second_best;
    if (saved[best] < 1e-6 || saved[best] - saved[second_best] < 1e-6) continue;
    EXPECT_EQ(ladder.Replicas(rung + 1)[best], here[best] + 1) << rung;
    ++told_apart;
  }
  EXPECT_GT(told_apart, 8);
}

TEST(CapacityLadder, CountsPodsAndCoresOfWhatIsScaled) {
  const CapacityLadder ladder(Shop(), 0.01);
  for (int rung = 0; rung < ladder.rungs(); ++rung) {
    const std::span<const int> pods = ladder.Replicas(rung);
    EXPECT_EQ(ladder.pods(rung), pods[1] + pods[2] + pods[3]);
    EXPECT_NEAR(ladder.cores(rung), 0.2 * pods[1] + 0.1 * pods[2] + 0.4 * pods[3], 1e-12);
  }
  EXPECT_EQ(ladder.workloads(), 4);
}

TEST(CapacityLadder, TheHighestWithinAQuotaIsExact) {
  const CapacityLadder ladder(Shop(), 0.01);
  const int highest = ladder.rungs() - 1;
  EXPECT_EQ(ladder.HighestWithin({}), highest);
  for (int rung = 0; rung <= highest; ++rung) {
    const int64_t cpu_millis = std::llround(1000 * ladder.cores(rung));
    EXPECT_EQ(ladder.HighestWithin({.cpu_millis_max = cpu_millis}), rung);
    EXPECT_EQ(ladder.HighestWithin({.cpu_millis_max = cpu_millis - 1}), std::max(0, rung - 1));
    EXPECT_EQ(ladder.HighestWithin({.pods_max = ladder.pods(rung)}), rung);
  }
  EXPECT_EQ(ladder.HighestWithin({.pods_max = 0}), 0);
}

// A workload that is not called, or whose bounds leave no choice, stays as it is.
TEST(CapacityLadder, WhatCannotGrowStaysOnEveryRung) {
  ServedApplication shop = *Shop();
  shop.workloads.push_back({.name = "idle", .replicas = 7, .replicas_max = 20});
  shop.workloads[3].replicas_min = shop.workloads[3].replicas_max = 3;
  shop.workloads[2].replicas_min = 0;
  const CapacityLadder ladder(std::make_shared<const ServedApplication>(shop), 0.01);
  for (int rung = 0; rung < ladder.rungs(); ++rung) {
    EXPECT_EQ(ladder.Replicas(rung)[0], 1);
    EXPECT_EQ(ladder.Replicas(rung)[3], 3);
    EXPECT_EQ(ladder.Replicas(rung)[4], 7);
  }
  EXPECT_EQ(ladder.Replicas(0)[2], 1);  // Without it no request is served.
  EXPECT_EQ(ladder.rungs(), 8 + 6 - 2 + 1);
}

TEST(CapacityLadder, WithoutCallsItServesAnyRate) {
  const CapacityLadder ladder(std::make_shared<const ServedApplication>(SingleStation(
                                  {.name = "pods", .replicas_max = 2, .scaled = false}, 10)),
                              0.01);
  EXPECT_EQ(ladder.rungs(), 1);
  EXPECT_EQ(ladder.CapacityPerS(0), 1e12);
  EXPECT_EQ(ladder.ServesPerS(0), 1e12);
}

// Who asks for no CPU is not had for nothing, and for as much as who asks for a thousandth.
TEST(CapacityLadder, APodCountsForAThousandthOfACoreAtLeast) {
  for (const int64_t cpu_millis : {0, 1, 2}) {
    const CapacityLadder ladder(std::make_shared<const ServedApplication>(
                                    SingleStation({.name = "pods", .cpu_millis = cpu_millis}, 10)),
                                0.01);
    EXPECT_DOUBLE_EQ(ladder.cores(2), 3 * (cpu_millis == 2 ? 0.002 : 0.001));
  }
}

}  // namespace
}  // namespace rudderfish
