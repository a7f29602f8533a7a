// SPDX-License-Identifier: Apache-2.0
#include "control/placement_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

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
  shadow.differences = {812};
  shadow.difference = "default/x on a: Insufficient cpu";
  EXPECT_THAT(WhatIsMissing(Mode::kAdvise, shadow, {}),
              ElementsAre(HasSubstr("1 differ (comparison 812), the newest: default/x on a: "
                                    "Insufficient cpu")));
  shadow.different = 2;
  shadow.differences = {812, 9};
  EXPECT_THAT(WhatIsMissing(Mode::kAdvise, shadow, {}),
              ElementsAre(HasSubstr("2 differ (comparisons 812, 9), the newest: default/x")));
  shadow.different = 3;  // More than have been named.
  EXPECT_THAT(WhatIsMissing(Mode::kAdvise, shadow, {}),
              ElementsAre(HasSubstr("3 differ (comparisons 812, 9, ...), the newest")));
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

TEST(PlacementEvidence, FewMeasuredErrorsSayNothingOfTheModel) {
  ShadowEvidence shadow = GoodShadow();
  shadow.error = SumOf(29, 0, 0);  // Without width.
  EXPECT_THAT(WhatIsMissing(Mode::kCanary, shadow, {}),
              ElementsAre("30 measured errors of the Model: there are 29"));
  shadow.error = SumOf(1, 0, 0);
  EXPECT_THAT(WhatIsMissing(Mode::kCanary, shadow, {}),
              ElementsAre("30 measured errors of the Model: there is 1"));
  shadow.error = SumOf(30, 0, 0);
  EXPECT_THAT(WhatIsMissing(Mode::kCanary, shadow, {}), IsEmpty());
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
  trial.canary = {.pods = 30, .bad = 12, .change = {}};
  trial.control = {.pods = 80, .bad = 1, .change = {}};
  EXPECT_THAT(WhyWorse(trial).value_or(""), HasSubstr("12 of its 30 pods"));
  trial.canary.pods = 29;  // Too few to say.
  EXPECT_FALSE(WhyWorse(trial).has_value());
  trial.canary = {.pods = 30, .bad = 4, .change = {}};
  trial.control = {.pods = 100'000, .bad = 1, .change = {}};
  EXPECT_FALSE(WhyWorse(trial).has_value());
  trial.canary.bad = 5;
  EXPECT_TRUE(WhyWorse(trial).has_value());
}

TEST(PlacementEvidence, AControlGroupWithoutABadPodIsNoProofThatNoneWouldBe) {
  TrialEvidence trial;
  trial.canary = {.pods = 5000, .bad = 6, .change = {}};
  for (const int64_t pods : {1, 30, 1000}) {
    trial.control.pods = pods;
    EXPECT_FALSE(WhyWorse(trial).has_value()) << pods;
  }
  trial.canary.bad = 200;
  EXPECT_TRUE(WhyWorse(trial).has_value());
}

// Newcombe 1998, table II: 56 of 70 and 48 of 80, where the interval of 95 % has no 0 and one that
// is wider by half has.
TEST(PlacementEvidence, OfSharesItTakesMoreThanOneLookWould) {
  TrialEvidence trial;
  trial.canary = {.pods = 70, .bad = 56, .change = {}};
  trial.control = {.pods = 80, .bad = 48, .change = {}};
  EXPECT_FALSE(WhyWorse(trial).has_value());
  trial.canary = {.pods = 700, .bad = 560, .change = {}};
  trial.control = {.pods = 800, .bad = 480, .change = {}};
  EXPECT_TRUE(WhyWorse(trial).has_value());
}

// The mean of 55 such values is not to the last bit that of 30.
TEST(PlacementEvidence, RoundingIsNotWorse) {
  TrialEvidence trial;
  trial.canary.change = SumOf(55, 3e-4, 0);
  trial.control.change = SumOf(30, 3e-4, 0);
  ASSERT_GT(trial.canary.change.mean(), trial.control.change.mean());
  EXPECT_FALSE(WhyWorse(trial).has_value());
}

// A canary beside its control group, pod by pod.
struct Canary {
  double share = 0.5;
  double shift = 0;                 // Of a change, in standard deviations.
  double bad = 0.02, bad_more = 0;  // Shares of pods.
  bool is_skewed = false;           // Many change little, few gain much.

  // After how many pods it was ended; nothing: it was not.
  std::optional<int> EndOf(int pods, Rng* rng) const {
    TrialEvidence trial;
    for (int i = 1; i <= pods; ++i) {
      const bool is_canary = rng->Uniform() < share;
      GroupEvidence& group = is_canary ? trial.canary : trial.control;
      ++group.pods;
      group.bad += rng->Uniform() < bad + (is_canary ? bad_more : 0) ? 1 : 0;
      const double chance = is_skewed ? -std::exp(rng->Normal()) : rng->Normal();
      group.change.Add(chance + (is_canary ? shift : 0));
      if (i % 10 == 0 && WhyWorse(trial)) return i;
    }
    return std::nullopt;
  }
  int EndedOf(int trials, int pods) const {
    Rng rng(7);
    int ended = 0;
    for (int i = 0; i < trials; ++i) ended += EndOf(pods, &rng) ? 1 : 0;
    return ended;
  }
};

TEST(PlacementEvidence, ACanaryThatIsNoWorseIsSeldomEndedHoweverOftenItIsLookedAt) {
  EXPECT_LE(Canary{.share = 0.1}.EndedOf(100, 10'000), 5);
  EXPECT_LE((Canary{.share = 0.1, .is_skewed = true}).EndedOf(100, 10'000), 5);
  EXPECT_LE(Canary{.share = 0.5}.EndedOf(200, 2'000), 10);
}

TEST(PlacementEvidence, ACanaryThatIsWorseIsEndedSoon) {
  EXPECT_EQ((Canary{.share = 0.5, .shift = 1}).EndedOf(200, 200), 200);
  EXPECT_EQ((Canary{.share = 0.5, .bad_more = 0.4}).EndedOf(200, 200), 200);
  EXPECT_EQ((Canary{.share = 0.1, .shift = 1}).EndedOf(100, 800), 100);
}

}  // namespace
}  // namespace rudderfish
