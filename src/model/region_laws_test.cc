// SPDX-License-Identifier: Apache-2.0
#include "model/region_laws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/rng.h"
#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

constexpr double kDeadlineS = 0.4, kPodPerS = 20;

// Who is late among those who come in each minute, request by request: M/M/c in order of arrival,
// clients giving up who would wait longer than 8 s.
std::vector<double> LateByEvents(int servers, const std::vector<double>& per_s, uint64_t seed) {
  Rng rng(seed);
  const auto exponential = [&](double rate) { return -std::log1p(-rng.Uniform()) / rate; };
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int i = 0; i < servers; ++i) free_at.push(0);
  std::vector<double> late;
  double now = 0;
  for (size_t minute = 0; minute < per_s.size(); ++minute) {
    double came = 0, were_late = 0;
    for (now += exponential(per_s[minute]); now < 60.0 * static_cast<double>(minute + 1);
         now += exponential(per_s[minute])) {
      ++came;
      const double begin = std::max(now, free_at.top()), service = exponential(kPodPerS);
      if (begin - now > 8) {
        ++were_late;
        continue;
      }
      free_at.pop();
      free_at.push(begin + service);
      were_late += begin + service - now > kDeadlineS ? 1 : 0;
    }
    now = 60.0 * static_cast<double>(minute + 1);
    late.push_back(were_late / came);
  }
  return late;
}

TEST(RegionQueue, IsLateAsOftenAsRequestsOneByOne) {
  const auto laws = testing::LawsOf(testing::SmallRegions());
  const int nodes = 12;  // 48 pods, 960 requests per second.
  const std::vector<double> per_s = {576, 768, 880, 1104, 1104, 864, 576, 576};
  const std::vector<double> events = LateByEvents(4 * nodes, per_s, 3);
  double backlog = 0;
  for (size_t minute = 0; minute < per_s.size(); ++minute) {
    const QueueInterval queue = RunQueue(*laws, nodes, per_s[minute], 60, &backlog);
    const double late = queue.LateShare(kPodPerS, kDeadlineS, std::exp(-kPodPerS * kDeadlineS));
    EXPECT_NEAR(late, events[minute], 0.02) << minute;
  }
}

TEST(RegionQueue, KeepsEveryRequest) {
  const auto laws = testing::LawsOf(testing::SmallRegions());
  double backlog = 0;
  const QueueInterval over = RunQueue(*laws, 1, 100, 60, &backlog);  // 80 are served.
  EXPECT_DOUBLE_EQ(backlog, 8 * 80);
  EXPECT_NEAR(over.gave_up * 100 * 60, 20 * 60 - 8 * 80, 1e-9);
  RunQueue(*laws, 1, 76, 60, &backlog);
  EXPECT_NEAR(backlog, 8 * 80 - 4 * 60, 1e-9);
  EXPECT_EQ(RunQueue(*laws, 0, 10, 60, &backlog).gave_up, 1);
  EXPECT_EQ(backlog, 0);
}

TEST(RegionLaws, CongestionGrowsWithLoadAndEndsWhereAllAreLate) {
  const auto laws = testing::LawsOf(testing::SmallRegions());
  for (const int nodes : {1, 10, 40}) {
    double last = 0;
    for (double use = 0; use < 1.5; use += 0.01) {
      const double price = laws->CongestionOf(nodes, use * nodes * 80);
      EXPECT_GE(price, last - 1e-9) << nodes << " " << use;
      last = price;
    }
    EXPECT_DOUBLE_EQ(last, 20 + 8);
  }
}

TEST(RegionLaws, ASecondInAQueueHasAPriceOfItsOwn) {
  RegionNetwork network = testing::SmallRegions();
  const auto laws = testing::LawsOf(network);
  network.objective.queue_per_s = 3 * network.objective.wait_per_s;
  network.objective.late = 0;
  const auto priced = testing::LawsOf(network);
  network.objective.queue_per_s = 0;
  const auto plain = testing::LawsOf(network);
  // Where nothing is late, waiting alone counts, four times.
  for (const double per_s : {100.0, 300.0, 390.0}) {
    EXPECT_NEAR(priced->QueueCost(5, per_s), 4 * plain->QueueCost(5, per_s), 1e-9);
    EXPECT_NEAR(priced->CongestionOf(5, per_s), 4 * plain->CongestionOf(5, per_s), 1e-9);
  }
  EXPECT_EQ(priced->DistanceCost(0, 1), laws->DistanceCost(0, 1)) << "no queue on the way";
}

TEST(RegionLaws, OtherPricesChangeNothingButWhatTheyPrice) {
  const RegionNetwork network = testing::SmallRegions();
  const auto laws = testing::LawsOf(network);
  const RegionLaws free(*laws, {.late = 0.0, .carbon_per_kg = 0.0});
  EXPECT_LT(free.CongestionOf(5, 300), laws->CongestionOf(5, 300));
  EXPECT_LT(free.ServingCost(0, 0.6, 0.15, 300), laws->ServingCost(0, 0.6, 0.15, 300));
  EXPECT_EQ(free.unit(), laws->unit());
  EXPECT_EQ(free.DistanceCost(0, 1), laws->DistanceCost(0, 1));
  const RegionLaws same(*laws, {});
  EXPECT_EQ(same.CongestionOf(5, 300), laws->CongestionOf(5, 300));
  EXPECT_EQ(same.network(), laws->network());
}

TEST(RegionLaws, PricesOneRequestInItsUnit) {
  const auto laws = testing::LawsOf(testing::SmallRegions());
  // An on-demand node of the mean price at 60 % is the unit; carbon comes on top.
  EXPECT_NEAR(laws->ServingCost(0, 0.6, 0.15, 0), 1, 1e-12);
  const double kg = (10 + 5 * 0.6) / 1000 * 0.3;  // In an hour.
  EXPECT_NEAR(laws->ServingCost(0, 0.6, 0.15, 300), 1 + kg * 6.5 / 0.15, 1e-12);
  EXPECT_NEAR(laws->DistanceCost(0, 1), 0.02 * 8000e-9 / laws->unit() + 0.02, 1e-12);
}

}  // namespace
}  // namespace rudderfish
