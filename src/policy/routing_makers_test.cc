// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/registry.h"
#include "policy/routing_rules.h"
#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

TEST(RoutingMakers, ReadsMpcAndItsPricesAndNothingElse) {
  const Result<PlannedRouting> plain = ReadPlannedRouting("mpc:use=66");
  ASSERT_TRUE(plain.has_value());
  EXPECT_DOUBLE_EQ(plain->below.use, 0.66);
  EXPECT_FALSE(plain->split.prices.any());
  const Result<PlannedRouting> priced = ReadPlannedRouting("mpc:late_price=64,carbon_price=0");
  ASSERT_TRUE(priced.has_value());
  EXPECT_EQ(priced->split.prices.late, 64);
  EXPECT_EQ(priced->split.prices.carbon_per_kg, 0);
  const Result<PlannedRouting> other = ReadPlannedRouting("lp");
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message, ::testing::HasSubstr("expected mpc with its options"));
}

}  // namespace
}  // namespace rudderfish
