// SPDX-License-Identifier: Apache-2.0
#include "evaluation/outcome_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// Two policies, the candidate by `difference` cheaper on each of so many episodes.
Outcomes TwoPolicies(int episodes, double difference) {
  Outcomes outcomes{.episodes = episodes,
                    .metrics = {{.name = "cost", .unit = "dollars", .title = "costs"}},
                    .policies = {{"old", 1}, {"new", 1}}};
  for (const double cost : {2.0, 2.0 - difference}) {
    RunMatrix runs{.starts = episodes, .seeds = 1};
    for (int i = 0; i < episodes; ++i) runs.values.push_back(cost + i % 2);
    outcomes.runs.push_back(runs);
  }
  return outcomes;
}

TEST(OutcomeText, HasARowForEachPolicyWithTheIntervalOfTheFirstMetric) {
  const std::string table = OutcomesTable(TwoPolicies(8, 0.5), {});
  EXPECT_THAT(table, HasSubstr("policy  costs   95 % interval"));
  EXPECT_THAT(table, HasSubstr("\n  old     2.500  ["));
  EXPECT_THAT(table, HasSubstr("\n  new     2.000  ["));
}

TEST(OutcomeText, SaysWhichIsBetterWithTheDifference) {
  EXPECT_EQ(VerdictText(TwoPolicies(8, 0.5), {}, 0),
            "new is better than old on these 8 episodes: costs -0.500 [-0.500, -0.500] dollars "
            "(-20.0 %)");
  EXPECT_THAT(VerdictText(TwoPolicies(8, -0.5), {}, 0), HasSubstr("new is worse than old"));
  EXPECT_THAT(VerdictText(TwoPolicies(8, 0), {}, 0), HasSubstr("No difference between new and"));
  EXPECT_THAT(VerdictText(TwoPolicies(3, 1), {}, 0), HasSubstr("No difference between new and"));
}

TEST(OutcomeText, JsonHasNoVerdictWithoutABaseline) {
  EXPECT_FALSE(OutcomesJson(TwoPolicies(8, 0.5), {}, -1).contains("verdict"));
  EXPECT_EQ(OutcomesJson(TwoPolicies(8, 0.5), {}, 0)["verdict"]["finding"], "better");
}

}  // namespace
}  // namespace rudderfish
