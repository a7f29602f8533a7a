// SPDX-License-Identifier: Apache-2.0
#include "base/float_log.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace rudderfish {
namespace {

TEST(FloatLog, IsTheNaturalLogarithm) {
  EXPECT_EQ(FloatLog(1), 0);
  Rng rng(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto x = static_cast<float>(std::exp(rng.Uniform(-60, 60)));
    const double expected = std::log(static_cast<double>(x));
    EXPECT_NEAR(FloatLog(x), expected, 2e-7 + 2e-7 * std::abs(expected)) << x;
  }
}

}  // namespace
}  // namespace rudderfish
