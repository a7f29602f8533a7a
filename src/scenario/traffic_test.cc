// SPDX-License-Identifier: Apache-2.0
#include "scenario/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  const RateCurve curve = DrawCurve(traffic, kTrafficHour, 1);
  EXPECT_NEAR(curve.Peak(), 80, .01);
  EXPECT_NEAR(LeastOf(curve), 20, .01);
  EXPECT_NEAR(curve.MeanOf(0, 3600), 50, .05);
  EXPECT_NE(DrawCurve(traffic, kTrafficHour, 2).AtS(0), curve.AtS(0));
  EXPECT_EQ(DrawCurve(traffic, kTrafficHour, 1), curve);
}

TEST(Traffic, RampsAreStraightBetweenTheirEnds) {
  Traffic traffic = TrafficFrom(Traffic::Shape::kRamp, 10, 40);
  traffic.begin = 10 * kTrafficMinute;
  traffic.end = 40 * kTrafficMinute;
  const RateCurve curve = DrawCurve(traffic, kTrafficHour, 1);
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
    const RateCurve curve = DrawCurve(traffic, kTrafficHour, seed);
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
  const RateCurve curve = DrawCurve(traffic, 200 * kTrafficHour, 1);
  EXPECT_NEAR(curve.MeanOf(0, 720'000), 10 + 90 / 6.0, 1);
}

// The shape of an earlier system fell to nothing at each hour.
TEST(Traffic, StagesNeverDropToNothing) {
  const Traffic traffic = TrafficFrom(Traffic::Shape::kStaged, .6, 700);
  double most = 0;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const RateCurve curve = DrawCurve(traffic, 3 * kTrafficHour, seed);
    EXPECT_GE(LeastOf(curve), 100 * .6 - 1e-9);
    most = std::max(most, curve.Peak());
  }
  EXPECT_NEAR(most, 420, 1e-6);
}

}  // namespace
}  // namespace rudderfish
