// SPDX-License-Identifier: Apache-2.0
#include "evaluation/scaling_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>

#include "report/report_scaling.h"
#include "report/scaling_figures.h"
#include "tests/support/small_scaling.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using testing::SmallScalingSummary;

// A summary of cost and violations alone.
std::vector<ScalingPolicySummary> Policies(std::vector<std::pair<double, double>> points) {
  std::vector<ScalingPolicySummary> policies;
  for (const auto& [cost, late] : points) {
    ScalingPolicySummary policy;
    policy.core_hours = cost;
    policy.violation_share = late;
    policies.push_back(policy);
  }
  return policies;
}

TEST(ScalingSummary, ReadsBackWhatItWrote) {
  const ScalingSummary& summary = SmallScalingSummary();
  const std::string text = ScalingSummaryText(summary);
  const Result<Json> json = ParseJson(text, "evaluation.json");
  ASSERT_TRUE(json.has_value());
  const Result<ScalingSummary> read = ScalingSummaryOf(*json, "evaluation.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  // All that figures show is there; differences of policies other than the candidate too.
  EXPECT_EQ(ScalingSummaryText(*read), text);
  EXPECT_EQ(ParetoFigure(*read, 0), ParetoFigure(summary, 0));
}

// Nodes and energy are not in what earlier versions wrote, nor is the limit.
TEST(ScalingSummary, ReadsWhatEarlierVersionsWrote) {
  std::string text = ScalingSummaryText(SmallScalingSummary());
  for (const char* key : {"late_max", "node_hours", "energy_wh", "budget_used"})
    text = std::regex_replace(text, std::regex(std::string("\"") + key + "\": [^,]*,"), "");
  const Result<Json> json = ParseJson(text, "evaluation.json");
  ASSERT_TRUE(json.has_value());
  const Result<ScalingSummary> read = ScalingSummaryOf(*json, "evaluation.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->loads[0].policies[0].node_hours, 0);
  EXPECT_EQ(read->late_max, 0.01);
}

// Ten pods of each workload are fifteen cores: one node of sixteen is always enough.
TEST(ScalingSummary, TellsNodesEnergyAndWhatIsUsedOfTheBudget) {
  const ScalingSummary& summary = SmallScalingSummary();
  for (const ScalingLoadSummary& load : summary.loads) {
    for (const ScalingPolicySummary& policy : load.policies) {
      EXPECT_NEAR(policy.node_hours, 1.0 / 6, 1e-9);
      EXPECT_DOUBLE_EQ(summary.BudgetOf(policy), policy.violation_share / 0.01);
    }
  }
  EXPECT_FALSE(summary.draws_power());
  EXPECT_DOUBLE_EQ(BudgetUsed(0.005, 0.02), 0.25);
}

TEST(ScalingSummary, WhatIsWrongIsNamedByItsPlace) {
  const std::string text = ScalingSummaryText(SmallScalingSummary());
  const auto message = [&](const std::string& from, const std::string& to) {
    const Result<Json> json = ParseJson(
        std::regex_replace(text, std::regex(from), to, std::regex_constants::format_first_only),
        "e.json");
    EXPECT_TRUE(json.has_value());
    const Result<ScalingSummary> read = ScalingSummaryOf(*json, "e.json");
    EXPECT_FALSE(read.has_value()) << from;
    return read.has_value() ? "" : read.error().message;
  };
  EXPECT_THAT(message("\"core_hours\": [^,]*", "\"core_hours\": -1"),
              HasSubstr("e.json: loads[0].policies[0].core_hours"));
  EXPECT_THAT(message("\"late_max\": [^,]*", "\"late_max\": 0"), HasSubstr("late_max"));
  EXPECT_THAT(message("\"from\": \"client\"", "\"from\": \"clinet\""),
              HasSubstr("one of the workloads"));
  EXPECT_THAT(message("\"baseline\": \"[^\"]*\"", "\"baseline\": \"hpa\""),
              HasSubstr("loads[0].comparison"));
  EXPECT_THAT(message("\"at_s\": \\[\\s*15.0", "\"at_s\": [0.0"), HasSubstr("times must grow"));
  EXPECT_THAT(message("\"latency_ms\": \\[[^\\]]*\\]", "\"latency_ms\": [1]"),
              HasSubstr("61 latencies"));
}

TEST(ScalingSummary, TimelinesAreThoseOfTheEpisodesThatWereJudged) {
  const ScalingSummary& summary = SmallScalingSummary();
  const ScalingLoadSummary& load = summary.loads[1];
  ASSERT_EQ(load.load, "ramp");
  const ScalingPolicySummary& hpa = load.policies.back();
  ASSERT_EQ(hpa.timeline.size(), 40u);  // 10 minutes.
  double core_hours = 0, before = 0;
  for (const ScalingMoment& moment : hpa.timeline) {
    core_hours += moment.cores * (moment.at_s - before) / 3600;
    before = moment.at_s;
    EXPECT_EQ(moment.pods(), moment.replicas[1] + moment.replicas[2]);
  }
  EXPECT_EQ(before, 600);
  EXPECT_NEAR(
      core_hours,
      testing::SmallScalingEvaluation().at(1, load.candidate(), load.episode_shown).core_hours,
      1e-6);
  EXPECT_LT(hpa.timeline.front().requests_per_s * 3, hpa.timeline.back().requests_per_s);
  EXPECT_TRUE(load.policies[0].timeline.empty());  // Neither candidate nor baseline.
}

TEST(ScalingSummary, LatenciesAreOfAllEpisodes) {
  const ScalingLoadSummary& steady = SmallScalingSummary().loads[0];
  for (const ScalingPolicySummary& policy : steady.policies) {
    ASSERT_EQ(policy.latency_ms.size(), LatencyShares().size());
    EXPECT_TRUE(std::is_sorted(policy.latency_ms.begin(), policy.latency_ms.end()));
    EXPECT_GT(policy.latency_ms[6], 20);  // The half of requests computes 65 ms on average.
    EXPECT_LT(policy.latency_ms[6], 90);
  }
}

TEST(ScalingSummary, TheGraphSumsCallsOverEndpoints) {
  const ScalingSummary& summary = SmallScalingSummary();
  ASSERT_EQ(summary.nodes.size(), 3u);
  EXPECT_TRUE(summary.nodes[0].client);
  EXPECT_EQ(summary.nodes[2].depth, 2);
  ASSERT_EQ(summary.edges.size(), 3u);  // client to web and to db, web to db.
  EXPECT_DOUBLE_EQ(summary.nodes[2].calls_per_request, .75 * 2 + .25);
  EXPECT_DOUBLE_EQ(summary.nodes[1].slot_s, .75 * .04);
}

TEST(Hypervolume, IsTheShareOfTheRectangleThatSomebodyDominates) {
  // One alone: a tenth further than itself in both.
  EXPECT_NEAR(Hypervolume(Policies({{10, .01}})), (1 / 11.) * (1 / 11.), 1e-12);
  // Who costs nothing and is never late dominates all.
  EXPECT_NEAR(Hypervolume(Policies({{10, .01}, {0, 0}})), 1, 1e-12);
  const auto three = Policies({{4, .1}, {6, .01}, {10, .2}});
  EXPECT_EQ(Hypervolume(three, 2), Hypervolume(three));  // The third is dominated.
  EXPECT_LT(Hypervolume(three, 0), Hypervolume(three) - .03);
  EXPECT_EQ(Hypervolume(Policies({{0, 0}})), 0);
}

TEST(ScalingSummary, VerdictsAreOfOneKind) {
  const auto finding = [](ConfidenceInterval cost, ConfidenceInterval late) {
    ScalingLoadSummary load{.episodes = 6, .policies = Policies({{1, 0}, {1, 0}}), .baseline = 0};
    load.policies[1].against_baseline = {.core_hours_ci95 = cost, .violation_share_ci95 = late};
    return load.finding();
  };
  EXPECT_EQ(finding({-2, -1}, {-.1, .0009}), Finding::kBetter);
  EXPECT_EQ(finding({1, 2}, {-.1, -.05}), Finding::kWorse);
  EXPECT_EQ(finding({-2, -1}, {.002, .003}), Finding::kBreaksLimit);
  EXPECT_EQ(finding({-2, 1}, {-.1, .0009}), Finding::kUndecided);
  EXPECT_EQ(finding({-2, -1}, {-.1, .002}), Finding::kUndecided);
}

// `hold` is cheaper, as it leaves half of the requests without an answer: no baseline for costs.
TEST(ScalingSummary, WithoutABaselineThatServesAsWellCostsAreNotCompared) {
  ScalingLoadSummary load{
      .load = "flash", .episodes = 6, .policies = Policies({{1, .5}, {3, .004}}), .baseline = 0};
  load.policies[0].name = "hold";
  load.policies[1].name = "hpa";
  load.policies[1].against_baseline = {.core_hours = 2,
                                       .violation_share = -.496,
                                       .core_hours_ci95 = {1.9, 2.1},
                                       .violation_share_ci95 = {-.5, -.4}};
  EXPECT_FALSE(load.baseline_qualifies());
  EXPECT_EQ(load.finding(), Finding::kBetter);
  EXPECT_THAT(ScalingVerdictText(load),
              HasSubstr("hpa is better: it alone keeps violations within 1 %"));
  load.policies[1].violation_share = .02;  // Neither keeps the limit.
  EXPECT_EQ(load.finding(), Finding::kUndecided);
  EXPECT_THAT(ScalingVerdictText(load),
              HasSubstr("hold has the fewest of the others, so that costs are not compared"));
  load.policies[1].violation_share = .004;
  load.policies[1].against_baseline->violation_share_ci95 = {-.5, .1};
  EXPECT_EQ(load.finding(), Finding::kUndecided);
}

TEST(ScalingSummary, WhatHasNoAnswerIsReadBackAndDrawn) {
  ScalingSummary summary = SmallScalingSummary();
  ScalingPolicySummary& hold = summary.loads[0].policies[0];
  const double never = std::numeric_limits<double>::infinity();
  hold.p95_ms = never;
  std::fill(hold.latency_ms.begin() + 8, hold.latency_ms.end(), never);
  const std::string text = ScalingSummaryText(summary);
  const Result<Json> json = ParseJson(text, "evaluation.json");
  ASSERT_TRUE(json.has_value());
  const Result<ScalingSummary> read = ScalingSummaryOf(*json, "evaluation.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->loads[0].policies[0].p95_ms, never);
  EXPECT_EQ(ScalingSummaryText(*read), text);
  const std::string figure = LatencyFigure(*read, 0);
  EXPECT_THAT(figure, HasSubstr("no answer"));
  EXPECT_EQ(figure.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace rudderfish
