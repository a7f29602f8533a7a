// SPDX-License-Identifier: Apache-2.0
#include "model/forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

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

TEST(Forecast, OfSomeDistancesIsThatOfAll) {
  Rng rng(5);
  Forecast all({.horizon = 6}), some({.horizon = 6});
  some.Only(std::array{4, 1, 1});
  for (int t = 0; t < 200; ++t) {
    const double value = 50 + 20 * std::sin(t / 9.0) + 5 * rng.Uniform();
    all.Observe(value);
    some.Only(std::array{1, 4});  // No others: nothing is forgotten.
    some.Observe(value);
    for (const int ahead : {1, 4}) {
      EXPECT_EQ(some.At(ahead), all.At(ahead));
      EXPECT_EQ(some.ErrorRms(ahead), all.ErrorRms(ahead));
      EXPECT_EQ(some.ErrorQuantile(ahead, .9), all.ErrorQuantile(ahead, .9));
    }
  }
  some.Only(std::array{2});
  EXPECT_EQ(some.observations(), 0);
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

// The same, written out: all that was ever said is kept, and each distance looks through it.
struct PlainForecast {
  explicit PlainForecast(const ForecastOptions& asked) : options(asked) {
    if (options.level_weight > 0) pairs = {{options.level_weight, options.trend_weight}};
    level.resize(pairs.size()), trend.resize(pairs.size());
    season.assign(std::max(1, options.season), std::vector<double>(pairs.size(), 0.0));
  }

  void Observe(double value) {
    const auto t = static_cast<int>(values.size());
    values.push_back(value);
    auto& place = season[t % season.size()];
    for (size_t i = 0; i < pairs.size(); ++i) {
      const double before = level[i], slope = options.damping * trend[i];
      if (t == 0) {
        level[i] = value;
        continue;
      }
      const auto& [of_level, of_trend] = pairs[i];
      level[i] = of_level * (value - place[i]) + (1 - of_level) * (before + slope);
      trend[i] = of_trend * (level[i] - before) + (1 - of_trend) * slope;
      if (options.season > 0 && t >= options.season)
        place[i] =
            (1 - options.season_weight) * place[i] + options.season_weight * (value - level[i]);
    }
    if (t + 1 == options.season) {
      double mean = 0;
      for (const double one : values) mean += one / options.season;
      for (int p = 0; p < options.season; ++p) season[p].assign(pairs.size(), values[p] - mean);
      level.assign(pairs.size(), mean), trend.assign(pairs.size(), 0);
      first_judged = t + 1;
    }
    said.emplace_back();
    chosen.emplace_back();
    for (int h = 1; h <= options.horizon; ++h) {
      chosen[t].push_back(Best(t, h, t + 1 == options.season ? 0 : first_judged));
      said[t].emplace_back();
      double damped = 0;
      for (int k = 1; k <= h; ++k) damped += std::pow(options.damping, k);
      for (size_t i = 0; i < pairs.size(); ++i)
        said[t][h - 1].push_back(
            std::max(0.0, level[i] + damped * trend[i] + season[(t + h) % season.size()][i]));
    }
  }

  // Of squared errors that count 0.95 of the next one's, the least; while there are none, who spoke
  // before, and at first the second pair.
  int Best(int t, int h, int from) const {
    std::vector<double> badness(pairs.size(), 0.0);
    bool any = false;
    for (int at = std::max(h, from); at <= t; ++at) {
      any = true;
      for (size_t i = 0; i < pairs.size(); ++i)
        badness[i] = 0.95 * badness[i] + std::pow(values[at] - said[at - h][h - 1][i], 2);
    }
    if (!any && t > 0) return chosen[t - 1][h - 1];
    if (!any) return pairs.size() > 1 ? 1 : 0;
    return static_cast<int>(std::min_element(badness.begin(), badness.end()) - badness.begin());
  }

  double At(int h) const { return said.back()[h - 1][chosen.back()[h - 1]]; }
  std::vector<double> Errors(int h) const {
    std::vector<double> errors;
    for (int at = std::max(h, first_judged); at < static_cast<int>(values.size()); ++at)
      errors.push_back(values[at] - said[at - h][h - 1][chosen[at - h][h - 1]]);
    if (static_cast<int>(errors.size()) > options.errors)
      errors.erase(errors.begin(), errors.end() - options.errors);
    return errors;
  }

  ForecastOptions options;
  std::vector<std::pair<double, double>> pairs = {{.1, 0},  {.3, 0},  {.6, 0},  {.9, 0},
                                                  {.3, .1}, {.6, .1}, {.6, .3}, {.9, .3}};
  std::vector<double> level, trend, values;
  std::vector<std::vector<double>> season;
  std::vector<std::vector<std::vector<double>>> said;  // [t][steps ahead - 1][pair]
  std::vector<std::vector<int>> chosen;                // [t][steps ahead - 1]
  int first_judged = 0;
};

TEST(Forecast, LetsThePairSpeakThatErredLeast) {
  for (const ForecastOptions& options :
       {ForecastOptions{}, ForecastOptions{.horizon = 5, .errors = 7, .damping = .8},
        ForecastOptions{.horizon = 3, .level_weight = .4, .trend_weight = .2},
        ForecastOptions{.horizon = 4, .season = 6, .errors = 20, .season_weight = .3},
        ForecastOptions{.horizon = 9, .season = 4}}) {
    Forecast forecast(options);
    for (uint64_t run = 1; run <= 3; ++run) {  // Of the first two nothing is left.
      forecast.Reset();
      Rng rng(run);
      PlainForecast plain(options);
      double value = 50;
      for (int t = 0; t < 90; ++t) {
        value = std::max(0.0, value + rng.Uniform(-8, 8.2) + (rng.Below(20) == 0 ? 40 : 0) -
                                  (rng.Below(20) == 0 ? 45 : 0));
        forecast.Observe(value);
        plain.Observe(value);
        for (int h = 1; h <= options.horizon; ++h) {
          ASSERT_NEAR(forecast.At(h), plain.At(h), 1e-9) << t << " " << h;
          std::vector<double> errors = plain.Errors(h);
          double squares = 0;
          for (const double error : errors) squares += error * error;
          const double rms =
              errors.empty() ? 0 : std::sqrt(squares / static_cast<double>(errors.size()));
          ASSERT_NEAR(forecast.ErrorRms(h), rms, 1e-6);
          std::sort(errors.begin(), errors.end());
          for (const double share : {0.0, 0.3, 0.9, 1.0}) {
            double expected = 0;
            if (!errors.empty()) {
              const double at = share * static_cast<double>(errors.size() - 1);
              const double part = at - std::floor(at);
              expected = (1 - part) * errors[static_cast<size_t>(std::floor(at))] +
                         part * errors[static_cast<size_t>(std::ceil(at))];
            }
            ASSERT_NEAR(forecast.ErrorQuantile(h, share), expected, 1e-9) << t << " " << h;
          }
        }
      }
    }
  }
}

TEST(Forecast, IsNeverWrongOfWhatNeverChanges) {
  Forecast forecast({});
  for (int t = 0; t < 60; ++t) forecast.Observe(5);
  for (const int h : {1, 7, 16}) {
    EXPECT_NEAR(forecast.At(h), 5, 1e-12);
    EXPECT_NEAR(forecast.ErrorRms(h), 0, 1e-6);
    EXPECT_NEAR(forecast.ErrorQuantile(h, 1), 0, 1e-12);
  }
}

}  // namespace
}  // namespace rudderfish
