// SPDX-License-Identifier: Apache-2.0
#include "control/routing_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MeanSum Of(int count, double mean, double spread) {
  MeanSum sum;
  for (int i = 0; i < count; ++i) sum.Add(mean + (i % 2 == 0 ? spread : -spread));
  return sum;
}

RouteEvidence Enough() {
  return {.route = "shop",
          .decisions = kRouteDecisionsNeeded,
          .gain = Of(40, 0.1, 0.02),
          .over_baseline = Of(40, 0.05, 0.02),
          .error = Of(40, 0.05, 0.03)};
}

TEST(RoutingEvidence, EnoughOfItLacksNothing) { EXPECT_THAT(WhatIsMissing(Enough()), IsEmpty()); }

TEST(RoutingEvidence, NothingLacksDecisionsAndMeasurements) {
  EXPECT_THAT(WhatIsMissing(RouteEvidence{.route = "shop"}),
              ElementsAre(HasSubstr("shop: 0 of the 100 decisions"),
                          HasSubstr("a measured response time")));
}

TEST(RoutingEvidence, AModelThatIsWrongIsNotTrusted) {
  RouteEvidence evidence = Enough();
  evidence.error = Of(40, -0.3, 0.01);
  EXPECT_THAT(WhatIsMissing(evidence), ElementsAre(HasSubstr("-30.0")));
  evidence.error = Of(29, 0, 0.01);
  EXPECT_THAT(WhatIsMissing(evidence), ElementsAre(HasSubstr("there are 29")));
}

TEST(RoutingEvidence, WorseThanTheBaselineIsSaid) {
  RouteEvidence evidence = Enough();
  evidence.over_baseline = Of(40, -0.05, 0.01);
  EXPECT_THAT(WhatIsMissing(evidence), ElementsAre(HasSubstr("0.05 units more")));
  // Undecided is no reason.
  evidence.over_baseline = Of(40, -0.001, 0.5);
  EXPECT_THAT(WhatIsMissing(evidence), IsEmpty());
}

TEST(RoutingEvidence, ACanaryThatIsSlowerThanPredictedEnds) {
  RouteTrial trial{.route = "shop", .done = 20, .failed = 0, .beyond_predicted = Of(20, 0.5, 0.1)};
  ASSERT_TRUE(WhyWorse(trial).has_value());
  EXPECT_THAT(*WhyWorse(trial), HasSubstr("+50.0"));
  EXPECT_THAT(WhatIsMissing(trial), ElementsAre(HasSubstr("do what is predicted")));
  trial.beyond_predicted = Of(20, 0.1, 0.1);
  EXPECT_FALSE(WhyWorse(trial).has_value());
  EXPECT_THAT(WhatIsMissing(trial), IsEmpty());
}

TEST(RoutingEvidence, ACanaryThatCannotSetSplitsEnds) {
  const RouteTrial trial{.route = "shop", .done = 7, .failed = 3, .beyond_predicted = {}};
  ASSERT_TRUE(WhyWorse(trial).has_value());
  EXPECT_THAT(*WhyWorse(trial), HasSubstr("3 of 10 splits could not be set"));
  EXPECT_FALSE(WhyWorse(RouteTrial{.route = "shop", .done = 6, .failed = 3}).has_value());
}

}  // namespace
}  // namespace rudderfish
