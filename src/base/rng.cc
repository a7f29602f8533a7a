// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/normals.h"

// Fused multiply-adds round once where two operations round twice; with them results would depend
// on the CPU.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

namespace rudderfish {
namespace {

template <size_t n>
double Polynomial(const double (&coefficients)[n], double x) {
  double sum = 0;
  for (size_t i = n; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// Natural logarithm of a positive normal number from arithmetic that IEEE 754 defines to the last
// bit, which std::log is not: ln(m 2^e) = e ln 2 + 2 artanh((m - 1) / (m + 1)) with m in
// [sqrt(1/2), sqrt(2)).
double PortableLog(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1022;
  bits = (bits & 0x000FFFFFFFFFFFFF) | 0x3FE0000000000000;
  double mantissa = std::bit_cast<double>(bits);  // In [1/2, 1).
  if (mantissa < 0.70710678118654752440) {
    mantissa *= 2;
    --exponent;
  }
  const double s =
      (mantissa - 1) / (mantissa + 1);  // |s| < 0.172: eleven terms leave less than 2^-53.
  double series = 0;
  for (int odd = 21; odd >= 1; odd -= 2) series = series * (s * s) + 1.0 / odd;
  return exponent * 0.69314718055994530942 + 2 * s * series;
}

// The inverse of the normal distribution's cumulative function, to about 1e-16: M. J. Wichura,
// "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37
// (1988), routine PPND16. Three rational functions: of the middle, of the tails, and of the far
// tails.
constexpr double kMiddle = 0.425;  // Of p - 1/2, on both sides.

double MiddleQuantile(double q) {
  constexpr double kMiddleTop[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                   1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                   4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                   3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double kMiddleBottom[] = {1.0,
                                      4.2313330701600911252e+1,
                                      6.8718700749205790830e+2,
                                      5.3941960214247511077e+3,
                                      2.1213794301586595867e+4,
                                      3.9307895800092710610e+4,
                                      2.8729085735721942674e+4,
                                      5.2264952788528545610e+3};
  const double r = kMiddle * kMiddle - q * q;
  return q * Polynomial(kMiddleTop, r) / Polynomial(kMiddleBottom, r);
}

double TailQuantile(double p) {
  constexpr double kTailTop[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                 5.76949722146069140550e0,  3.64784832476320460504e0,
                                 1.27045825245236838258e0,  2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kTailBottom[] = {1.0,
                                    2.05319162663775882187e0,
                                    1.67638483018380384940e0,
                                    6.89767334985100004550e-1,
                                    1.48103976427480074590e-1,
                                    1.51986665636164571966e-2,
                                    5.47593808499534494600e-4,
                                    1.05075007164441684324e-9};
  constexpr double kFarTop[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                1.78482653991729133580e0,  2.96560571828504891230e-1,
                                2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kFarBottom[] = {1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};
  const double q = p - 0.5;
  const double r = std::sqrt(-PortableLog(q < 0 ? p : 1 - p));
  const double x = r <= 5 ? Polynomial(kTailTop, r - 1.6) / Polynomial(kTailBottom, r - 1.6)
                          : Polynomial(kFarTop, r - 5) / Polynomial(kFarBottom, r - 5);
  return q < 0 ? -x : x;
}

// Odd multiples of 2^-54: never 0 or 1, and as likely on both sides of the middle.
double ShareOf(uint64_t word) { return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53; }

}  // namespace

double Rng::Uniform(double low, double high) {
  CHECK_LE(low, high);
  const double x = low + (high - low) * Uniform();
  return x < high ? x : low;  // The sum may round up to `high`.
}

uint64_t Rng::RejectBiased(uint64_t product, uint32_t n) {
  CHECK_GT(n, 0U);
  const uint32_t threshold = -n % n;  // 2^32 mod n.
  while (static_cast<uint32_t>(product) < threshold) product = uint64_t{Next32()} * n;
  return product;
}

int Rng::Between(int low, int high) {
  CHECK_LE(low, high);
  const uint32_t last = static_cast<uint32_t>(high) - static_cast<uint32_t>(low);
  const uint32_t offset = last == UINT32_MAX ? Next32() : Below(last + 1);
  return static_cast<int>(static_cast<uint32_t>(low) + offset);
}

double Rng::Normal() {
  const double p = ShareOf(Next64()), q = p - 0.5;
  return std::fabs(q) <= kMiddle ? MiddleQuantile(q) : TailQuantile(p);
}

// All as if they were in the middle, which is done many at once; then the others.
void NormalsOf(std::span<const uint64_t> words, std::span<double> normals) {
  CHECK_EQ(words.size(), normals.size());
  const size_t count = words.size();
  for (size_t i = 0; i < count; ++i) normals[i] = ShareOf(words[i]) - 0.5;
  double* const at = normals.data();
  for (size_t i = 0; i < count; ++i) at[i] = MiddleQuantile(at[i]);
  for (size_t i = 0; i < count; ++i) {
    const double p = ShareOf(words[i]);
    if (std::fabs(p - 0.5) > kMiddle) at[i] = TailQuantile(p);
  }
}

}  // namespace rudderfish
