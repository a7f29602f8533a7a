// SPDX-License-Identifier: Apache-2.0
#include "control/placement_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MeanSum SumOf(int64_t count, double mean, double spread) {
  MeanSum sum;
  for (int64_t i = 0; i < count; ++i) sum.Add(mean + (i % 2 == 0 ? spread : -spread));
  return sum;
}

ShadowEvidence GoodShadow() {
  ShadowEvidence shadow;
  shadow.equal = 500;
  shadow.gain = SumOf(500, 1e-3, 1e-4);
  shadow.error = SumOf(400, 1e-5, 1e-5);
  return shadow;
}

TEST(PlacementEvidence, NothingIsMissingWhereAllIsThere) {
  EXPECT_THAT(WhatIsMissing(Mode::kAdvise, GoodShadow(), {}), IsEmpty());
  EXPECT_THAT(WhatIsMissing(Mode::kCanary, GoodShadow(), {}), IsEmpty());
}

TEST(PlacementEvidence, ShadowNeedsNone) {
  EXPECT_THAT(WhatIsMissing(Mode::kShadow, {}, {}), IsEmpty());
}

TEST(PlacementEvidence, OneDecisionLessThanEnoughIsSaid) {
  ShadowEvidence shadow = GoodShadow();
  shadow.equal = 499;
  EXPECT_THAT(WhatIsMissing(Mode::kAdvise, shadow, {}),
              ElementsAre("499 of the 500 shadowed decisions that are needed"));
}

TEST(PlacementEvidence, ADifferenceOfRulesIsNamed) {
  ShadowEvidence shadow = GoodShadow();
  shadow.different = 1;
  shadow.difference = "default/x on a: Insufficient cpu";
  EXPECT_THAT(WhatIsMissing(Mode::kAdvise, shadow, {}),
              ElementsAre(HasSubstr("1 differ, the newest: default/x on a: Insufficient cpu")));
}

TEST(PlacementEvidence, AGainWithinTheModelsErrorIsNone) {
  ShadowEvidence shadow = GoodShadow();
  shadow.error = SumOf(400, -2e-3, 1e-5);
  EXPECT_THAT(WhatIsMissing(Mode::kAdvise, shadow, {}),
              ElementsAre(HasSubstr("a predicted gain beyond the Model's measured error")));
  shadow.error = {};
  EXPECT_THAT(WhatIsMissing(Mode::kAdvise, shadow, {}),
              ElementsAre(HasSubstr("nothing was measured")));
}

TEST(PlacementEvidence, EnforceNeedsACanaryThatIsNotWorse) {
  TrialEvidence trial;
  EXPECT_THAT(WhatIsMissing(Mode::kEnforce, GoodShadow(), trial),
              ElementsAre(HasSubstr("there are 0 and 0")));
  trial.canary = {.pods = 40, .bad = 0, .change = SumOf(40, 1e-4, 1e-5)};
  trial.control = {.pods = 40, .bad = 0, .change = SumOf(40, 2e-4, 1e-5)};
  EXPECT_THAT(WhatIsMissing(Mode::kEnforce, GoodShadow(), trial), IsEmpty());
  std::swap(trial.canary, trial.control);
  EXPECT_THAT(WhatIsMissing(Mode::kEnforce, GoodShadow(), trial),
              ElementsAre(HasSubstr("no worse than its control group")));
}

TEST(PlacementEvidence, ACanaryIsWorseOnlyBeyondChance) {
  TrialEvidence trial;
  trial.canary = {.pods = 40, .bad = 0, .change = SumOf(40, 1.1e-4, 1e-4)};
  trial.control = {.pods = 40, .bad = 0, .change = SumOf(40, 1e-4, 1e-4)};
  EXPECT_FALSE(WhyWorse(trial).has_value());
  trial.canary.change = SumOf(40, 3e-4, 1e-4);
  EXPECT_TRUE(WhyWorse(trial).has_value());
}

TEST(PlacementEvidence, ACanaryWhosePodsFailIsWorseBeforeAnythingIsMeasured) {
  TrialEvidence trial;
  trial.canary = {.pods = 20, .bad = 8, .change = {}};
  trial.control = {.pods = 80, .bad = 1, .change = {}};
  EXPECT_THAT(WhyWorse(trial).value_or(""), HasSubstr("8 of its 20 pods"));
  trial.canary.bad = 4;  // Too few to say.
  EXPECT_FALSE(WhyWorse(trial).has_value());
}

}  // namespace
}  // namespace rudderfish
