// SPDX-License-Identifier: Apache-2.0
#include "control/migration_mode_evidence.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "control/sqlite_journal.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What is enough, and nothing more than that.
PlanEvidence EnoughOfPlans() {
  PlanEvidence evidence{.application = "shop", .plans = kPlansNeeded};
  for (int i = 0; i < kPlansNeeded; ++i) {
    evidence.gain.Add(20 + i % 3);
    evidence.over_baseline.Add(0);
  }
  for (int i = 0; i < kChangesNeeded; ++i) evidence.error.Add(i % 2 == 0 ? 5 : -4);
  return evidence;
}

TEST(PlanEvidence, EachBarIsMissedByOneAndNamed) {
  EXPECT_THAT(WhatIsMissing(EnoughOfPlans()), IsEmpty());
  PlanEvidence few = EnoughOfPlans();
  --few.plans;
  EXPECT_THAT(WhatIsMissing(few),
              ElementsAre("shop: 99 of the 100 shadowed plans that are needed"));
  PlanEvidence unmeasured = EnoughOfPlans();
  --unmeasured.error.count;
  EXPECT_THAT(WhatIsMissing(unmeasured),
              ElementsAre("shop: 30 measured errors of the Model: there are 29"));
  unmeasured.error = {};
  EXPECT_THAT(WhatIsMissing(unmeasured), ElementsAre(HasSubstr("no change of the cluster has been "
                                                               "measured yet")));
  PlanEvidence wrong = EnoughOfPlans();
  wrong.error = {};
  for (int i = 0; i < kChangesNeeded; ++i) wrong.error.Add(-21);
  EXPECT_THAT(WhatIsMissing(wrong),
              ElementsAre(HasSubstr("a predicted gain beyond the Model's measured error: +20.99 "
                                    "\u00b1 0.16 ms a plan, against an error of -21 \u00b1 0 ms")));
  PlanEvidence worse = EnoughOfPlans();
  worse.over_baseline.Add(-0.1);
  EXPECT_THAT(WhatIsMissing(worse),
              ElementsAre(HasSubstr("plans that gain no less than the baseline")));
}

TEST(PlanEvidence, NothingIsEverythingMissing) {
  EXPECT_THAT(WhatIsMissing(PlanEvidence{.application = "shop"}),
              ElementsAre(HasSubstr("0 of the 100"), HasSubstr("a plan that would move pods"),
                          HasSubstr("a measured error of the Model")));
}

class MigrationModeEvidenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    journal_ = SqliteJournal::Open(folder_ / "j.db", {}).value();
    evidence_.emplace(journal_->moves());
    evidence_->Watch({"shop"});
    ladder_ = ModeLadder::Open(kMigrationLadder,
                               {.mode = Mode::kShadow, .policy = "greedy", .objective = "latency"},
                               &*evidence_, journal_->modes())
                  .value();
  }
  // A plan of one move, and that it stops.
  void Plan(double gain_ms, double baseline_ms, const std::string& policy = "greedy",
            const std::string& objective = "latency") {
    JournalRow row{.application = "shop",
                   .mode = "shadow",
                   .policy = policy,
                   .baseline = "stay",
                   .objective = objective,
                   .chosen = {{"a", "b", "c"}},
                   .fate = Fate::kRecorded};
    ASSERT_TRUE(journal_->moves()->Append(row).has_value());
    row.step = 1;
    row.chosen.clear();
    row.plan_gain_ms = gain_ms;
    row.baseline_plan_gain_ms = baseline_ms;
    row.fate = Fate::kStayed;
    ASSERT_TRUE(journal_->moves()->Append(row).has_value());
  }
  void Move(Fate fate) {
    ASSERT_TRUE(journal_->moves()->Append({.application = "shop", .mode = "canary", .fate = fate}));
  }
  void Change(double predicted_ms, double measured_ms) {
    ASSERT_TRUE(journal_->moves()->AppendEvidence({.application = "shop",
                                                   .change = "a from b to c",
                                                   .endpoint = "buy",
                                                   .term = "latency_ms",
                                                   .source = "p",
                                                   .predicted_change_ms = predicted_ms,
                                                   .measured_change_ms = measured_ms}));
  }
  // The cluster has changed by itself, and two endpoints were measured.
  void Measure(double error_ms) {
    for (const char* endpoint : {"buy", "look"}) {
      ASSERT_TRUE(journal_->moves()->AppendEvidence({.application = "shop",
                                                     .change = "a from b to c",
                                                     .endpoint = endpoint,
                                                     .term = "latency_ms",
                                                     .source = "p",
                                                     .predicted_change_ms = error_ms,
                                                     .measured_change_ms = 0}));
    }
  }

  testing::TestFolder folder_;
  std::unique_ptr<SqliteJournal> journal_;
  std::optional<MigrationModeEvidence> evidence_;
  std::unique_ptr<ModeLadder> ladder_;
};

TEST_F(MigrationModeEvidenceTest, ThePlansAndMeasurementsOfTheJournalPromote) {
  for (int i = 0; i < kPlansNeeded - 1; ++i) Plan(20, 15);
  for (int i = 0; i < kChangesNeeded; ++i) Measure(i % 2 == 0 ? 2 : -2);
  EXPECT_THAT(ladder_->Answer("promote"),
              HasSubstr("migration stays in shadow; missing for advise: shop: 99 of the "
                        "100 shadowed plans that are needed. Use --force"));
  Plan(20, 15);
  const OrderedJson told = ladder_->Describe();
  const OrderedJson& shop = told["evidence"]["applications"][0];
  EXPECT_EQ(shop["plans"], 100);
  EXPECT_EQ(shop["plans_with_moves"], 100);
  EXPECT_EQ(shop["gain_over_baseline"]["mean_ms"], 5);
  EXPECT_EQ(shop["model_error"]["count"], kChangesNeeded) << "endpoints of a change are one error";
  EXPECT_THAT(told["next"]["missing"], IsEmpty());
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("\"mode\":\"advise\""));
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("\"mode\":\"canary\""));
}

TEST_F(MigrationModeEvidenceTest, WhatTheCanaryMovedDecidesHowItGoesOn) {
  for (int i = 0; i < kPlansNeeded; ++i) Plan(20, 15);
  for (int i = 0; i < kChangesNeeded; ++i) Measure(i % 2 == 0 ? 2 : -2);
  EXPECT_THAT(ladder_->Answer("promote enforce"), HasSubstr("a canary: no pod has been moved"));
  ladder_->Answer("promote canary");
  ASSERT_EQ(ladder_->mode(), Mode::kCanary);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("shop: 0 of the 10 pods moved in canary"));
  for (int i = 0; i < 10; ++i) Move(Fate::kDone);
  for (int i = 0; i < 5; ++i) Change(-10, -9.5 - 0.1 * i);
  EXPECT_EQ(ladder_->LookAtActing(Instant(std::chrono::hours(1))).value(), std::nullopt);
  for (int i = 0; i < 2; ++i) Move(Fate::kFailed);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("\"mode\":\"enforce\""));
}

TEST_F(MigrationModeEvidenceTest, TheJournalKnowsWhichMovesWereMadeSince) {
  const JournalRow row{.application = "shop",
                       .mode = "enforce",
                       .considered = {{.move = JournalMove{"y", "b", "c"}, .workload = "other"},
                                      {.move = JournalMove{"a", "b", "c"}, .workload = "web"}},
                       .chosen = {{"a", "b", "c"}},
                       .fate = Fate::kDone};
  for (const char* mode : {"shadow", "canary", "enforce"}) {
    JournalRow one = row;
    one.mode = mode;
    ASSERT_TRUE(journal_->moves()->Append(one));
  }
  JournalRow failed = row;
  failed.fate = Fate::kFailed;
  ASSERT_TRUE(journal_->moves()->Append(failed));
  const auto moves = journal_->moves()->MovesSince("shop", UnixNow() - 60'000).value();
  ASSERT_EQ(moves.size(), 3u);
  EXPECT_EQ(moves[0].workload, "web");
  EXPECT_EQ(moves[0].pod, "a");
  EXPECT_FALSE(moves[1].is_failed);
  EXPECT_TRUE(moves[2].is_failed);
  EXPECT_EQ(moves[0].from, "b");
  EXPECT_LT(moves[0].ago, std::chrono::minutes(1));
  EXPECT_THAT(journal_->moves()->MovesSince("shop", UnixNow() + 1000).value(), IsEmpty());
  EXPECT_THAT(journal_->moves()->MovesSince("other", 0).value(), IsEmpty());
}

TEST_F(MigrationModeEvidenceTest, ACanaryThatFailsToMoveGoesBackToShadow) {
  ladder_->Answer("promote canary force");
  for (int i = 0; i < 7; ++i) Move(Fate::kDone);
  for (int i = 0; i < 3; ++i) Move(Fate::kFailed);
  const auto why = ladder_->LookAtActing(Instant(std::chrono::hours(1))).value();
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(*why, "it did worse than predicted: shop: 3 of 10 pods could not be moved");
  EXPECT_EQ(ladder_->mode(), Mode::kShadow);
}

TEST_F(MigrationModeEvidenceTest, ACanaryThatGainsTooLittleGoesBackToShadow) {
  ladder_->Answer("promote canary force");
  for (int i = 0; i < 5; ++i) Change(-10, -1 - 0.1 * i);
  const auto why = ladder_->LookAtActing(Instant(std::chrono::hours(1))).value();
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(*why, HasSubstr("shop: 5 measured changes lowered latency by less than half"));
  EXPECT_EQ(ladder_->mode(), Mode::kShadow);
}

// The changes need not be ours: the Model no longer fits this application.
TEST_F(MigrationModeEvidenceTest, AModelThatDriftsIsBackInShadowFromEnforce) {
  ladder_->Answer("promote enforce force");
  ASSERT_EQ(ladder_->mode(), Mode::kEnforce);
  for (int i = 0; i < 20; ++i) Change(i % 2 == 0 ? 10 : 8, 7 + 0.1 * i);
  EXPECT_EQ(ladder_->LookAtActing(Instant(std::chrono::hours(1))).value(), std::nullopt)
      << "a Model that is right in the main may go on";
  for (int i = 0; i < 30; ++i) Change(10, -1 + 0.1 * i);
  const auto why = ladder_->LookAtActing(Instant(std::chrono::hours(2))).value();
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(*why, HasSubstr("shop: the Model has drifted: of 50 measured changes"));
  EXPECT_EQ(ladder_->mode(), Mode::kShadow);
}

TEST_F(MigrationModeEvidenceTest, PlansOfAnotherPolicyOrObjectiveOrBeforeANumberDoNotCount) {
  Plan(20, 15, "stay");
  Plan(20, 15, "greedy", "latency and luck");
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("shop: 0 of the 100"));
  Plan(20, 15);
  Plan(20, 15);
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("shop: 2 of the 100"));
  EXPECT_THAT(ladder_->Answer("promote from 7"),
              HasSubstr("missing for advise, by decisions from 7 on: shop: 1 of the "));
}

TEST_F(MigrationModeEvidenceTest, WhatOneApplicationLacksAllOfMigrationLacks) {
  for (int i = 0; i < kPlansNeeded; ++i) Plan(20, 15);
  for (int i = 0; i < kChangesNeeded; ++i) Measure(0);
  EXPECT_THAT(ladder_->Describe()["next"]["missing"], IsEmpty());
  evidence_->Watch({"shop", "bank"});
  EXPECT_THAT(ladder_->Answer("promote"), HasSubstr("missing for advise: bank: 0 of the 100"));
}

}  // namespace
}  // namespace rudderfish
