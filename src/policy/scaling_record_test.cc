// SPDX-License-Identifier: Apache-2.0
#include "policy/scaling_record.h"

#include <gtest/gtest.h>

#include <vector>

namespace rudderfish {
namespace {

TEST(ScalingRecord, WhereNoRecordKeepsTheLimitWhatTheFewestLateHaveAndChanceMayAddIsAllowed) {
  const ScalingRecord cheap{1, 0.00131, 2e-5}, dear{2, 0.00128, 2e-5}, late{0.5, 0.002, 1e-3};
  EXPECT_EQ(LimitAmong(std::vector{cheap, dear, late}, 0.0013), 0.0013);
  const double allowed = LimitAmong(std::vector{cheap, dear, late}, 0.001);
  EXPECT_NEAR(allowed, 0.00132, 1e-12);
  // A hundredth of a point no longer decides, a tenth does.
  EXPECT_TRUE(dear.IsBetterThan(cheap, 0.001));
  EXPECT_TRUE(cheap.IsBetterThan(dear, allowed));
  EXPECT_FALSE(late.IsBetterThan(dear, allowed));
  EXPECT_NEAR(LimitAmong(std::vector{late}, 0.001), 0.0025, 1e-12);
}

}  // namespace
}  // namespace rudderfish
