// SPDX-License-Identifier: Apache-2.0
#include "model/gamma_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rudderfish {
namespace {

// Sums of `stages` equal exponentials: 1 - e^-x sum_{k < stages} x^k / k!.
double ErlangBelow(int stages, double x) {
  double term = std::exp(-x), sum = 0;
  for (int k = 0; k < stages; ++k) {
    sum += term;
    term *= x / (k + 1);
  }
  return 1 - sum;
}

TEST(GammaLaw, SumsOfEqualExponentialsAreErlangs) {
  for (const int stages : {1, 2, 3, 10, 60}) {
    for (const double mean : {0.02, 1.0, 40.0}) {
      const GammaLaw law{mean, mean * mean / stages};
      for (double times = 0.05; times < 5; times += 0.05)
        EXPECT_NEAR(law.Below(times * mean), ErlangBelow(stages, times * stages), 1e-10)
            << stages << " " << times;
    }
  }
}

// Of one degree of freedom: the square of a normal variable.
TEST(GammaLaw, WideLawsAreChiSquared) {
  const GammaLaw law{1, 2};
  for (const double x : {1e-6, 0.01, 0.5, 1.0, 1.6, 3.0, 9.0, 30.0})
    EXPECT_NEAR(law.Below(x), std::erf(std::sqrt(x / 2)), 1e-10) << x;
  EXPECT_EQ(law.Below(0), 0);
  EXPECT_EQ(law.Below(-1), 0);
}

TEST(GammaLaw, WithoutVarianceItIsAConstant) {
  for (const double variance : {0.0, 4 * 0.8e-7}) {  // An scv below a ten-millionth.
    const GammaLaw law{2, variance};
    EXPECT_EQ(law.Below(1.9999999), 0);
    EXPECT_EQ(law.Below(2), 1);
    EXPECT_EQ(law.BelowNearly(1.9999999), 0);
    EXPECT_EQ(law.BelowNearly(2), 1);
    EXPECT_EQ(law.Quantile(0.95), 2);
  }
  EXPECT_EQ((GammaLaw{0, 0}.Below(0)), 1);
  EXPECT_EQ((GammaLaw{0, 0}.Below(-1e-9)), 0);
  EXPECT_EQ((GammaLaw{0, 0}.BelowNearly(0)), 1);
  EXPECT_EQ((GammaLaw{0, 0}.Quantile(0.5)), 0);
  const GammaLaw narrow{2, 4 * 1.5e-7};  // Hardly one any more.
  EXPECT_GT(narrow.Quantile(0.95), 2.0005);
  EXPECT_GT(narrow.Below(1.9999), 0.3);
  EXPECT_GT(narrow.BelowNearly(1.9999), 0.3);
}

TEST(GammaLaw, QuantilesAreWhereSoMuchIsBelow) {
  for (const double scv : {0.001, 0.2, 1.0, 4.0}) {
    const GammaLaw law{3, 9 * scv};
    for (const double share : {0.1, 0.5, 0.95, 0.999999})
      EXPECT_NEAR(law.Below(law.Quantile(share)), share, 1e-7) << scv << " " << share;
  }
  EXPECT_NEAR((GammaLaw{3, 9}.Quantile(0)), 0, 1e-8);
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ((GammaLaw{infinite, infinite}.Quantile(0.5)), infinite);
  EXPECT_EQ((GammaLaw{5, infinite}.Quantile(0.5)), 5);
}

// Wilson and Hilferty: the cube root of x over its mean is normal, of mean 1 - scv / 9 and variance
// scv / 9.
TEST(GammaLaw, TheCubeRootIsNearlyNormal) {
  for (const double scv : {0.01, 0.25, 1.0}) {
    const GammaLaw law{3, 9 * scv};
    const double spread = std::sqrt(scv / 9);
    for (const double z : {-1.5, 0.0, 1.0, 2.0}) {
      const double root = 1 - scv / 9 + z * spread;
      EXPECT_NEAR(law.BelowNearly(3 * root * root * root), std::erfc(-z / std::sqrt(2)) / 2, 1e-12);
    }
    EXPECT_EQ(law.BelowNearly(0), 0);
    EXPECT_EQ(law.BelowNearly(-1), 0);
  }
  EXPECT_EQ((GammaLaw{3, 9 * 1.1}.BelowNearly(2)), (GammaLaw{3, 9 * 1.1}.Below(2)));
}

TEST(GammaLaw, SumsOfExponentialsHaveTheirQuantiles) {
  EXPECT_NEAR((GammaLaw{2, 4}.Quantile(.95)), -2 * std::log(.05), 1e-7);
  EXPECT_NEAR((GammaLaw{2, 2}.Quantile(.95)), 4.743865, 1e-5);  // Half of chi-squared, 4 degrees.
  EXPECT_NEAR((GammaLaw{.5, .5}.Quantile(.95)), 3.841459 / 2, 1e-5);  // Chi-squared, 1 degree.
  EXPECT_EQ((GammaLaw{3, 0}.Quantile(.95)), 3);
  EXPECT_NEAR((GammaLaw{50, 50}.Below(50)), .518808, 1e-5);
  for (double scv : {.01, .1, .3, .5, .8, 1.0, 2.0}) {
    const GammaLaw law{3, 9 * scv};
    for (double x = .1; x < 20; x += .1)
      EXPECT_NEAR(law.BelowNearly(x), law.Below(x), law.Below(x) > .5 ? .005 : .012)
          << scv << " " << x;
  }
}

}  // namespace
}  // namespace rudderfish
