// SPDX-License-Identifier: Apache-2.0
#include "model/gamma_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace rudderfish {

double LogGamma(double x) {
  int sign = 1;
  return ::lgamma_r(x, &sign);
}

namespace {

constexpr int kMostTerms = 10'000;
constexpr double kTermTolerance = 1e-12;
constexpr double kConstantScv = 1e-7;  // Narrower than this is a constant.

// P(a, x), the regularised lower incomplete gamma function.
double LowerGamma(double a, double x) {
  if (x <= 0) return 0;
  const double front = std::exp(a * std::log(x) - x - LogGamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < kMostTerms && term > sum * kTermTolerance; ++n) {
      term *= x / (a + n);
      sum += term;
    }
    return std::min(1.0, sum * front);
  }
  // Lentz's method for the continued fraction of 1 - P; here both c and 1 / d stay above n.
  double b = x + 1 - a, c = std::numeric_limits<double>::infinity(), d = 1 / b, fraction = d;
  for (int n = 1; n < kMostTerms; ++n) {
    const double an = -n * (n - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    fraction *= d * c;
    if (std::abs(d * c - 1) < kTermTolerance) break;
  }
  return std::clamp(1 - front * fraction, 0.0, 1.0);
}

}  // namespace

double GammaLaw::Below(double x) const {
  if (!(variance > kConstantScv * mean * mean)) return x >= mean ? 1 : 0;
  return LowerGamma(mean * mean / variance, x * mean / variance);
}

double GammaLaw::BelowNearly(double x) const {
  const double scv = variance / (mean * mean);
  if (!(scv > kConstantScv) || scv > 1) return Below(x);
  if (x <= 0) return 0;
  const double deviation = std::sqrt(scv / 9);
  const double z = (std::cbrt(x / mean) - (1 - scv / 9)) / deviation;
  return 0.5 * std::erfc(-z * std::numbers::sqrt2 / 2);
}

double GammaLaw::Quantile(double share) const {
  CHECK(share >= 0 && share < 1);
  if (!(variance > kConstantScv * mean * mean)) return mean;
  if (!std::isfinite(mean) || !std::isfinite(variance)) return mean;
  double low = 0, high = mean + 2 * std::sqrt(variance);
  while (Below(high) < share) {
    low = high;
    high *= 2;
  }
  while (high - low > 1e-9 * mean) {
    const double middle = (low + high) / 2;
    (Below(middle) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace rudderfish
