// SPDX-License-Identifier: Apache-2.0
#include "scenario/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace rudderfish {
namespace {

constexpr SimTime kTrafficMinute{60'000'000'000};
constexpr SimTime kTrafficHour = 60 * kTrafficMinute;

Traffic TrafficFrom(Traffic::Shape shape, double low, double high) {
  return {.shape = shape, .low_per_s = low, .high_per_s = high};
}

double LeastOf(const RateCurve& curve) {
  return *std::min_element(curve.per_s.begin(), curve.per_s.end());
}

TEST(Traffic, DiurnalCurvesGoOnceFromLowToHigh) {
  Traffic traffic = TrafficFrom(Traffic::Shape::kDiurnal, 20, 80);
  traffic.period = kTrafficHour;
  const RateCurve curve = DrawCurve(traffic, EpisodeUse::kLearning, kTrafficHour, 1);
  EXPECT_NEAR(curve.Peak(), 80, .01);
  EXPECT_NEAR(LeastOf(curve), 20, .01);
  EXPECT_NEAR(curve.MeanOf(0, 3600), 50, .05);
  EXPECT_NE(DrawCurve(traffic, EpisodeUse::kLearning, kTrafficHour, 2).AtS(0), curve.AtS(0));
  EXPECT_EQ(DrawCurve(traffic, EpisodeUse::kLearning, kTrafficHour, 1), curve);
}

TEST(Sessions, SteadyLoadsStayAsTheyAre) {
  const RateCurve curve =
      WithSessions(RateCurve::Steady(60), {.requests = 12, .think = SimTime(7'000'000'000)});
  EXPECT_EQ(curve.per_s.size(), 1U);
  EXPECT_NEAR(curve.per_s[0], 60, 1e-9);
  EXPECT_NEAR(curve.users.starts_per_s[0], 5, 1e-9);
  EXPECT_NEAR(curve.users.again, 11. / 12, 1e-12);
  EXPECT_EQ(curve.users.think_s, 7);
  EXPECT_NEAR(curve.users.thinking, 7 * 55, 1e-9);  // 55 of 60 answers are thought about.
  EXPECT_EQ(WithSessions(RateCurve::Steady(60), {}), RateCurve::Steady(60));
  EXPECT_EQ(WithSessions(RateCurve::Steady(60), {.requests = 1, .think = kTrafficMinute}),
            RateCurve::Steady(60));
}

TEST(Sessions, RequestsFollowAChangeAsLateAsUsersThink) {
  RateCurve shape;
  shape.per_s.assign(2001, 10);
  std::fill(shape.per_s.begin() + 100, shape.per_s.end(), 40);
  const SessionLaw law{.requests = 5, .think = SimTime(20'000'000'000)};
  const RateCurve curve = WithSessions(shape, law);
  EXPECT_NEAR(curve.per_s[0], 10, 1e-9);
  EXPECT_NEAR(curve.per_s[99], 10, 1e-9);
  // The first requests of those who come leap at once; what they ask later nears 32 of 40 with a
  // mean session of 5 x 20 s: of its 24 more, exp(-t / 100) are missing.
  for (const int t : {100, 150, 300, 1000}) {
    const double missing = 24 * std::exp(-(t - 99.5) / 100);
    EXPECT_NEAR(curve.per_s[t], 40 - missing, .02) << t;
  }
  EXPECT_NEAR(curve.per_s.back(), 40, 1e-4);
}

TEST(Traffic, RampsAreStraightBetweenTheirEnds) {
  Traffic traffic = TrafficFrom(Traffic::Shape::kRamp, 10, 40);
  traffic.begin = 10 * kTrafficMinute;
  traffic.end = 40 * kTrafficMinute;
  const RateCurve curve = DrawCurve(traffic, EpisodeUse::kLearning, kTrafficHour, 1);
  EXPECT_EQ(curve.AtS(300), 10);
  EXPECT_NEAR(curve.AtS(1500), 25, 1e-9);
  EXPECT_EQ(curve.AtS(3000), 40);
}

TEST(Traffic, FlashCrowdsComeOnceAndGo) {
  Traffic traffic = TrafficFrom(Traffic::Shape::kFlash, 10, 100);
  traffic.at = {TimeLaw::Shape::kUniform, 10 * kTrafficMinute, 40 * kTrafficMinute};
  traffic.rise = kTrafficMinute / 2;
  traffic.hold = traffic.fall = 5 * kTrafficMinute;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const RateCurve curve = DrawCurve(traffic, EpisodeUse::kLearning, kTrafficHour, seed);
    const auto high = std::count_if(curve.per_s.begin(), curve.per_s.end(),
                                    [](double rate) { return rate > 99.9; });
    EXPECT_NEAR(high, 300, 3);
    EXPECT_EQ(curve.AtS(599), 10);
    EXPECT_EQ(curve.AtS(3599), 10);
  }
}

TEST(Traffic, BurstsComeAsOftenAndLastAsLongAsTheySay) {
  Traffic traffic = TrafficFrom(Traffic::Shape::kBursty, 10, 100);
  traffic.every = {TimeLaw::Shape::kExponential, 5 * kTrafficMinute, SimTime(0)};
  traffic.lasts = TimeLaw::Constant(kTrafficMinute);
  const RateCurve curve = DrawCurve(traffic, EpisodeUse::kLearning, 200 * kTrafficHour, 1);
  EXPECT_NEAR(curve.MeanOf(0, 720'000), 10 + 90 / 6.0, 1);
}

// The shape of an earlier system fell to nothing at each hour.
TEST(Traffic, StagesNeverDropToNothing) {
  const Traffic traffic = TrafficFrom(Traffic::Shape::kStaged, .6, 700);
  double most = 0;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const RateCurve curve = DrawCurve(traffic, EpisodeUse::kLearning, 3 * kTrafficHour, seed);
    EXPECT_GE(LeastOf(curve), 100 * .6 - 1e-9);
    most = std::max(most, curve.Peak());
  }
  EXPECT_NEAR(most, 420, 1e-6);
}

}  // namespace
}  // namespace rudderfish
