// SPDX-License-Identifier: Apache-2.0
#include "evaluation/routing_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

// Three policies on eight episodes of one variant; costs per request.
RoutingEvaluation Small(double candidate_nodes, double candidate_late) {
  RoutingEvaluation evaluation{
      .scenario = "m",
      .regions = 2,
      .episodes = 8,
      .variants = {"calm"},
      .policies = {"static", "locality", "lp"},
      .foresees = {false, false, false},
      .first_member = {0, 1, 2, 3},
      .trials = {{.objective = 1.3}, {.objective = 1.2}, {.objective = 1.0}}};
  const double nodes[] = {1.3, 1.2, candidate_nodes};
  for (int p = 0; p < 3; ++p) {
    for (int i = 0; i < 8; ++i) {
      RoutingFigures one{.requests = 1000, .nodes = 1000 * (nodes[p] + 0.01 * (i % 3))};
      one.late_requests = 1000 * (p == 2 ? candidate_late : 0.01);
      evaluation.figures.push_back(one);
    }
  }
  return evaluation;
}

TEST(RoutingComparison, TheBaselineIsTheBestOfTheOthersOnTrials) {
  EXPECT_EQ(BaselineOf(Small(1, 0.01), 0), 1);
  RoutingEvaluation foreseen = Small(1, 0.01);
  foreseen.foresees[1] = true;
  EXPECT_EQ(BaselineOf(foreseen, 0), 0) << "what knows the future is no rival";
  RoutingEvaluation alone = Small(1, 0.01);
  alone.policies = {"lp"};
  EXPECT_EQ(BaselineOf(alone, 0), -1);
}

TEST(RoutingComparison, ACheaperCandidateThatIsNotLaterIsBetter) {
  const RoutingEvaluation evaluation = Small(1, 0.01);
  EXPECT_TRUE(BetterEverywhere(evaluation));
  EXPECT_THAT(RoutingTable(evaluation),
              HasSubstr("lp is better than locality on these 8 episodes: objective -0.2000 "
                        "[-0.2000, -0.2000] (-16.5 %), late % +0.00"));
}

TEST(RoutingComparison, ACheaperCandidateThatIsLaterIsNot) {
  const RoutingEvaluation evaluation = Small(1, 0.02);
  EXPECT_FALSE(BetterEverywhere(evaluation));
  EXPECT_THAT(RoutingTable(evaluation), HasSubstr("lp is not better than locality"));
}

TEST(RoutingComparison, ALimitStandsInPlaceOfTheBaselinesLateRequests) {
  // A tenth cheaper, but 2 % late instead of 1 %.
  RoutingEvaluation evaluation = Small(0.9, 0.02);
  EXPECT_EQ(Judge(OutcomesOf(evaluation, 0), RoutingRule({}), 1), Finding::kBreaksLimit);
  EXPECT_EQ(Judge(OutcomesOf(evaluation, 0), RoutingRule({.late_percent = 2}), 1),
            Finding::kBetter);
  const RoutingLimits tight{.late_percent = 1.5};
  EXPECT_EQ(Judge(OutcomesOf(evaluation, 0), RoutingRule(tight), 1), Finding::kBreaksLimit);
  evaluation.limits = tight;
  EXPECT_NE(RoutingTable(evaluation).find("late % 2.00 [2.00, 2.00] of at most 1.50"),
            std::string::npos)
      << RoutingTable(evaluation);
  // The cheapest of the others is no baseline where it does not keep a limit.
  EXPECT_EQ(BaselineOf(evaluation, 0), 1);
  evaluation.trials[1].late_share = 0.02;
  EXPECT_EQ(BaselineOf(evaluation, 0), 0);
}

TEST(RoutingComparison, AsJsonAndCsv) {
  const RoutingEvaluation evaluation = Small(1.5, 0.01);
  const Json json = Json::parse(RoutingJson(evaluation));
  EXPECT_EQ(json["kind"], "routing_evaluation");
  const Json& variant = json["variants"][0];
  EXPECT_EQ(variant["policies"].size(), 3);
  EXPECT_NEAR(variant["policies"][1]["objective"].get<double>(), 1.20875, 1e-9);
  EXPECT_EQ(variant["verdict"]["finding"], "worse");
  EXPECT_EQ(variant["pairs"].size(), 2 * 11);
  const std::string csv = RoutingCsv(evaluation);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 24);
}

}  // namespace
}  // namespace rudderfish
