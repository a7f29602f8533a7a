// SPDX-License-Identifier: Apache-2.0
#include "evaluation/scaling_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "evaluation/pairs.h"
#include "evaluation/scaling_summary.h"
#include "sim/scaling_evaluation.h"
#include "tests/support/small_scaling.h"

namespace rudderfish {
namespace {

struct Made {
  const char* name;
  double core_hours;
  int64_t violations;  // Of 10,000.
  bool foresees = false;
  int members = 1;
};

// One load, ten episodes that differ by more than the policies do.
ScalingEvaluation MadeOf(const std::vector<Made>& list) {
  ScalingEvaluation evaluation{.scenario = "shop", .episodes = 10, .loads = {"ramp"}};
  int first = 0;
  for (const Made& one : list) {
    evaluation.policies.push_back({one.name, one.members, one.foresees, first});
    evaluation.responses.emplace_back();
    first += one.members;
    for (int i = 0; i < one.members * evaluation.episodes; ++i) {
      const int episode = i % evaluation.episodes;
      evaluation.figures.push_back({.requests = 10'000,
                                    .violations = one.violations + episode,
                                    .core_hours = one.core_hours + 0.5 * episode,
                                    .changes = 3});
    }
  }
  return evaluation;
}

OrderedJson PairNamed(const OrderedJson& pairs, std::string_view baseline,
                      std::string_view metric) {
  const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const OrderedJson& pair) {
    return pair["baseline"] == baseline && pair["metric"] == metric;
  });
  return found == pairs.end() ? OrderedJson() : *found;
}

PairLabels LabelsOf(const char* variant) {
  return {{"scenario", "shop"}, {"variant", variant}, {"load", "ramp"}};
}

ScalingSummary SummaryOf(const ScalingEvaluation& evaluation) {
  return Summarize(evaluation, testing::SmallScalingScenario());
}

int BaselineOf(const std::vector<Made>& list) { return SummaryOf(MadeOf(list)).loads[0].baseline; }

TEST(ScalingComparison, TheBaselineIsTheCheapestThatIsNotLaterAndDoesNotForesee) {
  EXPECT_EQ(BaselineOf({{"late", 1, 500},
                        {"dear", 3, 90},
                        {"cheap", 2, 95},
                        {"knows", 1.5, 90, true},
                        {"learned", 1.9, 90}}),
            2);
  EXPECT_EQ(BaselineOf({{"later", 1, 500}, {"late", 2, 400}, {"learned", 1.9, 90}}), 1);
  EXPECT_EQ(BaselineOf({{"learned", 1.9, 90}}), -1);
}

TEST(ScalingComparison, SaysBetterWorseOrNothing) {
  const ScalingEvaluation evaluation = MadeOf({{"hpa", 2, 90},
                                               {"strict", 2, 10},
                                               {"cheap", 1.5, 90},
                                               {"same", 1.9, 90},
                                               {"learned", 1.9, 90, false, 3}});
  const OrderedJson pairs =
      PairsOf(OutcomesOf(evaluation, 0), ScalingRule(), LabelsOf("as-shipped"));
  EXPECT_EQ(pairs.size(), 4u * 3u);
  EXPECT_EQ(PairNamed(pairs, "hpa", "core_hours")["better"], true);
  EXPECT_NEAR(PairNamed(pairs, "hpa", "core_hours")["difference"].get<double>(), -0.1, 1e-9);
  EXPECT_EQ(PairNamed(pairs, "hpa", "core_hours")["seeds"], 3);
  EXPECT_EQ(PairNamed(pairs, "cheap", "core_hours")["better"], false);
  EXPECT_TRUE(PairNamed(pairs, "same", "core_hours")["better"].is_null());
  // Cheaper by being late is not better.
  EXPECT_TRUE(PairNamed(pairs, "strict", "core_hours")["better"].is_null());
  EXPECT_EQ(PairNamed(pairs, "strict", "violations")["better"], false);
  EXPECT_TRUE(PairNamed(pairs, "hpa", "changes")["better"].is_null());
  EXPECT_NE(PairsTable(pairs).find("undecided"), std::string::npos);
  EXPECT_FALSE(SummaryOf(evaluation).better_everywhere());  // Not than the cheap one.
  EXPECT_TRUE(SummaryOf(MadeOf({{"hpa", 2, 90}, {"learned", 1.9, 90}})).better_everywhere());
}

TEST(ScalingComparison, TheTableSaysWhereNetworksStepBackAndToWhat) {
  OrderedJson pairs =
      PairsOf(OutcomesOf(MadeOf({{"hpa", 2, 90}, {"learned", 1.9, 90, false, 3}}), 0),
              ScalingRule(), LabelsOf("tight"));
  for (OrderedJson& pair : pairs) {
    pair["seeds_stepped_back"] = 0;
    pair["stepped_back_to"] = std::vector<std::string>();
  }
  EXPECT_EQ(PairsTable(pairs).find("step back"), std::string::npos);
  for (OrderedJson& pair : pairs) {
    pair["seeds_stepped_back"] = 2;
    pair["stepped_back_to"] = {"hpa:cpu=50", "static:rate=9"};
  }
  const std::string table = PairsTable(pairs);
  const std::string line =
      "shop tight ramp: 2 of 3 seeds of learned step back to hpa:cpu=50, static:rate=9\n";
  ASSERT_NE(table.find(line), std::string::npos) << table;
  EXPECT_EQ(table.find("step back"), table.rfind("step back"));  // Once, not once a pair.
}

TEST(ScalingComparison, HasARowForEveryEpisodeOfEveryMember) {
  const std::string csv = ScalingCsv(MadeOf({{"hpa", 2, 90}, {"learned", 1.9, 90, false, 3}}));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 10 + 30);
  EXPECT_NE(csv.find("ramp,learned,3,9,"), std::string::npos);
}

TEST(ScalingComparison, SeedsOfARecipeAreCountedAndAveraged) {
  const ScalingSummary summary =
      SummaryOf(MadeOf({{"hpa", 2, 90}, {"learned", 1.9, 90, false, 3}}));
  EXPECT_EQ(summary.loads[0].policies[1].seeds, 3);
  EXPECT_NEAR(summary.loads[0].policies[1].core_hours, 1.9 + 0.5 * 4.5, 1e-9);
  EXPECT_NE(ScalingVerdictText(summary.loads[0]).find("learned is better than hpa"),
            std::string::npos);
}

}  // namespace
}  // namespace rudderfish
