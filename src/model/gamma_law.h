// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gamma distribution: the law taken for response times of which only mean and variance are
// known. It is exact for one exponential stage and for sums of equal ones, and close for sums of
// unequal ones. Pure functions.

namespace rudderfish {

// ln of the gamma function. REQUIRES: x > 0. Unlike std::lgamma, which leaves its sign to a global
// variable, any thread may call it.
double LogGamma(double x);

struct GammaLaw {
  double mean = 0;
  double variance = 0;  // 0: constant.

  // P(X <= x). Series and continued fraction of the incomplete gamma function (Abramowitz and
  // Stegun 6.5.29 and 6.5.31), to 1e-10.
  double Below(double x) const;

  // The same to 0.012, above the median to 0.005, in a tenth of the time: the cube root is nearly
  // normal (E. B. Wilson, M. M. Hilferty, 1931). Exact where variance is above the squared mean.
  double BelowNearly(double x) const;

  // The least x with Below(x) >= share; to 1e-9 of the mean. REQUIRES: 0 <= share < 1.
  double Quantile(double share) const;
};

}  // namespace rudderfish
