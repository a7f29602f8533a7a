// SPDX-License-Identifier: Apache-2.0
#include "model/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/rng.h"

namespace rudderfish {
namespace {

// The recursion by hand, in exact decimals: level .5, trend .4, damping .5 on 10, 14, 12, 20.
//   l = 12,  b = .8;  l = 12.2, b = .32;  l = 16.18, b = 1.688
TEST(Forecast, IsHoltsWithADampedTrend) {
  Forecast forecast({.horizon = 3, .damping = .5, .level_weight = .5, .trend_weight = .4});
  EXPECT_EQ(forecast.At(1), 0);
  forecast.Observe(10);
  EXPECT_EQ(forecast.At(1), 10);
  EXPECT_EQ(forecast.At(3), 10);
  forecast.Observe(14);
  EXPECT_NEAR(forecast.At(1), 12 + .5 * .8, 1e-12);
  forecast.Observe(12);
  EXPECT_NEAR(forecast.At(2), 12.2 + .75 * .32, 1e-12);
  forecast.Observe(20);
  EXPECT_NEAR(forecast.At(1), 16.18 + .5 * 1.688, 1e-12);
  EXPECT_NEAR(forecast.At(3), 16.18 + .875 * 1.688, 1e-12);
  EXPECT_EQ(forecast.observations(), 4);
}

TEST(Forecast, KeepsItsErrorsForEachDistance) {
  Forecast forecast({.horizon = 2, .errors = 3, .level_weight = 1});  // The last value.
  for (const double value : {1.0, 2.0, 4.0, 8.0, 3.0}) forecast.Observe(value);
  // One ahead: 1, 2, 4, -5, of which the last three are kept; two ahead: 3, 6, -1.
  EXPECT_EQ(forecast.ErrorQuantile(1, 0), -5);
  EXPECT_EQ(forecast.ErrorQuantile(1, .5), 2);
  EXPECT_EQ(forecast.ErrorQuantile(1, .75), 3);
  EXPECT_EQ(forecast.ErrorQuantile(1, 1), 4);
  EXPECT_EQ(forecast.ErrorQuantile(2, 0), -1);
  EXPECT_EQ(forecast.ErrorQuantile(2, 1), 6);
  EXPECT_NEAR(forecast.ErrorRms(1), std::sqrt((4 + 16 + 25) / 3.0), 1e-12);
  forecast.Reset();
  EXPECT_EQ(forecast.ErrorQuantile(1, 1), 0);
  EXPECT_EQ(forecast.At(2), 0);
}

// The mean absolute error `ahead` steps ahead, over the last `judged` of `steps`.
template <class Series>
double MeanError(const ForecastOptions& options, int ahead, int steps, int judged,
                 const Series& series) {
  Forecast forecast(options);
  double sum = 0;
  for (int t = 0; t < steps; ++t) {
    forecast.Observe(series(t));
    if (t >= steps - judged) sum += std::abs(series(t + ahead) - forecast.At(ahead)) / judged;
  }
  return sum;
}

TEST(Forecast, FollowsWhatItCanKnow) {
  const auto line = [](int t) { return 20 + .5 * t; };
  EXPECT_LT(MeanError({}, 1, 100, 20, line), .2);
  EXPECT_LT(MeanError({}, 4, 100, 20, line), .8);  // The last value would be wrong by 2.
  const auto jump = [](int t) { return t < 50 ? 20.0 : 90.0; };
  EXPECT_LT(MeanError({}, 1, 55, 1, jump), 3);
  const auto wave = [](int t) { return 60 + 40 * std::sin(2 * std::numbers::pi * t / 40); };
  const double plain = MeanError({}, 8, 200, 40, wave);
  EXPECT_LT(MeanError({.season = 40}, 8, 200, 40, wave), 1);
  EXPECT_GT(plain, 10);
}

TEST(Forecast, TakesTheMeanOfNoiseAndTheLastValueOfAWalk) {
  Rng rng(3, 1);
  std::vector<double> noise, walk = {100};
  for (int t = 0; t < 500; ++t) {
    noise.push_back(100 + rng.Uniform(-10, 10));
    walk.push_back(std::max(0.0, walk.back() + rng.Uniform(-4, 4)));
  }
  // The best possible are 5 and 2.
  EXPECT_LT(MeanError({}, 1, 480, 300, [&](int t) { return noise[t]; }), 5.5);
  EXPECT_LT(MeanError({}, 1, 480, 300, [&](int t) { return walk[t]; }), 2.5);
}

TEST(Forecast, QuantilesOfItsErrorsHoldForWhatFollows) {
  Rng rng(5, 1);
  Forecast forecast({});
  int covered = 0, asked = 0;
  double bound = 0;
  for (int t = 0; t < 3000; ++t) {
    const double value = 100 + rng.Uniform(-10, 10);
    if (t > 100) {
      ++asked;
      covered += value <= bound ? 1 : 0;
    }
    forecast.Observe(value);
    bound = forecast.At(1) + forecast.ErrorQuantile(1, .9);
  }
  EXPECT_NEAR(static_cast<double>(covered) / asked, .9, .03);
}

}  // namespace
}  // namespace rudderfish
