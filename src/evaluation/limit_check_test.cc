// SPDX-License-Identifier: Apache-2.0
#include "evaluation/limit_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/small_regions.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const RegionWorld> WorldWith(const RoutingLimits& limits) {
  RegionNetwork network = testing::SmallRegions();
  network.limits = limits;
  RegionWorld world{.network = std::make_shared<const RegionNetwork>(std::move(network))};
  world.duration_s = 3600;
  world.variants = {{"calm", 0}};
  return std::make_shared<const RegionWorld>(std::move(world));
}

TEST(CheckLimits, RefusesWhatNothingKeepsAndSaysHowFarOneGets) {
  ThreadPool pool(1);
  EXPECT_TRUE(CheckLimits(WorldWith({}), {0}, &pool).has_value());
  EXPECT_TRUE(CheckLimits(WorldWith({.late_percent = 2}), {0}, &pool).has_value());
  // exp(-20 x 0.4): so many are late though no request waits.
  const Result<void> late = CheckLimits(WorldWith({.late_percent = 0.01}), {0}, &pool);
  ASSERT_FALSE(late.has_value());
  EXPECT_THAT(late.error().message,
              HasSubstr("regions.limits.late_percent: 0.01 cannot be kept: rules that do nothing "
                        "else reach 0.03"));
  const Result<void> carbon = CheckLimits(WorldWith({.carbon_kg_per_h = 1e-6}), {0}, &pool);
  ASSERT_FALSE(carbon.has_value());
  EXPECT_THAT(carbon.error().message, HasSubstr("carbon_kg_per_hour: 1e-06 cannot be kept"));
  const Result<void> dollars = CheckLimits(WorldWith({.dollars_per_h = 0.1}), {0}, &pool);
  ASSERT_FALSE(dollars.has_value());
  EXPECT_THAT(dollars.error().message, HasSubstr("dollars_per_hour: 0.1 cannot be kept"));
}

}  // namespace
}  // namespace rudderfish
