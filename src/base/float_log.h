// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

// A logarithm of floats in a few additions and multiplications and one division, the same to the
// bit everywhere, of which compilers make many at once: for features, of which there are millions
// a second.

namespace rudderfish {

// Natural; within 2e-7 of it, and 2e-7 of its value. REQUIRES: x is positive, finite and normal.
//
// ln(m 2^e) = e ln 2 + 2 artanh((m - 1) / (m + 1)), with m in [sqrt(1/2), sqrt(2)).
inline float FloatLog(float x) {
  constexpr int32_t kRootOfHalf = 0x3F3504F3;  // Its bits.
  const int32_t bits = std::bit_cast<int32_t>(x) - kRootOfHalf;
  const auto exponent = static_cast<float>(bits >> 23);
  const float m = std::bit_cast<float>((bits & 0x007FFFFF) + kRootOfHalf);
  const float s = (m - 1) / (m + 1), s2 = s * s;
  const float series = 1 + s2 * (1.0F / 3 + s2 * (1.0F / 5 + s2 * (1.0F / 7 + s2 * (1.0F / 9))));
  return exponent * 0.693147181F + 2 * s * series;
}

}  // namespace rudderfish
