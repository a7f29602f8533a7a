// SPDX-License-Identifier: Apache-2.0
#include "model/capacity_ladder.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(SteadyLoad, EverybodyIsLateBeyondCapacity) {
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

}  // namespace
}  // namespace rudderfish
