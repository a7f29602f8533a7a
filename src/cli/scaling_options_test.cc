// SPDX-License-Identifier: Apache-2.0
#include "cli/scaling_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

Calibration CalibrationOf(const std::vector<CalibratedSetting>& finalists) {
  return {.scenario = "s",
          .violations_max = 0.01,
          .settings = 9,
          .episodes = 64,
          .seed = 1,
          .finalists = finalists};
}

TEST(RivalOf, IsTheCheapestOfAllThatIsLateNoMoreOftenThanTheAutoscaler) {
  const Calibration hpa = CalibrationOf({{"hpa:cpu=60", 2.0, 0.004}, {"hpa:cpu=50", 2.1, 0.003}});
  const ScalingRival alone = RivalOf(std::span(&hpa, 1));
  EXPECT_EQ(alone.policy, "hpa:cpu=60");
  EXPECT_EQ(alone.episodes, 64);
  EXPECT_NEAR(alone.allowed, 0.0045, 1e-12);
  // Within the limit, but late more often than the autoscaler: no rule for who may not be so.
  const Calibration constant =
      CalibrationOf({{"static:rate=9", 1.5, 0.009}, {"static:rate=10", 1.8, 0.0042}});
  const Calibration calibrations[] = {hpa, constant};
  EXPECT_EQ(RivalOf(calibrations).policy, "static:rate=10");
  EXPECT_EQ(RivalOf(calibrations).record.core_hours, 1.8);
  EXPECT_EQ(RivalOf(calibrations).allowed, alone.allowed);
}

TEST(RivalOf, WhereNoAutoscalerKeepsTheLimitItIsWhoDoes) {
  const Calibration calibrations[] = {CalibrationOf({{"hpa:cpu=30", 2.0, 0.04}}),
                                      CalibrationOf({{"static:rate=9", 2.5, 0.008}})};
  EXPECT_EQ(RivalOf(calibrations).policy, "static:rate=9");
  EXPECT_EQ(RivalOf(calibrations).allowed, 0.01);
}

// By a hundredth of a point constant pods would be the rule, at a sixth more.
TEST(RivalOf, WhereNoPolicyKeepsTheLimitTheCheapestThatIsLateAsTheAutoscalerIs) {
  Calibration calibrations[] = {CalibrationOf({{"keda:share=0.45", 1.849, 0.00131, 3e-5},
                                               {"hpa:cpu=40", 1.9, 0.00132, 3e-5}}),
                                CalibrationOf({{"static:rate=143", 2.167, 0.00115, 3e-5}})};
  for (Calibration& one : calibrations) one.violations_max = 0.001;
  const ScalingRival rival = RivalOf(calibrations);
  EXPECT_EQ(rival.policy, "keda:share=0.45");
  EXPECT_NEAR(rival.allowed, 0.00137, 1e-12);
  EXPECT_THAT(UnkeptLimitText(rival, 0.001), ::testing::HasSubstr("0.137 % are allowed"));
  // Constant pods that are cheaper at no more late requests are the rule.
  calibrations[1].finalists[0].core_hours = 1.8;
  EXPECT_EQ(RivalOf(calibrations).policy, "static:rate=143");
  // Who keeps the limit needs no other.
  calibrations[1].finalists[0] = {"static:rate=160", 2.3, 0.0009};
  EXPECT_EQ(RivalOf(calibrations).policy, "static:rate=160");
  EXPECT_EQ(RivalOf(calibrations).allowed, 0.001);
  EXPECT_EQ(UnkeptLimitText(RivalOf(calibrations), 0.001), "");
}

}  // namespace
}  // namespace rudderfish
