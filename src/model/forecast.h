// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

// What a rate is going to be, from what it was, and how wrong such forecasts have been: Holt and
// Winters' exponential smoothing with a damped trend (E. S. Gardner, E. McKenzie, "Forecasting
// trends in time series", Management Science 1985), and an additive season where its period is
// given. Several weights run side by side; for each step ahead that one speaks whose forecasts, so
// far ahead, had the least squared error lately.
//
// Observe is called once a step, with the value of the step that has ended; At(3) then is what is
// expected three steps on, and At(3) + ErrorQuantile(3, 0.9) what it will not exceed but once in
// ten times, if errors are as they were.
//
// Values are of any unit, and never negative. Steps are the caller's, all of equal length. Nothing
// is allocated after construction, copies into an equal one included. One thread.

namespace rudderfish {

struct ForecastOptions {
  int horizon = 16;           // Steps ahead, at most.
  int season = 0;             // Steps of a period; 0: none. Its first period only teaches.
  int errors = 48;            // Past errors kept, for each step ahead.
  double damping = 0.9;       // Of the trend, a step.
  double level_weight = 0;    // Of the newest value, and of the newest slope; 0 for the level's:
  double trend_weight = 0;    // the best of eight pairs.
  double season_weight = .2;  // Of the newest value in its place of the season.
};

class Forecast {
 public:
  // REQUIRES: 1 <= horizon <= 1000, 0 <= season <= 100'000, 1 <= errors <= 10'000.
  explicit Forecast(const ForecastOptions& options);

  // Forgets all, but not which steps ahead it forecasts.
  void Reset();

  // Only the forecasts so many steps ahead are made, and only they are asked for. Forgets all if
  // they are others than before. REQUIRES: each as in At.
  void Only(std::span<const int> steps_ahead);

  // The value of the step that has ended. REQUIRES: finite, not negative.
  void Observe(double value);
  int observations() const { return observations_; }

  // The value of the step `steps_ahead` after the last one observed; not negative. Before any: 0.
  // REQUIRES: 1 <= steps_ahead <= horizon.
  double At(int steps_ahead) const;

  // Of its errors so far, value - forecast, that far ahead, interpolated: to add to At. 0 while
  // none is known. REQUIRES: as above, 0 <= share <= 1.
  double ErrorQuantile(int steps_ahead, double share) const;

  // The root of the mean of their squares.
  double ErrorRms(int steps_ahead) const;

  const ForecastOptions& options() const { return options_; }

 private:
  static constexpr int kWeights = 8;
  using PerWeight = std::array<double, kWeights>;

  // Errors so far ahead, as they came (a ring) and by size.
  struct Errors {
    std::vector<double> ring, sorted;
    size_t oldest = 0;  // In a ring that is full.
    double squares = 0;
  };

  void Judge(double value);
  void Learn(double value);
  void StartSeason();
  void Predict();
  void Keep(double error, Errors* errors) const;

  ForecastOptions options_;
  PerWeight level_weights_, trend_weights_;
  PerWeight level_, trend_;
  std::vector<PerWeight> season_;   // [place of the period]; one of zeros where there is none.
  std::vector<double> first_;       // The values of the first period.
  std::vector<PerWeight> made_;     // [step made % horizon][steps ahead - 1]
  std::vector<double> spoken_;      // The same: what At said.
  std::vector<PerWeight> badness_;  // [steps ahead - 1] Discounted squared errors.
  std::vector<int> best_;           // [steps ahead - 1] Of the weights.
  std::vector<double> damped_;      // [steps ahead - 1] Trends that add up.
  std::vector<Errors> errors_;      // [steps ahead - 1]
  std::vector<char> is_made_;       // [steps ahead - 1]
  int observations_ = 0;
};

}  // namespace rudderfish
