// SPDX-License-Identifier: Apache-2.0
#include "task/scaling_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "model/forecast.h"

namespace rudderfish {
namespace {

constexpr double kIntervalS = 15;

// One workload of 1 to 10 pods, each of which serves 10 requests a second.
std::shared_ptr<const CapacityLadder> TenPods() {
  static const auto ladder = std::make_shared<const CapacityLadder>(
      std::make_shared<const ServedApplication>(
          SingleStation({.name = "pods", .replicas_min = 1, .replicas_max = 10}, 100)),
      0.01);
  return ladder;
}

struct Feed {
  explicit Feed(double ready_s = 20) : history(TenPods(), kIntervalS, ready_s) {
    See(0, false);  // Before the first sample.
  }
  void See(double rate, bool has_samples = true) {
    const int replicas[] = {0, asked}, serving[] = {0, ready};
    history.Observe({.has_samples = has_samples,
                     .requests_per_s = rate,
                     .replicas = replicas,
                     .ready = serving});
  }

  int asked = 1, ready = 1;
  ScalingHistory history;
};

TEST(ScalingHistory, LooksAsFarAheadAsPodsTakeAndServe) {
  EXPECT_EQ(Feed(20).history.lead_steps(), 2 + 2);
  EXPECT_EQ(Feed(0).history.lead_steps(), 2);
  EXPECT_EQ(Feed(30).history.lead_steps(), 2 + 2);
  EXPECT_EQ(Feed(1e6).history.lead_steps(), 24);
}

TEST(ScalingHistory, WindowsHoldTheirMinutesAndNoMore) {
  // 20, 40 and 120 samples; of those before, one is higher and one lower than any.
  const std::map<int, double> special = {{5, 90}, {8, 1}, {20, 70}, {100, 50}, {120, 30}, {125, 4}};
  Feed feed;
  for (int round = 0; round < 3; ++round) {  // Past the end of what is kept.
    for (int i = 1; i <= 130; ++i) feed.See(special.contains(i) ? special.at(i) : 10);
    EXPECT_EQ(feed.history.peak_5m_per_s(), 30) << round;
    EXPECT_EQ(feed.history.peak_10m_per_s(), 50) << round;
    EXPECT_EQ(feed.history.peak_30m_per_s(), 70) << round;
    EXPECT_EQ(feed.history.least_30m_per_s(), 4) << round;
  }
  EXPECT_EQ(feed.history.samples(), 390);
  feed.history.Start();
  EXPECT_FALSE(feed.history.has_samples());
  feed.See(7);
  EXPECT_EQ(feed.history.peak_30m_per_s(), 7);
  EXPECT_EQ(feed.history.least_30m_per_s(), 7);
}

TEST(ScalingHistory, CountsHowOftenTheRateRoseThroughItsMiddle) {
  Feed feed;
  for (const double rate : {1, 1, 9, 9, 1, 1, 1, 9, 1, 1}) feed.See(rate);
  EXPECT_EQ(feed.history.rises(), 2);
  EXPECT_DOUBLE_EQ(feed.history.high_share(), 0.3);
  Feed falling;
  for (const double rate : {9, 1, 1, 1}) falling.See(rate);
  EXPECT_EQ(falling.history.rises(), 0);
  EXPECT_DOUBLE_EQ(falling.history.high_share(), 0.25);
}

TEST(ScalingHistory, WhatIsNotServedWaits) {
  Feed feed;
  EXPECT_EQ(feed.history.capacity_per_s(), 10);
  feed.See(25);
  EXPECT_DOUBLE_EQ(feed.history.backlog_requests(), 15 * kIntervalS);
  feed.ready = feed.asked = 4;  // Since just now: they have not served yet.
  feed.See(10);
  EXPECT_DOUBLE_EQ(feed.history.backlog_requests(), 15 * kIntervalS);
  feed.See(30);
  EXPECT_DOUBLE_EQ(feed.history.backlog_requests(), 5 * kIntervalS);
  feed.See(30);
  EXPECT_DOUBLE_EQ(feed.history.backlog_requests(), 0);
}

TEST(ScalingHistory, KnowsWhatIsAskedForAndWhenThatChanged) {
  Feed feed;
  feed.asked = 7;
  feed.ready = 4;
  feed.See(5);
  EXPECT_EQ(feed.history.rung_asked(), 6);
  EXPECT_EQ(feed.history.rung_ready(), 3);
  feed.history.Decided(6, 8);
  EXPECT_EQ(feed.history.steps_since_up(), 0);
  feed.See(5);
  feed.history.Decided(8, 8);
  feed.See(5);
  feed.history.Decided(8, 5);
  feed.See(5);
  EXPECT_EQ(feed.history.steps_since_up(), 3);
  EXPECT_EQ(feed.history.steps_since_down(), 1);
  EXPECT_EQ(feed.history.steps_since_change(), 1);
}

TEST(ScalingHistory, ErrorsAreAssumedUntilTheyAreKnown) {
  Feed feed;
  feed.See(100);
  EXPECT_DOUBLE_EQ(feed.history.near_per_s(), 100);
  EXPECT_DOUBLE_EQ(feed.history.far_per_s(), 100);
  const double counting = 1 / (100 * kIntervalS);  // Relative, of as many as come in an interval.
  const double assumed = std::sqrt(0.05 * 0.05 + counting);
  // One of 24 samples is known, and says nothing yet; of the normal law at a tenth.
  EXPECT_NEAR(feed.history.error(0), 23.0 / 24 * -1.2816 * assumed, 1e-12);
  EXPECT_NEAR(feed.history.error(1), 0, 1e-12);
  EXPECT_NEAR(feed.history.error(4), 23.0 / 24 * 1.8808 * assumed, 1e-12);
  for (int i = 0; i < 40; ++i) feed.See(100);
  EXPECT_NEAR(feed.history.error(0), 0, 1e-9);
  EXPECT_NEAR(feed.history.error(3), 1.2816 * std::sqrt(counting), 1e-9);
  // A leap that was not foreseen is among the errors.
  for (int i = 0; i < 4; ++i) feed.See(300);
  EXPECT_GT(feed.history.error(4), std::log(1.5));
}

// All that was ever seen is kept, and looked through each time.
TEST(ScalingHistory, IsWhatAllRatesSoFarSay) {
  constexpr double kShares[] = {0.1, 0.5, 0.75, 0.9, 0.97};
  constexpr double kNormals[] = {-1.2816, 0, 0.6745, 1.2816, 1.8808};  // Quantiles of these.
  for (const double interval_s : {15.0, 60.0, 5.0, 3600.0}) {
    SCOPED_TRACE(interval_s);
    ScalingHistory history(TenPods(), interval_s, 25);
    const int lead = std::min(24, static_cast<int>(std::ceil(25 / interval_s)) + 2);
    ASSERT_EQ(history.lead_steps(), lead);
    Forecast forecast({.horizon = lead});
    Rng rng(static_cast<uint64_t>(interval_s));
    std::vector<double> rates;
    double rate = 20, capacity = 0, backlog = 0;
    for (int step = 0; step < 300; ++step) {
      rate = rng.Below(9) == 0 ? rng.Uniform(0, 120) : rate * rng.Uniform(0.9, 1.1);
      if (rng.Below(40) == 0) rate = 0;
      const int pods[] = {0, rng.Between(1, 10)};
      history.Observe(
          {.has_samples = true, .requests_per_s = rate, .replicas = pods, .ready = pods});
      forecast.Observe(rate);
      rates.push_back(rate);
      // Of two intervals the smaller capacity: pods that have just come have not served yet.
      backlog = std::max(0.0, backlog + (rate - std::min(capacity, 10.0 * pods[1])) * interval_s);
      capacity = 10.0 * pods[1];
      ASSERT_NEAR(history.backlog_requests(), backlog, 1e-6 * (1 + backlog));
      ASSERT_EQ(history.capacity_per_s(), capacity);

      const auto window = [&](double seconds) {
        const auto wanted = std::max<int64_t>(1, std::llround(seconds / interval_s));
        const auto count = std::min({wanted, static_cast<int64_t>(rates.size()), int64_t{128}});
        return std::vector<double>(rates.end() - count, rates.end());
      };
      const auto most = [](const std::vector<double>& of) {
        return *std::max_element(of.begin(), of.end());
      };
      const std::vector<double> last = window(1800);
      ASSERT_EQ(history.peak_5m_per_s(), most(window(300)));
      ASSERT_EQ(history.peak_10m_per_s(), most(window(600)));
      ASSERT_EQ(history.peak_30m_per_s(), most(last));
      const double least = *std::min_element(last.begin(), last.end());
      ASSERT_EQ(history.least_30m_per_s(), least);
      double above = 0, rises = 0;
      for (size_t i = 0; i < last.size(); ++i) {
        const double middle = (most(last) + least) / 2;
        above += last[i] > middle ? 1 : 0;
        rises += i > 0 && last[i] > middle && last[i - 1] <= middle ? 1 : 0;
      }
      ASSERT_DOUBLE_EQ(history.high_share(), above / static_cast<double>(last.size()));
      ASSERT_EQ(history.rises(), rises);

      ASSERT_EQ(history.near_per_s(), forecast.At(std::min(2, lead)));
      ASSERT_EQ(history.far_per_s(), forecast.At(lead));
      const double far = std::max(0.05, forecast.At(lead));
      const double counting = 1 / std::max(1.0, far * interval_s);
      const double known = std::min(1.0, static_cast<double>(rates.size()) / 24);
      for (int s = 0; s < kScenarios; ++s) {
        const double seen =
            std::log(std::max(0.05, far + forecast.ErrorQuantile(lead, kShares[s])) / far);
        double error = known * seen + (1 - known) * kNormals[s] * std::sqrt(0.05 * 0.05 + counting);
        if (s > 1) error = std::max(error, kNormals[s] * std::sqrt(counting));
        ASSERT_NEAR(history.error(s), error, 1e-12) << s;
      }
    }
  }
}

TEST(ScalingHistory, AnUndecidedOneChangedLongAgo) {
  Feed feed;
  EXPECT_EQ(feed.history.steps_since_up(), 1001);
  EXPECT_EQ(feed.history.steps_since_down(), 1001);
  feed.history.Decided(4, 4);
  EXPECT_EQ(feed.history.steps_since_change(), 1001);
  feed.history.Decided(4, 3);
  EXPECT_EQ(feed.history.steps_since_change(), 0);
  EXPECT_EQ(feed.history.steps_since_up(), 1001);
  EXPECT_FALSE(feed.history.has_samples());
  EXPECT_EQ(feed.history.near_per_s(), 0);
  EXPECT_EQ(feed.history.backlog_requests(), 0);
  EXPECT_EQ(feed.history.rises(), 0);
}

}  // namespace
}  // namespace rudderfish
