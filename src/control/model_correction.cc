// SPDX-License-Identifier: Apache-2.0
#include "control/model_correction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "control/evidence.h"

namespace rudderfish {
namespace {

constexpr int kParts = ModelCorrection::kParts;
using Vector = std::array<double, kParts>;
using Matrix = std::array<Vector, kParts>;

constexpr double kPriorDeviation = 0.5;
constexpr double kFactorMax = 3;
constexpr double kHuber = 1.345;               // In standard deviations; efficiency of 95 %.
constexpr double kDeviationOfMedian = 1.4826;  // Of a normal law, over its median absolute value.
constexpr int kIterations = 20;
constexpr double kSmallestNoiseMs = 1e-3;
constexpr double kSmallestTold = 0.005;
constexpr double kSmallestChangeMs = 1e-9;

double Clamped(double factor) { return std::clamp(factor, 1 / kFactorMax, kFactorMax); }

double PartOf(const MeasuredChange& change, int part) {
  return TermValue(change.predicted, part + 1);
}

double Corrected(const MeasuredChange& change, const Vector& factors) {
  double sum = 0;
  for (int i = 0; i < kParts; ++i) sum += factors[i] * PartOf(change, i);
  return sum;
}

double Uncorrected(const MeasuredChange& change) { return Corrected(change, {1, 1, 1, 1}); }

double MedianSize(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double NoiseOf(std::span<const MeasuredChange> changes, const Vector& factors) {
  std::vector<double> residuals;
  double squares = 0;
  for (const MeasuredChange& one : changes) {
    residuals.push_back(one.measured_ms - Corrected(one, factors));
    squares += std::pow(one.measured_ms - Uncorrected(one), 2);
  }
  const auto count = static_cast<double>(changes.size());
  const double uncorrected = std::sqrt(squares / count);
  if (count < ModelCorrection::kFew) return std::max(uncorrected, kSmallestNoiseMs);
  return std::max(kDeviationOfMedian * MedianSize(residuals), kSmallestNoiseMs);
}

// The normal law of the factors given the changes, prior included: precision matrix, and precision
// times mean.
struct Posterior {
  Matrix precision{};
  Vector weighted{};

  Posterior() {
    for (int i = 0; i < kParts; ++i) {
      precision[i][i] = 1 / (kPriorDeviation * kPriorDeviation);
      weighted[i] = precision[i][i];
    }
  }

  void Add(double weight, const MeasuredChange& change, double noise) {
    const double scale = weight / (noise * noise);
    for (int i = 0; i < kParts; ++i) {
      for (int j = 0; j < kParts; ++j)
        precision[i][j] += scale * PartOf(change, i) * PartOf(change, j);
      weighted[i] += scale * PartOf(change, i) * change.measured_ms;
    }
  }

  // x of precision x = right: by Gauss, without pivots, as the prior keeps it positive definite.
  Vector Solve(Vector right) const {
    Matrix left = precision;
    for (int i = 0; i < kParts; ++i) {
      for (int row = i + 1; row < kParts; ++row) {
        const double times = left[row][i] / left[i][i];
        for (int j = i; j < kParts; ++j) left[row][j] -= times * left[i][j];
        right[row] -= times * right[i];
      }
    }
    for (int i = kParts - 1; i >= 0; --i) {
      for (int j = i + 1; j < kParts; ++j) right[i] -= left[i][j] * right[j];
      right[i] /= left[i][i];
    }
    return right;
  }

  Vector Factors() const {
    Vector mean = Solve(weighted);
    std::transform(mean.begin(), mean.end(), mean.begin(), Clamped);
    return mean;
  }

  double Deviation(int part) const {
    Vector unit{};
    unit[part] = 1;
    return std::sqrt(std::max(0.0, Solve(unit)[part]));
  }
};

double WeightOf(const MeasuredChange& change, const Vector& factors, double noise) {
  const double residual = std::abs(change.measured_ms - Corrected(change, factors));
  return residual <= kHuber * noise ? 1 : kHuber * noise / residual;
}

}  // namespace

ModelCorrection FitCorrection(std::span<const MeasuredChange> changes) {
  ModelCorrection correction;
  if (changes.empty()) return correction;
  correction.application = changes[0].application;
  correction.changes = static_cast<int64_t>(changes.size());
  Posterior all;
  Vector factors{1, 1, 1, 1};
  double noise = 0;
  for (int i = 0; i < kIterations; ++i) {
    noise = NoiseOf(changes, factors);
    all = {};
    for (const MeasuredChange& one : changes) all.Add(WeightOf(one, factors, noise), one, noise);
    factors = all.Factors();
  }
  const double quantile = StudentQuantile(std::max<int64_t>(1, correction.changes - 1));
  for (int i = 0; i < kParts; ++i) {
    const double half = quantile * all.Deviation(i);
    correction.factors[i] = {
        .value = factors[i],
        .is_at_bound = factors[i] >= kFactorMax || factors[i] <= 1 / kFactorMax,
        .low = factors[i] - half,
        .high = factors[i] + half,
        .was_predicted = std::any_of(changes.begin(), changes.end(), [&](const auto& one) {
          return std::abs(PartOf(one, i)) > kSmallestChangeMs;
        })};
  }
  for (const MeasuredChange& one : changes) {
    Posterior others = all;
    others.Add(-WeightOf(one, factors, noise), one, noise);
    correction.error_ms += std::abs(one.measured_ms - Uncorrected(one));
    correction.corrected_error_ms += std::abs(one.measured_ms - Corrected(one, others.Factors()));
  }
  correction.error_ms /= static_cast<double>(changes.size());
  correction.corrected_error_ms /= static_cast<double>(changes.size());
  return correction;
}

std::vector<ModelCorrection> FitCorrections(std::span<const MeasuredChange> changes) {
  std::vector<ModelCorrection> corrections;
  for (const MeasuredChange& first : changes) {
    const auto is_its = [&](const auto& one) { return one.application == first.application; };
    if (std::any_of(corrections.begin(), corrections.end(), is_its)) continue;
    const auto last = std::find_if(changes.rbegin(), changes.rend(), is_its);
    std::vector<MeasuredChange> same;
    std::copy_if(changes.begin(), changes.end(), std::back_inserter(same),
                 [&](const auto& one) { return is_its(one) && one.model == last->model; });
    corrections.push_back(FitCorrection(same));
  }
  return corrections;
}

LatencyFactors ModelCorrection::ToApply() const {
  if (!Helps()) return {};
  return {.execution = factors[0].value,
          .network = factors[1].value,
          .transfer = factors[2].value,
          .queueing = factors[3].value};
}

std::string InWords(const LatencyFactors& factors) {
  std::string text;
  for (const auto& [name, factor] :
       {std::pair("execution", factors.execution), std::pair("network", factors.network),
        std::pair("transfer", factors.transfer), std::pair("queueing", factors.queueing)}) {
    if (std::abs(factor - 1) < kSmallestTold) continue;
    text += fmt::format("{}{} x {:.2f}", text.empty() ? "" : ", ", name, factor);
  }
  return text;
}

}  // namespace rudderfish
