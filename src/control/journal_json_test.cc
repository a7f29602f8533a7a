// SPDX-License-Identifier: Apache-2.0
#include "control/journal_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace rudderfish {
namespace {

TEST(JournalJson, IsOneLineAndComesBack) {
  JournalRow row{.application = "sh\"op\n", .plan = 3, .seen = {3, 1, 1, 0.5, 0.5}};
  row.verdict = {.allowed = false, .reason = "no"};
  row.fate = Fate::kRefused;
  const std::string text = ToJson(row);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const JournalRow again = JournalRowFrom(text, "row").value();
  EXPECT_EQ(again.application, row.application);
  EXPECT_EQ(again.seen.transfer_ms, 0.5);
  EXPECT_EQ(again.fate, Fate::kRefused);
  EXPECT_EQ(again.verdict.reason, "no");
  EXPECT_EQ(ToJson(again), text);
}

TEST(JournalJson, NumberThatIsNotFiniteReadsNull) {
  JournalRow row;
  row.considered = {{.score = -std::numeric_limits<double>::infinity()}};
  const JournalRow again = JournalRowFrom(ToJson(row), "row").value();
  EXPECT_EQ(again.considered[0].score, std::nullopt);
}

TEST(JournalJson, RefusalOfOnePodComesBackAndOlderRowsHaveNone) {
  JournalRow row;
  row.refused = {{"web", "", "rests", "web-1"}};
  std::string text = ToJson(row);
  EXPECT_EQ(JournalRowFrom(text, "row").value().refused, row.refused);
  const std::string pod = R"("pod":"web-1",)";
  text.erase(text.find(pod), pod.size());
  EXPECT_EQ(JournalRowFrom(text, "row").value().refused[0], (Refusal{"web", "", "rests"}));
}

TEST(JournalJson, ScoreOfAPolicyThatRanksNothingIsNull) {
  JournalRow row;
  row.considered = {{.score = std::nullopt}, {.score = 0}};
  const std::string text = ToJson(row);
  EXPECT_NE(text.find(R"("score":null)"), std::string::npos) << text;
  const JournalRow again = JournalRowFrom(text, "row").value();
  EXPECT_EQ(again.considered[0].score, std::nullopt);
  EXPECT_EQ(again.considered[1].score, 0);
}

TEST(JournalJson, NameThatIsNoUtf8IsReplaced) {
  JournalRow row{.application = "a\xff"};
  EXPECT_TRUE(JournalRowFrom(ToJson(row), "row"));
}

TEST(JournalJson, DamagedRowIsNamed) {
  EXPECT_THAT(JournalRowFrom("{", "j.db, row 4").error().message,
              ::testing::HasSubstr("j.db, row 4"));
  std::string text = ToJson(JournalRow{});
  text.replace(text.find("in flight"), 9, "flying hi");
  EXPECT_FALSE(JournalRowFrom(text, "row"));
}

TEST(JournalJson, LaterFieldsAreLeftAlone) {
  std::string text = ToJson(JournalRow{});
  text.insert(1, "\"later\": 1, ");
  EXPECT_TRUE(JournalRowFrom(text, "row"));
}

}  // namespace
}  // namespace rudderfish
