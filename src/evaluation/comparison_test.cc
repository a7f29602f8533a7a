// SPDX-License-Identifier: Apache-2.0
#include "evaluation/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tests/support/small_evaluation.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeUpEvaluation;
using ::testing::StartsWith;

// Eight starts.
const std::vector<double> kStay(8, 100), kSome = {60, 62, 64, 66, 68, 70, 72, 74}, kMost = {50, 53,
                                                                                            51, 56,
                                                                                            58, 57,
                                                                                            66, 61};

Evaluation Three() {
  return MadeUpEvaluation({{"stay", {kStay}}, {"some", {kSome}}, {"most", {kMost}}});
}

std::vector<std::string> Keys(const OrderedJson& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

OrderedJson Parsed(const Evaluation& evaluation) {
  return OrderedJson::parse(EvaluationJson(evaluation, Compare(evaluation)));
}

TEST(Comparison, SummaryHasMeansAndWorstCases) {
  Evaluation evaluation = MadeUpEvaluation({{"one", {{90, 130, 110, 70}}}});
  const PolicySummary summary = Compare(evaluation).policies[0];
  EXPECT_DOUBLE_EQ(summary.mean_initial_ms, 100);
  EXPECT_DOUBLE_EQ(summary.mean_final_ms, 100);
  EXPECT_DOUBLE_EQ(summary.iqm_final_ms, 100);  // Of 90 and 110.
  EXPECT_DOUBLE_EQ(summary.worst_final_ms, 130);
  EXPECT_EQ(summary.worst_start, 11);
  EXPECT_DOUBLE_EQ(summary.worst_change_ms, 30);
  EXPECT_DOUBLE_EQ(summary.mean_moves, 1);
  EXPECT_DOUBLE_EQ(summary.stopped_share, 1);
  EXPECT_LE(summary.mean_final_ci.low, 100);
  EXPECT_GE(summary.mean_final_ci.high, 100);
}

TEST(Comparison, BaselineIsTheBestOfTheOthers) {
  const Comparison comparison = Compare(MadeUpEvaluation(
      {{"stay", {kStay}}, {"most", {kMost}}, {"some", {kSome}}, {"last", {kStay}}}));
  ASSERT_TRUE(comparison.verdict.has_value());
  EXPECT_EQ(comparison.verdict->candidate, 3);
  EXPECT_EQ(comparison.verdict->baseline, 1);
}

TEST(Comparison, CandidateIsBetterWhereItsIntervalLiesBelowZero) {
  const Comparison comparison = Compare(Three());
  EXPECT_TRUE(comparison.better());
  EXPECT_LT(comparison.verdict->paired.difference_ci.high, 0);
  EXPECT_DOUBLE_EQ(comparison.verdict->paired.difference_ms, Mean(kMost) - Mean(kSome));
  EXPECT_EQ(comparison.verdict->paired.starts_better, 8);
  EXPECT_THAT(comparison.verdict->text,
              StartsWith("most is better than some on these 8 starts: -10.5 ms ["));
}

TEST(Comparison, CandidateIsNotBetterWhereItIsWorse) {
  const Comparison comparison =
      Compare(MadeUpEvaluation({{"stay", {kStay}}, {"most", {kMost}}, {"some", {kSome}}}));
  EXPECT_FALSE(comparison.better());
  EXPECT_EQ(comparison.verdict->finding, Finding::kWorse);
  EXPECT_THAT(comparison.verdict->text, StartsWith("some is not better than most; it is worse"));
}

TEST(Comparison, NothingIsShownWhereTheIntervalHoldsZero) {
  const Comparison comparison =
      Compare(MadeUpEvaluation({{"a", {kSome}}, {"b", {{62, 60, 66, 64, 70, 68, 74, 72}}}}));
  EXPECT_FALSE(comparison.better());
  EXPECT_EQ(comparison.verdict->finding, Finding::kUndecided);
  EXPECT_THAT(comparison.verdict->text,
              StartsWith("No difference between b and a can be shown on these 8 starts: 0.0 ms"));
}

TEST(Comparison, FiveStartsShowNothingHoweverTheyEnd) {
  const Comparison comparison =
      Compare(MadeUpEvaluation({{"a", {{90, 90, 90, 90, 90}}}, {"b", {{1, 1, 1, 1, 1}}}}));
  EXPECT_FALSE(comparison.better());
  EXPECT_THAT(comparison.verdict->text, HasSubstr("at least 6 are needed"));
}

TEST(Comparison, OnePolicyHasNoVerdict) {
  const Evaluation evaluation = MadeUpEvaluation({{"alone", {kSome}}});
  const Comparison comparison = Compare(evaluation);
  EXPECT_FALSE(comparison.verdict.has_value());
  EXPECT_FALSE(comparison.better());
  EXPECT_TRUE(Parsed(evaluation)["verdict"].is_null());
  EXPECT_THAT(ComparisonTable(evaluation, comparison), Not(HasSubstr("Verdict")));
}

TEST(Comparison, SeedsThatDisagreeWidenTheInterval) {
  const std::vector<double> good(8, 50), bad(8, 90), base(8, 75);
  const Comparison apart = Compare(MadeUpEvaluation({{"base", {base}}, {"group", {good, bad}}}));
  EXPECT_DOUBLE_EQ(apart.verdict->paired.difference_ms, -5);
  EXPECT_EQ(apart.verdict->finding, Finding::kUndecided);
  EXPECT_DOUBLE_EQ(apart.verdict->paired.probability_of_improvement, 0.5);
  EXPECT_THAT(apart.verdict->text, HasSubstr("over starts and 2 training seeds"));
}

TEST(Comparison, ShareOfBestIsMeasuredByTheBestEpisodeOfEachStart) {
  const Comparison comparison = Compare(MadeUpEvaluation({{"a", {{60, 100}}}, {"b", {{80, 90}}}}));
  // The best ends are 60 and 90: 50 ms can be won.
  EXPECT_DOUBLE_EQ(comparison.policies[0].share_of_best.value(), 40.0 / 50);
  EXPECT_DOUBLE_EQ(comparison.policies[1].share_of_best.value(), 30.0 / 50);
}

TEST(Comparison, ShareOfOptimumCountsOnlyStartsThatWereProven) {
  Evaluation evaluation = MadeUpEvaluation({{"a", {{60, 100}}}});
  EXPECT_FALSE(Compare(evaluation).policies[0].share_of_optimum.has_value());
  evaluation.starts[0].optimum_ms = 20;               // 80 can be won, costs paid,
  evaluation.policies[0].episodes[0].return_ms = 36;  // and 36 of the 40 are left.
  const PolicySummary summary = Compare(evaluation).policies[0];
  EXPECT_DOUBLE_EQ(summary.share_of_optimum.value(), 36.0 / 80);
  EXPECT_EQ(summary.proven_starts, 1);
}

TEST(Comparison, EachPatternIsSummarizedAlone) {
  const Comparison comparison = Compare(Three());
  ASSERT_EQ(comparison.patterns.size(), 2);
  EXPECT_EQ(comparison.patterns[0].name, "even");
  EXPECT_EQ(comparison.patterns[1].starts, 4);
  EXPECT_DOUBLE_EQ(comparison.patterns[0].policies[1].mean_final_ms, (60 + 64 + 68 + 72) / 4.0);
  EXPECT_DOUBLE_EQ(comparison.patterns[0].paired->difference_ms, (50 + 51 + 58 + 66 - 264) / 4.0);
}

TEST(EvaluationJson, HasTheFixedKeys) {
  const OrderedJson json = Parsed(Three());
  EXPECT_THAT(Keys(json), ElementsAre("schema_version", "scenario", "seed", "objective", "policies",
                                      "verdict"));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["objective"], (OrderedJson{{"name", "latency"}, {"unit", "ms"}}));
  const OrderedJson& policy = json["policies"][2];
  for (const char* key : {"name", "episodes", "decide_us", "summary"})
    EXPECT_TRUE(policy.contains(key)) << key;
  const OrderedJson& episode = policy["episodes"][3];
  for (const char* key :
       {"start", "initial", "final", "terms", "allowed_actions", "return", "decisions"}) {
    EXPECT_TRUE(episode.contains(key)) << key;
  }
  EXPECT_EQ(episode["start"], 13);
  EXPECT_FALSE(episode.contains("training_seed"));
  EXPECT_THAT(Keys(episode["terms"]), ElementsAre("initial", "final"));
  EXPECT_EQ(episode["terms"]["final"]["latency_ms"], 56);
  EXPECT_THAT(Keys(episode["decisions"][0]), ElementsAre("kind", "pod", "from", "to", "predicted"));
  EXPECT_THAT(Keys(policy["decide_us"]), ElementsAre("p50", "p99"));
  EXPECT_THAT(Keys(policy["plan_us"]), ElementsAre("mean", "p99"));
  for (const char* key : {"mean_initial", "mean_final", "ci95", "worst", "moves"}) {
    EXPECT_TRUE(policy["summary"].contains(key)) << key;
  }
  for (const char* key : {"better", "baseline", "candidate", "paired_difference",
                          "paired_difference_ci95", "probability_of_improvement", "text"}) {
    EXPECT_TRUE(json["verdict"].contains(key)) << key;
  }
  EXPECT_EQ(json["verdict"]["better"], true);
  EXPECT_EQ(json["verdict"]["paired_difference_ci95"].size(), 2);
}

TEST(EvaluationJson, NumbersReadBackToTheSameBits) {
  Evaluation evaluation = MadeUpEvaluation({{"a", {{1.0 / 3, 1e-7 + 200}}}});
  const OrderedJson json = Parsed(evaluation);
  EXPECT_EQ(json["policies"][0]["episodes"][0]["final"].get<double>(), 1.0 / 3);
  EXPECT_EQ(json["policies"][0]["episodes"][1]["final"].get<double>(), 1e-7 + 200);
}

TEST(EvaluationJson, EpisodesOfAGroupNameTheirTrainingSeed) {
  const OrderedJson json = Parsed(MadeUpEvaluation({{"group", {{50, 60}, {70, 80}}}}));
  const OrderedJson& episodes = json["policies"][0]["episodes"];
  ASSERT_EQ(episodes.size(), 4);
  EXPECT_EQ(episodes[2]["training_seed"], 1);
  EXPECT_EQ(episodes[2]["start"], 10);
  EXPECT_EQ(episodes[2]["final"], 70);
}

TEST(EvaluationJson, NamesThatAreNoUtf8AreStillWritten) {
  Evaluation evaluation = MadeUpEvaluation({{"a\xff", {{50}}}});
  EXPECT_EQ(Parsed(evaluation)["policies"][0]["name"], "a\xEF\xBF\xBD");
}

TEST(ComparisonTable, FitsAHundredColumns) {
  const std::string name(60, 'n');
  Evaluation evaluation = MadeUpEvaluation({{"stay", {kStay}}, {name, {kSome, kMost, kMost}}});
  for (EvaluatedPolicy& policy : evaluation.policies) {
    for (EvaluatedEpisode& episode : policy.episodes) episode.final.latency_ms *= 100;
  }
  evaluation.starts[0].optimum_ms = 10;
  const std::string table = ComparisonTable(evaluation, Compare(evaluation));
  EXPECT_THAT(table, HasSubstr("(3 seeds)"));
  EXPECT_THAT(table, HasSubstr("  even "));
  size_t begin = 0;
  while (begin < table.size()) {
    const size_t end = table.find('\n', begin);
    EXPECT_LE(end - begin, 100) << table.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(EpisodesCsv, HasARowAnEpisodeAndQuotesWhatNeedsIt) {
  const std::string csv = EpisodesCsv(MadeUpEvaluation({{"a,\"b\"", {{50.5, 60}}}}));
  EXPECT_THAT(csv, HasSubstr("\nmade-up,\"a,\"\"b\"\"\",0,10,even,100,50.5,49.5,1,5,1\n"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

TEST(SignedText, HasNoSignForWhatRoundsToZero) {
  EXPECT_EQ(SignedText(-3.25, 1), "-3.2");
  EXPECT_EQ(SignedText(3.26, 1), "+3.3");
  EXPECT_EQ(SignedText(-0.01, 1), "0.0");
}

}  // namespace
}  // namespace rudderfish
