// SPDX-License-Identifier: Apache-2.0
#include "control/model_correction.h"

#include <algorithm>
#include <cmath>

#include "control/evidence.h"

namespace rudderfish {
namespace {

constexpr double kPriorDeviation = 0.5;
constexpr double kFactorMax = 3;
constexpr double kHuber = 1.345;               // In standard deviations; efficiency of 95 %.
constexpr double kDeviationOfMedian = 1.4826;  // Of a normal law, over its median absolute value.
constexpr int kIterations = 20;
constexpr size_t kFew = 5;  // Below it residuals say little of the noise.
constexpr double kSmallestNoiseMs = 1e-3;

double MedianSize(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double NoiseOf(std::span<const MeasuredChange> changes, double factor) {
  std::vector<double> residuals;
  double squares = 0;
  for (const MeasuredChange& one : changes) {
    residuals.push_back(one.measured_ms - factor * one.predicted_ms);
    squares += std::pow(one.measured_ms - one.predicted_ms, 2);
  }
  const double uncorrected = std::sqrt(squares / static_cast<double>(changes.size()));
  if (changes.size() < kFew) return std::max(uncorrected, kSmallestNoiseMs);
  return std::max(kDeviationOfMedian * MedianSize(residuals), kSmallestNoiseMs);
}

// Sums of the posterior of the factor, prior included.
struct Posterior {
  double precision = 1 / (kPriorDeviation * kPriorDeviation);
  double weighted = precision;  // precision x mean

  void Add(double weight, const MeasuredChange& change, double noise) {
    precision += weight * change.predicted_ms * change.predicted_ms / (noise * noise);
    weighted += weight * change.predicted_ms * change.measured_ms / (noise * noise);
  }
  double factor() const { return std::clamp(weighted / precision, 1 / kFactorMax, kFactorMax); }
};

double WeightOf(const MeasuredChange& change, double factor, double noise) {
  const double residual = std::abs(change.measured_ms - factor * change.predicted_ms);
  return residual <= kHuber * noise ? 1 : kHuber * noise / residual;
}

}  // namespace

ModelCorrection FitCorrection(std::span<const MeasuredChange> changes) {
  ModelCorrection correction;
  if (changes.empty()) return correction;
  correction.application = changes[0].application;
  correction.term = changes[0].term;
  correction.changes = static_cast<int64_t>(changes.size());
  Posterior all;
  double factor = 1, noise = 0;
  for (int i = 0; i < kIterations; ++i) {
    noise = NoiseOf(changes, factor);
    all = {};
    for (const MeasuredChange& one : changes) all.Add(WeightOf(one, factor, noise), one, noise);
    factor = all.factor();
  }
  correction.factor = factor;
  correction.is_at_bound = factor >= kFactorMax || factor <= 1 / kFactorMax;
  const double half =
      StudentQuantile(std::max<int64_t>(1, correction.changes - 1)) / std::sqrt(all.precision);
  correction.low = factor - half;
  correction.high = factor + half;
  for (const MeasuredChange& one : changes) {
    Posterior others = all;
    others.Add(-WeightOf(one, factor, noise), one, noise);
    correction.error_ms += std::abs(one.measured_ms - one.predicted_ms);
    correction.corrected_error_ms += std::abs(one.measured_ms - others.factor() * one.predicted_ms);
  }
  correction.error_ms /= static_cast<double>(changes.size());
  correction.corrected_error_ms /= static_cast<double>(changes.size());
  return correction;
}

std::vector<ModelCorrection> FitCorrections(std::span<const MeasuredChange> changes) {
  std::vector<ModelCorrection> corrections;
  for (const MeasuredChange& first : changes) {
    const auto is_same = [&](const auto& one) {
      return one.application == first.application && one.term == first.term;
    };
    if (std::any_of(corrections.begin(), corrections.end(), is_same)) continue;
    std::vector<MeasuredChange> same;
    std::copy_if(changes.begin(), changes.end(), std::back_inserter(same), is_same);
    corrections.push_back(FitCorrection(same));
  }
  return corrections;
}

}  // namespace rudderfish
