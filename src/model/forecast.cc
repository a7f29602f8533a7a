// SPDX-License-Identifier: Apache-2.0
#include "model/forecast.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

// From nearly a mean to nearly the last value; without a trend, and with one.
constexpr std::array<double, 8> kLevelWeights = {.1, .3, .6, .9, .3, .6, .6, .9};
constexpr std::array<double, 8> kTrendWeights = {0, 0, 0, 0, .1, .1, .3, .3};
constexpr double kBadnessKept = .95;  // Of badness, a step.

// Takes one value of a sorted list out and puts another in: what lies between moves by one.
void Replace(double out, double in, std::vector<double>* sorted) {
  const auto from = std::lower_bound(sorted->begin(), sorted->end(), out);
  const auto to = std::upper_bound(sorted->begin(), sorted->end(), in);
  if (to > from) {
    *std::move(from + 1, to, from) = in;
  } else {
    std::move_backward(to, from, from + 1);
    *to = in;
  }
}

}  // namespace

Forecast::Forecast(const ForecastOptions& options) : options_(options) {
  CHECK(options.horizon >= 1 && options.horizon <= 1000);
  CHECK(options.season >= 0 && options.season <= 100'000);
  CHECK(options.errors >= 1 && options.errors <= 10'000);
  level_weights_ = kLevelWeights;
  trend_weights_ = kTrendWeights;
  if (options.level_weight > 0) {
    level_weights_.fill(options.level_weight);
    trend_weights_.fill(options.trend_weight);
  }
  double sum = 0;
  for (int h = 1; h <= options.horizon; ++h) {
    sum += std::pow(options.damping, h);
    damped_.push_back(sum);
  }
  is_made_.assign(options.horizon, 1);
  season_.resize(std::max(options.season, 1));
  first_.resize(options.season);
  made_.resize(static_cast<size_t>(options.horizon) * options.horizon);
  spoken_.resize(made_.size());
  badness_.resize(options.horizon);
  best_.resize(options.horizon);
  errors_.resize(options.horizon);
  for (Errors& errors : errors_) {
    errors.ring.reserve(options.errors);
    errors.sorted.reserve(options.errors);
  }
  Reset();
}

void Forecast::Reset() {
  observations_ = 0;
  level_.fill(0);
  trend_.fill(0);
  for (PerWeight& place : season_) place.fill(0);
  for (PerWeight& one : badness_) one.fill(0);
  std::fill(best_.begin(), best_.end(), 1);  // Something in between, until there is more to say.
  for (Errors& errors : errors_) {
    errors.ring.clear();
    errors.sorted.clear();
    errors.squares = 0;
    errors.oldest = 0;
  }
}

void Forecast::Only(std::span<const int> steps_ahead) {
  bool changes = false;
  for (int h = 1; h <= options_.horizon; ++h) {
    const char made = std::ranges::find(steps_ahead, h) != steps_ahead.end() ? 1 : 0;
    changes = changes || made != is_made_[h - 1];
    is_made_[h - 1] = made;
  }
  if (changes) Reset();
}

void Forecast::Observe(double value) {
  CHECK(std::isfinite(value) && value >= 0);
  Judge(value);
  Learn(value);
  ++observations_;
  if (observations_ == options_.season) StartSeason();
  Predict();
}

// What was said of this step, by all, at each distance from it.
void Forecast::Judge(double value) {
  const int horizon = options_.horizon;
  for (int h = 1; h <= std::min(horizon, observations_); ++h) {
    if (is_made_[h - 1] == 0) continue;
    const size_t at = static_cast<size_t>((observations_ - h) % horizon) * horizon + (h - 1);
    PerWeight& badness = badness_[h - 1];
    const PerWeight& made = made_[at];
    int best = 0;
    for (int i = 0; i < kWeights; ++i) {
      const double error = value - made[i];
      badness[i] = kBadnessKept * badness[i] + error * error;
      if (badness[i] < badness[best]) best = i;
    }
    best_[h - 1] = best;
    Keep(value - spoken_[at], &errors_[h - 1]);
  }
}

void Forecast::Keep(double error, Errors* errors) const {
  const auto most = static_cast<size_t>(options_.errors);
  if (errors->ring.size() == most) {
    double& oldest = errors->ring[errors->oldest];
    const double gone = oldest;
    oldest = error;
    errors->oldest = (errors->oldest + 1) % most;
    Replace(gone, error, &errors->sorted);
    errors->squares -= gone * gone;
  } else {
    errors->ring.push_back(error);
    errors->sorted.insert(std::upper_bound(errors->sorted.begin(), errors->sorted.end(), error),
                          error);
  }
  errors->squares += error * error;
}

void Forecast::Learn(double value) {
  PerWeight& season = season_[observations_ % season_.size()];
  const bool knows_season = options_.season > 0 && observations_ >= options_.season;
  for (int i = 0; i < kWeights; ++i) {
    const double plain = value - season[i];
    if (observations_ == 0) {
      level_[i] = value;
      continue;
    }
    const double before = level_[i], slope = options_.damping * trend_[i];
    level_[i] = level_weights_[i] * plain + (1 - level_weights_[i]) * (before + slope);
    trend_[i] = trend_weights_[i] * (level_[i] - before) + (1 - trend_weights_[i]) * slope;
    if (knows_season) season[i] += options_.season_weight * (value - level_[i] - season[i]);
  }
  if (options_.season > 0 && !knows_season) first_[observations_] = value;
}

// A place of the season is what it was above the mean of the first period. Errors made without it
// say nothing of what follows.
void Forecast::StartSeason() {
  double mean = 0;
  for (const double value : first_) mean += value / options_.season;
  for (int place = 0; place < options_.season; ++place) season_[place].fill(first_[place] - mean);
  level_.fill(mean);
  trend_.fill(0);
  for (PerWeight& one : badness_) one.fill(0);
  for (Errors& errors : errors_) {
    errors.ring.clear();
    errors.sorted.clear();
    errors.squares = 0;
    errors.oldest = 0;
  }
}

void Forecast::Predict() {
  const int horizon = options_.horizon;
  const int last = observations_ - 1;
  const size_t row = static_cast<size_t>(last % horizon) * horizon;
  for (int h = 1; h <= horizon; ++h) {
    if (is_made_[h - 1] == 0) continue;
    const PerWeight& season = season_[(last + h) % season_.size()];
    PerWeight& made = made_[row + h - 1];
    for (int i = 0; i < kWeights; ++i)
      made[i] = std::max(0.0, level_[i] + damped_[h - 1] * trend_[i] + season[i]);
    spoken_[row + h - 1] = made[best_[h - 1]];
  }
}

double Forecast::At(int steps_ahead) const {
  CHECK(steps_ahead >= 1 && steps_ahead <= options_.horizon);
  if (observations_ == 0) return 0;
  const int row = (observations_ - 1) % options_.horizon;
  return spoken_[static_cast<size_t>(row) * options_.horizon + steps_ahead - 1];
}

double Forecast::ErrorQuantile(int steps_ahead, double share) const {
  CHECK(steps_ahead >= 1 && steps_ahead <= options_.horizon && share >= 0 && share <= 1);
  const std::vector<double>& sorted = errors_[steps_ahead - 1].sorted;
  if (sorted.empty()) return 0;
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double Forecast::ErrorRms(int steps_ahead) const {
  CHECK(steps_ahead >= 1 && steps_ahead <= options_.horizon);
  const Errors& errors = errors_[steps_ahead - 1];
  if (errors.ring.empty()) return 0;
  return std::sqrt(std::max(0.0, errors.squares / static_cast<double>(errors.ring.size())));
}

}  // namespace rudderfish
