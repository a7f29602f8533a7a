// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "control/sqlite_journal.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

class SqliteComparisonsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("rudderfish-comparisons-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    Open();
  }
  void TearDown() override {
    journal_.reset();
    fs::remove_all(folder_);
  }
  void Open(UnixMillis now = 1000) {
    journal_.reset();
    journal_ = SqliteJournal::Open(folder_ / "j.db", {.now = [now] { return now; }}).value();
  }
  JournalReader Reader() { return JournalReader::Open(folder_ / "j.db").value(); }

  static PlacementComparison Row(const std::string& name, double gain = 1e-3) {
    return {.pod = {"default", name, "uid-" + name},
            .scheduler = "default-scheduler",
            .policy = "most-allocated",
            .objective = "utilisation",
            .node = "a",
            .policy_node = "b",
            .baseline_node = "a",
            .policy_change = 1e-3,
            .baseline_change = 1e-3 + gain,
            .nodes = 3,
            .feasible = 2,
            .waited_ms = 5,
            .detail = R"({"x":1})"};
  }
  void Add(const PlacementComparison& row) {
    ASSERT_TRUE(journal_->AppendComparisons({&row, 1}, {}).has_value());
  }
  void End(const PlacementOutcome& outcome) {
    ASSERT_TRUE(journal_->AppendComparisons({}, {&outcome, 1}).has_value());
  }

  fs::path folder_;
  std::unique_ptr<SqliteJournal> journal_;
};

TEST_F(SqliteComparisonsTest, WhatWasWrittenIsReadWithWhatCameOfIt) {
  Add(Row("x"));
  Add(Row("y"));
  End({.uid = "uid-x", .fate = "started"});
  End({.uid = "uid-x", .measured_gain = 2e-3, .measured_change = -1e-3});
  const std::vector<StoredComparison> rows = Reader().Comparisons("default/x", 1).value();
  ASSERT_EQ(rows.size(), 1u);
  const PlacementComparison& row = rows[0].row;
  EXPECT_EQ(row.pod, Row("x").pod);
  EXPECT_EQ(row.policy_node, "b");
  EXPECT_EQ(row.detail, R"({"x":1})");
  EXPECT_NEAR(row.gain(), 1e-3, 1e-15);
  EXPECT_EQ(rows[0].outcome.fate, "started");
  EXPECT_EQ(rows[0].outcome.measured_gain, 2e-3);
  EXPECT_EQ(Reader().Comparisons("", 10)->size(), 2u);
}

TEST_F(SqliteComparisonsTest, ThatAPodFailedIsTheLastWord) {
  Add(Row("x"));
  for (const char* fate : {"started", "failed", "ended"}) End({.uid = "uid-x", .fate = fate});
  EXPECT_EQ(Reader().Comparisons("default/x", 1)->at(0).outcome.fate, "failed");
}

TEST_F(SqliteComparisonsTest, EvidenceIsOfThePolicyAndObjectiveThatAreAskedFor) {
  Add(Row("x", 1e-3));
  Add(Row("y", 3e-3));
  End({.uid = "uid-x", .measured_gain = 5e-4, .measured_change = 0});
  PlacementComparison other = Row("z");
  other.policy = "least-allocated";
  Add(other);
  PlacementComparison different = Row("d");
  different.rules = RulesVerdict::kDifferent;
  different.reason = "a: Insufficient cpu";
  different.policy_node.clear();
  Add(different);
  PlacementComparison advice = Row("w");
  advice.group = ComparisonGroup::kAdvice;
  Add(advice);
  const ShadowEvidence evidence = Reader().Shadowed("most-allocated", "utilisation").value();
  EXPECT_EQ(evidence.equal, 2);
  EXPECT_EQ(evidence.different, 1);
  EXPECT_EQ(evidence.difference, "default/d on a: Insufficient cpu");
  EXPECT_EQ(evidence.gain.count, 2);
  EXPECT_NEAR(evidence.gain.mean(), 2e-3, 1e-12);
  EXPECT_EQ(evidence.error.count, 1);
  EXPECT_NEAR(evidence.error.mean(), 5e-4, 1e-12);
}

TEST_F(SqliteComparisonsTest, ACanaryIsJudgedByWhatCameSinceItBegan) {
  PlacementComparison canary = Row("old");
  canary.group = ComparisonGroup::kCanary;
  Add(canary);
  Open(5000);
  canary.pod = {"default", "c", "uid-c"};
  Add(canary);
  PlacementComparison control = Row("k");
  control.group = ComparisonGroup::kControl;
  Add(control);
  End({.uid = "uid-c", .fate = "failed", .failure = "OutOfcpu"});
  End({.uid = "uid-k", .measured_gain = 0, .measured_change = 1e-4});
  const TrialEvidence trial = Reader().Trial(2000).value();
  EXPECT_EQ(trial.canary.pods, 1);
  EXPECT_EQ(trial.canary.bad, 1);
  EXPECT_EQ(trial.control.pods, 1);
  EXPECT_EQ(trial.control.change.count, 1);
  EXPECT_EQ(Reader().Trial(0)->canary.pods, 2);
}

// Its Binding was refused, and it was chosen for anew, also by the next process.
TEST_F(SqliteComparisonsTest, OfAPodThatIsChosenForAgainTheNewestChoiceCounts) {
  PlacementComparison canary = Row("c");
  canary.group = ComparisonGroup::kCanary;
  for (const char* node : {"a", "b"}) {
    canary.node = canary.policy_node = node;
    const std::vector<PlacementComparison> twice = {canary, canary};
    ASSERT_TRUE(journal_->AppendComparisons(twice, {}).has_value());
    Open();
  }
  PlacementComparison advice = Row("c");
  advice.group = ComparisonGroup::kAdvice;
  Add(advice);
  Add(Row("other"));
  End({.uid = "uid-c", .measured_gain = 0, .measured_change = 1e-4});
  const TrialEvidence trial = Reader().Trial(0).value();
  EXPECT_EQ(trial.canary.pods, 1);
  EXPECT_EQ(trial.canary.change.count, 1);
  const std::vector<StoredComparison> rows = Reader().Comparisons("default/c", 10).value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].row.node, "b");
  EXPECT_EQ(rows[1].row.group, ComparisonGroup::kAdvice);
}

TEST_F(SqliteComparisonsTest, AChoiceThatSomebodyElseForestalledIsNoEvidence) {
  PlacementComparison canary = Row("c");
  canary.group = ComparisonGroup::kCanary;
  Add(canary);
  End({.uid = "uid-c", .fate = "elsewhere"});
  EXPECT_EQ(Reader().Trial(0)->canary.pods, 0);
  End({.uid = "uid-c", .fate = "failed"});  // There, where we did not want it.
  EXPECT_EQ(Reader().Trial(0)->canary.pods, 0);
}

TEST_F(SqliteComparisonsTest, WhoStartsAnewFindsTheComparisonsWhosePodsHaveNotEnded) {
  for (const char* name : {"placed", "started", "measured", "ended", "failed"}) Add(Row(name));
  for (const char* fate : {"started", "ended", "failed"})
    End({.uid = fmt::format("uid-{}", fate), .fate = fate});
  End({.uid = "uid-measured", .measured_gain = 0, .measured_change = 0});
  PlacementComparison advice = Row("advised");
  advice.group = ComparisonGroup::kAdvice;
  Add(advice);
  Open();
  const std::vector<UnendedComparison> rows = journal_->UnendedComparisons().value();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].pod, Row("placed").pod);
  EXPECT_EQ(rows[0].written_at, 1000);
  EXPECT_EQ(rows[0].baseline_node, "a");
  EXPECT_FALSE(rows[0].is_started || rows[0].is_measured);
  EXPECT_TRUE(rows[1].is_started);
  EXPECT_TRUE(rows[2].is_measured);
}

TEST_F(SqliteComparisonsTest, AModeIsKept) {
  EXPECT_FALSE(journal_->ModeOf("placement").value().has_value());
  const KeptMode mode{.configured = Mode::kShadow,
                      .mode = Mode::kCanary,
                      .policy = "runs/a@12",
                      .objective = "energy",
                      .since = 7,
                      .serves = true,
                      .why = "promoted"};
  ASSERT_TRUE(journal_->KeepMode("placement", mode).has_value());
  Open();
  EXPECT_EQ(journal_->ModeOf("placement").value(), mode);
}

}  // namespace
}  // namespace rudderfish
