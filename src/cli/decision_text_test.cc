// SPDX-License-Identifier: Apache-2.0
#include "cli/decision_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/decision_list.h"

namespace rudderfish {
namespace {

using testing::HasSubstr;
using testing::Not;

StoredRow Moved() {
  StoredRow stored{.number = 17, .written_at = 1'000'000};
  JournalRow& row = stored.row;
  row.application = "shop";
  row.mode = "shadow";
  row.policy = "lookahead";
  row.baseline = "greedy";
  row.seen = {30, 10, 15, 3, 2};
  row.predicted = {20, 11, 5, 3, 1};
  row.predicted_gain_ms = 10;
  row.step_cost_ms = 0.2;
  row.allowed_cells = 5;
  row.chosen = {{"web-1", "edge-1", "cloud-1"}};
  row.considered = {{row.chosen[0], "web", row.predicted, 3}, {std::nullopt, "", row.seen, 1}};
  row.refused = {{"db", "", "may not be moved"},
                 {"", "dev-1", "layer client accepts no pods that are moved"},
                 {"web", "edge-2", "asks for 2 CPU, 1 is free"}};
  row.refused_count = 5;
  row.verdict = {.allowed = true, .reason = ""};
  row.fate = Fate::kRecorded;
  return stored;
}

TEST(DecisionText, StoryTellsWhyWhatElseAndWhatNot) {
  const std::string story = MoveStory(Moved(), "web-1", 1'060'000);
  for (const char* part :
       {"web-1 from edge-1 to cloud-1 would be moved (shadow: nothing was touched)",
        "decision 17 of shop, 60s ago", "latency 30.0 -> 20.0 ms, 10.0 ms less",
        "network 10.0 ms less, execution 1.0 ms more, queueing\n1.0 ms less",
        "greedy would choose: stay", "* web-1 from edge-1 to cloud-1", "web to edge-2: asks for 2",
        "anything to dev-1: layer client", "2 more were counted, but not kept"}) {
    EXPECT_THAT(story, HasSubstr(part));
  }
  EXPECT_THAT(story, Not(HasSubstr("db anywhere"))) << "another workload's";
}

TEST(DecisionText, AnotherPodOfTheWorkloadStandsForOneThatWasAskedAbout) {
  EXPECT_THAT(MoveStory(Moved(), "web-9", 1'060'000), HasSubstr("web-1 represents web-9"));
  EXPECT_THAT(MoveStory(Moved(), "db-1", 1'060'000), HasSubstr("db anywhere: may not be moved"));
}

TEST(DecisionText, PodThatStaysIsNamedWithWhatHoldsIt) {
  StoredRow stayed = Moved();
  stayed.row.chosen.clear();
  stayed.row.fate = Fate::kStayed;
  EXPECT_THAT(MoveStory(stayed, "db-1", 1'060'000), HasSubstr("db-1 stays: it may not be"));
  EXPECT_THAT(MoveStory(stayed, "web-2", 1'060'000), HasSubstr("web-2 stays: nothing is moved"));
  EXPECT_THAT(MoveStory(stayed, "web-2", 1'060'000), HasSubstr("\n* stay"));
}

TEST(DecisionText, StayingIsMarkedWhereItIsNoneOfTheAlternatives) {
  StoredRow stayed = Moved();
  EXPECT_THAT(MoveStory(stayed, "web-2", 1'060'000), HasSubstr("\n  as it was"));
  stayed.row.chosen.clear();
  stayed.row.considered.pop_back();
  EXPECT_THAT(MoveStory(stayed, "web-2", 1'060'000), HasSubstr("\n* as it was"));
}

TEST(DecisionText, PodThatRestsIsNamedWithWhy) {
  StoredRow stored = Moved();
  stored.row.refused.insert(stored.row.refused.begin(),
                            {"web", "", "was moved 5 s ago and rests for 60 s", "web-7"});
  const std::string story = MoveStory(stored, "web-7", 1'060'000);
  EXPECT_THAT(story,
              HasSubstr("web-7 was not considered: it was moved 5 s ago and rests for 60 s.\n"));
  EXPECT_THAT(story, Not(HasSubstr("represents web-7")));
  EXPECT_THAT(story, HasSubstr("\n  web-7 anywhere: was moved 5 s ago"));
  EXPECT_THAT(MoveStory(stored, "web-1", 1'060'000), Not(HasSubstr("web-7")));

  stored.row.chosen.clear();
  stored.row.fate = Fate::kStayed;
  EXPECT_THAT(MoveStory(stored, "web-7", 1'060'000),
              HasSubstr("web-7 stays: it was moved 5 s ago"));
  const std::vector<StoredDecision> rows{stored};
  EXPECT_THAT(DecisionTable(rows, 1'060'000, Width::kWide),
              HasSubstr("web-7 was moved 5 s ago and rests for 60 s"));
}

TEST(DecisionText, PlanThatHasMadeItsMovesIsTheReasonToStay) {
  StoredRow stored = Moved();
  stored.row.chosen.clear();
  stored.row.fate = Fate::kStayed;
  stored.row.refused = {{"", "", "the plan has made 2 of its 2 moves"}};
  const std::string story = MoveStory(stored, "web-1", 1'060'000);
  EXPECT_THAT(story, HasSubstr("nothing is moved: the plan has made 2 of its 2 moves"));
  EXPECT_THAT(story, HasSubstr("\n  anything anywhere: the plan has made 2"));
}

TEST(DecisionText, ScoresAreShownOfPoliciesThatRank) {
  EXPECT_THAT(MoveStory(Moved(), "", 1'060'000), HasSubstr("SCORE"));
  StoredRow unranked = Moved();
  for (Alternative& one : unranked.row.considered) one.score.reset();
  EXPECT_THAT(MoveStory(unranked, "", 1'060'000), Not(HasSubstr("SCORE")));
}

TEST(DecisionText, JsonNamesItsSchemaAndADateWithItsZone) {
  const std::vector<StoredDecision> rows{Moved()};
  for (const std::string& json : {DecisionsJson(rows), DecisionJson(rows[0]).value()}) {
    EXPECT_THAT(json, HasSubstr("\"schema_version\": 2"));
    EXPECT_THAT(json, HasSubstr("\"written_at\": \"1970-01-01T00:16:40.000Z\""));
  }
}

TEST(DecisionText, TableIsWiderIfAskedFor) {
  const std::vector<StoredDecision> rows{Moved()};
  const std::string table = DecisionTable(rows, 1'060'000, Width::kNormal);
  EXPECT_THAT(table, HasSubstr("recorded"));
  EXPECT_THAT(table, Not(HasSubstr("lookahead")));
  EXPECT_THAT(DecisionTable(rows, 1'060'000, Width::kWide), HasSubstr("lookahead"));
}

StoredComparison Compared() {
  StoredComparison stored{.number = 7, .written_at = 1'000'000};
  stored.row = {.pod = {"shop", "web-1", "u"},
                .scheduler = "default-scheduler",
                .policy = "greedy",
                .objective = "balance",
                .node = "n2",
                .policy_node = "n1",
                .baseline_node = "n2",
                .policy_change = 1e-6,
                .baseline_change = 3e-6};
  stored.outcome = {.fate = "started", .measured_gain = 1e-6};
  return stored;
}

TEST(DecisionText, DecisionsOfAllKindsAreOneTableAndOneJson) {
  StoredPlacement waits{.written_at = 1'000'000, .fate = "stayed"};
  waits.row.pod = {"shop", "big", "v"};
  waits.row.reason = "0/1 nodes are available";
  const std::vector<StoredDecision> rows{Moved(), Compared(), waits};
  const std::string table = DecisionTable(rows, 1'060'000, Width::kWide);
  EXPECT_THAT(table, HasSubstr("pod/web-1 -n shop"));
  EXPECT_THAT(table, HasSubstr("+2 ppm"));
  EXPECT_THAT(table, HasSubstr("0/1 nodes are available"));
  const auto list = ParseOrderedJson(DecisionsJson(rows), "the list").value()["decisions"];
  ASSERT_EQ(list.size(), 3u);
  for (const auto& one : list) {
    for (const char* key : {"number", "written_at", "kind", "mode", "subject", "policy",
                            "chosen_node", "baseline_choice_node", "gain", "verdict", "fate"})
      EXPECT_TRUE(one.contains(key)) << key;
  }
  EXPECT_EQ(list[0]["kind"], "migration");
  EXPECT_EQ(list[1]["kind"], "placement");
  EXPECT_EQ(list[1]["mode"], "shadow");
  EXPECT_EQ(list[1]["chosen_node"], "n1");
  EXPECT_TRUE(list[1]["verdict"]["allowed"].get<bool>());
  EXPECT_FALSE(list[2]["verdict"]["allowed"].get<bool>());
  EXPECT_TRUE(list[2]["gain"]["predicted"].is_null());
}

TEST(DecisionText, AgesAreRoundedDown) {
  EXPECT_EQ(Age(0, 119'999), "119s");
  EXPECT_EQ(Age(0, 120'000), "2m");
  EXPECT_EQ(Age(0, 7'200'000), "2h");
  EXPECT_EQ(Age(0, 172'800'000), "2d");
  EXPECT_EQ(Age(5, 0), "0s") << "a clock that was set back";
}

TEST(DecisionText, TermsThatDoNotChangeVisiblyAreLeftOut) {
  EXPECT_EQ(TermChanges({10, 5, 5, 0, 0}, {10.01, 5.01, 5, 0, 0}),
            "no term changes by a tenth of a millisecond");
}

}  // namespace
}  // namespace rudderfish
