// SPDX-License-Identifier: Apache-2.0
#include "run/split_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A route of which 20 % instead of 10 % were sent to `us`, 200 ms before and 100 ms predicted.
class SplitTrialTest : public ::testing::Test {
 protected:
  void SetUp() override {
    route_.name = "web";
    route_.backends = {{"eu", "one"}, {"us", "two"}};
    trial_.Begin({.row = 7,
                  .at = At(99),
                  .before = {{"eu", 0.9}, {"us", 0.1}},
                  .after = {{"eu", 0.8}, {"us", 0.2}},
                  .measured_ms = 200,
                  .predicted_ms = 100});
  }
  static Instant At(int time_s) { return Instant(seconds(time_s)); }
  std::optional<SplitTrial::Outcome> Measure(double latency_s, int measured_at_s, int now_s) {
    const SignalValue latency{.value = latency_s, .at = At(measured_at_s)};
    return trial_.Measure(route_, {.standing = &standing_, .weight_sum = 256}, latency, At(now_s),
                          seconds(60));
  }

  RouteConfig route_;
  StandingWeights standing_{
      .target = "web",
      .backends = {{.name = "one", .weight = 205}, {.name = "two", .weight = 51}},
      .notes = {}};
  SplitTrial trial_;
};

TEST_F(SplitTrialTest, WhatWasSetIsMeasuredOnceItHasSettled) {
  EXPECT_FALSE(Measure(0.1, 200, 200)) << "it is not set yet";
  EXPECT_THAT(trial_.WhyHeld(At(99)), IsEmpty());
  EXPECT_EQ(trial_.End(At(100)), 7);
  EXPECT_EQ(trial_.End(At(101)), std::nullopt) << "it has ended";
  EXPECT_THAT(trial_.WhyHeld(At(101)), HasSubstr("has not been measured yet"));
  EXPECT_FALSE(Measure(0.1, 159, 165));
  const auto outcome = Measure(0.12, 160, 165);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->change.row, 7);
  EXPECT_DOUBLE_EQ(outcome->measured_ms, 120);
  EXPECT_FALSE(outcome->is_slower);
  EXPECT_THAT(trial_.WhyHeld(At(165)), IsEmpty());
  EXPECT_FALSE(Measure(0.12, 170, 170)) << "it was measured";
}

TEST_F(SplitTrialTest, WhatCouldNotBeSetIsNotMeasured) {
  EXPECT_EQ(trial_.End(std::nullopt), 7);
  EXPECT_THAT(trial_.WhyHeld(At(100)), IsEmpty());
  EXPECT_FALSE(Measure(0.1, 200, 200));
}

TEST_F(SplitTrialTest, SlowerThanPredictedAndThanBeforeIsHeldAgainstIt) {
  trial_.End(At(100));
  const auto outcome = Measure(0.25, 160, 160);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->is_slower);
  trial_.Hold(At(160), seconds(60));
  EXPECT_THAT(trial_.WhyHeld(At(161)), HasSubstr("the route is left alone for"));
  EXPECT_THAT(trial_.WhyHeld(At(760)), IsEmpty());
}

TEST_F(SplitTrialTest, WhatWasAsSlowBeforeIsNotHeldAgainstIt) {
  trial_.End(At(100));
  EXPECT_FALSE(Measure(0.21, 160, 160).value().is_slower);
}

TEST_F(SplitTrialTest, ASplitThatSomebodyChangedIsForgotten) {
  trial_.End(At(100));
  standing_.backends[0].weight = 100;
  EXPECT_FALSE(Measure(0.25, 160, 160));
  EXPECT_THAT(trial_.WhyHeld(At(160)), IsEmpty());
}

TEST_F(SplitTrialTest, WhatIsNotMeasuredInTimeIsForgotten) {
  trial_.End(At(100));
  EXPECT_FALSE(Measure(0.25, 100, 280));
  EXPECT_THAT(trial_.WhyHeld(At(280)), HasSubstr("has not been measured yet"));
  EXPECT_FALSE(Measure(0.25, 100, 281));
  EXPECT_THAT(trial_.WhyHeld(At(281)), IsEmpty());
}

}  // namespace
}  // namespace rudderfish
