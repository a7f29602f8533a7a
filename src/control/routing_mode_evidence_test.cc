// SPDX-License-Identifier: Apache-2.0
#include "control/routing_mode_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "control/journal_reader.h"
#include "control/sqlite_journal.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

class RoutingModeEvidenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    journal_ = SqliteJournal::Open(folder_ / "j.db", {}).value();
    evidence_.emplace(journal_->routings());
    evidence_->Watch({"web"});
    ladder_ = ModeLadder::Open(kRoutingLadder,
                               {.mode = Mode::kShadow, .policy = "lp", .objective = "cost"},
                               &*evidence_, journal_->modes())
                  .value();
  }
  int64_t Decide(Fate fate, const std::string& policy = "lp", double error = 0.05) {
    return journal_->routings()
        ->AppendRouting({.route = "web",
                         .mode = fate == Fate::kRecorded ? "shadow" : "canary",
                         .policy = policy,
                         .objective = "cost",
                         .regions = {{.region = "eu", .now = 1, .allowed = 0.9}},
                         .gain = 0.1,
                         .gain_over_baseline = 0.05,
                         .predicted_now_ms = 100 * (1 + error),
                         .predicted_ms = 90,
                         .measured_now_ms = 100,
                         .verdict = {.allowed = true, .reason = ""},
                         .fate = fate})
        .value();
  }
  void Set(double measured_ms) {
    const int64_t row = Decide(Fate::kInFlight);
    ASSERT_TRUE(journal_->routings()->ConcludeRouting(row, {.fate = Fate::kDone, .failure = ""}));
    ASSERT_TRUE(journal_->routings()->ConcludeRouting(
        row, {.fate = std::nullopt, .failure = "", .measured_ms = measured_ms}));
  }

  testing::TestFolder folder_;
  std::unique_ptr<SqliteJournal> journal_;
  std::optional<RoutingModeEvidence> evidence_;
  std::unique_ptr<ModeLadder> ladder_;
};

TEST_F(RoutingModeEvidenceTest, DecisionsOfTheJournalPromote) {
  for (int i = 0; i < kRouteDecisionsNeeded - 1; ++i) Decide(Fate::kRecorded);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("web: 99 of the 100 decisions"));
  Decide(Fate::kRecorded, "another");
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("web: 99 of the 100 decisions"));
  Decide(Fate::kRecorded);
  const OrderedJson told = ladder_->Describe();
  EXPECT_EQ(told["evidence"]["routes"][0]["decisions"], 100);
  EXPECT_EQ(told["evidence"]["routes"][0]["model_error"]["count"], 100);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("advise"));
  EXPECT_EQ(ladder_->mode(), Mode::kAdvise);
}

TEST_F(RoutingModeEvidenceTest, AModelThatIsWrongDoesNotPromote) {
  for (int i = 0; i < kRouteDecisionsNeeded; ++i) Decide(Fate::kRecorded, "lp", 0.3);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("right within 20 %"));
}

TEST_F(RoutingModeEvidenceTest, ACanaryThatIsSlowerThanPredictedEndsByItself) {
  EXPECT_THAT(ladder_->Answer("promote canary force"), HasSubstr("canary"));
  for (int i = 0; i < kRouteTrialsNeeded; ++i) Set(135 + i % 2);
  const auto why = evidence_->WhyWorse(0);
  ASSERT_TRUE(why && *why);
  EXPECT_THAT(**why, HasSubstr("+50."));
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("do what is predicted"));
}

TEST_F(RoutingModeEvidenceTest, WhatWasInFlightIsUnknownToTheNextProcess) {
  Decide(Fate::kInFlight);
  Set(95);
  ladder_.reset();
  journal_.reset();
  journal_ = SqliteJournal::Open(folder_ / "j.db", {}).value();
  const JournalReader reader = JournalReader::Open(folder_ / "j.db").value();
  const auto rows = reader.Routings({.application = "web"}).value();
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].row.fate, Fate::kUnknown);
  EXPECT_EQ(rows[1].row.fate, Fate::kDone);
  EXPECT_EQ(rows[1].row.measured_ms, 95);
  // Rows of routing are none of migration's.
  EXPECT_TRUE(reader.Rows({}).value().empty());
  EXPECT_EQ(reader.Decisions({.kind = "routing"}).value().size(), 2);
  EXPECT_TRUE(reader.Decisions({.kind = "migration"}).value().empty());
}

}  // namespace
}  // namespace rudderfish
