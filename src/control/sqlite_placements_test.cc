// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "control/journal_reader.h"
#include "control/sqlite_journal.h"
#include "control/sqlite_statement.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

class SqlitePlacementsTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
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
    ASSERT_TRUE(journal_->placements()->AppendComparisons({&row, 1}, {}).has_value());
  }
  void End(const PlacementOutcome& outcome) {
    ASSERT_TRUE(journal_->placements()->AppendComparisons({}, {&outcome, 1}).has_value());
  }

  // What is kept up to date in memory equals what is read from the file, to the digit.
  TrialEvidence Trial(UnixMillis since, const std::string& cluster = "") {
    const TrialEvidence trial = journal_->placements()->Evidence().value()->Trial(since, cluster);
    EXPECT_EQ(Reader().LoadEvidence()->Trial(since, cluster), trial);
    return trial;
  }
  ShadowEvidence Shadowed(std::vector<std::string> schedulers = {}, int64_t from = 0) {
    const EvidenceQuestion question{.policy = "most-allocated",
                                    .objective = "utilisation",
                                    .schedulers = std::move(schedulers),
                                    .from = from};
    const ShadowEvidence shadow = journal_->placements()->Evidence().value()->Shadowed(question);
    EXPECT_EQ(Reader().LoadEvidence()->Shadowed(question), shadow);
    return shadow;
  }
  std::vector<SchedulerEvidence> ByScheduler() {
    const EvidenceQuestion question{.policy = "most-allocated", .objective = "utilisation"};
    const auto all = journal_->placements()->Evidence().value()->ByScheduler(question);
    EXPECT_EQ(Reader().LoadEvidence()->ByScheduler(question), all);
    return all;
  }
  void AddOf(const std::string& scheduler, const std::string& name, RulesVerdict rules) {
    PlacementComparison row = Row(name);
    row.scheduler = scheduler;
    row.rules = rules;
    Add(row);
  }

  testing::TestFolder folder_;
  std::unique_ptr<SqliteJournal> journal_;
};

TEST_F(SqlitePlacementsTest, PlacementsAreWrittenManyAtOnceWithWhatCameOfEarlierOnes) {
  std::vector<PlacementRow> rows(2);
  rows[0].pod = {"shop", "cart-1", "u1"};
  rows[0].node = "edge-1";
  rows[0].best = {{"edge-1", 412.5}, {"edge-2", 7}};
  rows[1].pod = {"shop", "cart-2", "u2"};
  rows[1].fate = Fate::kStayed;
  rows[1].reason = "0/1 nodes are available: 1 Insufficient cpu.";
  ASSERT_TRUE(journal_->placements()->AppendPlacements(rows, {}).has_value());
  std::vector<PlacementRow> more(1, rows[0]);
  const PlacementEnd end{rows[0].number, Fate::kFailed, "it has been bound to edge-2"};
  ASSERT_TRUE(journal_->placements()->AppendPlacements(more, {&end, 1}).has_value());
  Open();
  const JournalReader reader = Reader();
  const auto all = reader.Placements({.limit = 100}).value();
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[0].fate, "failed");
  EXPECT_EQ(all[0].failure, "it has been bound to edge-2");
  EXPECT_EQ(all[1].row.node, "");
  EXPECT_EQ(all[1].row.reason, rows[1].reason);
  EXPECT_EQ(all[1].fate, "stayed");
  EXPECT_EQ(all[2].fate, "unknown") << "who wrote it has ended";
  EXPECT_EQ(reader.Placements({.limit = 100, .pod = "shop/cart-2"}).value().size(), 1);
}

TEST_F(SqlitePlacementsTest, WhatWasWrittenIsReadWithWhatCameOfIt) {
  Add(Row("x"));
  Add(Row("y"));
  End({.uid = "uid-x", .fate = "started"});
  End({.uid = "uid-x", .measured_gain = 2e-3, .measured_change = -1e-3});
  const auto rows = Reader().Comparisons({.limit = 1, .pod = "default/x"}).value();
  ASSERT_EQ(rows.size(), 1u);
  const PlacementComparison& row = rows[0].row;
  EXPECT_EQ(row.pod, Row("x").pod);
  EXPECT_EQ(row.policy_node, "b");
  EXPECT_EQ(row.detail, R"({"x":1})");
  EXPECT_NEAR(row.gain(), 1e-3, 1e-15);
  EXPECT_EQ(rows[0].outcome.fate, "started");
  EXPECT_EQ(rows[0].outcome.measured_gain, 2e-3);
  EXPECT_EQ(Reader().Comparisons({.limit = 10})->size(), 2u);
}

TEST_F(SqlitePlacementsTest, ThatAPodFailedIsTheLastWord) {
  Add(Row("x"));
  for (const char* fate : {"started", "failed", "ended"}) End({.uid = "uid-x", .fate = fate});
  EXPECT_EQ(Reader().Comparisons({.limit = 1, .pod = "default/x"})->at(0).outcome.fate, "failed");
}

TEST_F(SqlitePlacementsTest, EvidenceIsOfThePolicyAndObjectiveThatAreAskedFor) {
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
  const ShadowEvidence evidence = Shadowed();
  EXPECT_EQ(evidence.equal, 2);
  EXPECT_EQ(evidence.different, 1);
  ASSERT_EQ(evidence.differences.size(), 1u);
  EXPECT_EQ(journal_->placements()->DifferenceInWords(evidence.differences[0]).value(),
            "default/d on a: Insufficient cpu");
  EXPECT_EQ(evidence.gain.count, 2);
  EXPECT_NEAR(evidence.gain.mean(), 2e-3, 1e-12);
  EXPECT_EQ(evidence.error.count, 1);
  EXPECT_NEAR(evidence.error.mean(), 5e-4, 1e-12);
}

TEST_F(SqlitePlacementsTest, EvidenceIsOfTheSchedulersThatAreAskedFor) {
  ASSERT_TRUE(journal_->placements()->Evidence().has_value());
  for (const char* name : {"a", "b"}) AddOf("default-scheduler", name, RulesVerdict::kEqual);
  AddOf("default-scheduler", "c", RulesVerdict::kUnclear);
  AddOf("batch", "d", RulesVerdict::kDifferent);
  AddOf("batch", "e", RulesVerdict::kUnmodelled);
  AddOf("batch", "f", RulesVerdict::kEqual);
  EXPECT_EQ(Shadowed({"default-scheduler"}).equal, 2);
  EXPECT_EQ(Shadowed({"default-scheduler"}).different, 0);
  EXPECT_EQ(Shadowed({"batch", "default-scheduler"}).different, 1);
  EXPECT_EQ(Shadowed({"batch", "default-scheduler"}).decisions(), 4);
  EXPECT_EQ(Shadowed().decisions(), 4) << "without a name: all";
  EXPECT_EQ(Shadowed({"nobody"}).decisions(), 0);
  const std::vector<SchedulerEvidence> all = ByScheduler();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0],
            (SchedulerEvidence{.scheduler = "batch", .equal = 1, .different = 1, .unmodelled = 1}));
  EXPECT_EQ(all[1],
            (SchedulerEvidence{.scheduler = "default-scheduler", .equal = 2, .unclear = 1}));
}

TEST_F(SqlitePlacementsTest, EvidenceBeginsAtTheNumberThatIsAskedFor) {
  AddOf("default-scheduler", "early", RulesVerdict::kDifferent);
  AddOf("default-scheduler", "late", RulesVerdict::kEqual);
  const int64_t late = Reader().Comparisons({.limit = 1, .pod = "default/late"})->at(0).number;
  EXPECT_EQ(Shadowed({}, late - 1).different, 1);
  EXPECT_EQ(Shadowed({}, late).different, 0);
  EXPECT_EQ(Shadowed({}, late).equal, 1);
  EXPECT_EQ(Shadowed({}, late + 1).equal, 0);
}

TEST_F(SqlitePlacementsTest, OfDifferencesTheNewestFiveAreNamed) {
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    AddOf("default-scheduler", name, RulesVerdict::kDifferent);
  const ShadowEvidence evidence = Shadowed();
  EXPECT_EQ(evidence.different, 7);
  const int64_t newest = Reader().Comparisons({.limit = 1, .pod = "default/g"})->at(0).number;
  EXPECT_EQ(evidence.differences,
            (std::vector<int64_t>{newest, newest - 1, newest - 2, newest - 3, newest - 4}));
}

TEST_F(SqlitePlacementsTest, ACanaryIsJudgedByWhatCameSinceItBegan) {
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
  const TrialEvidence trial = Trial(2000);
  EXPECT_EQ(trial.canary.pods, 1);
  EXPECT_EQ(trial.canary.bad, 1);
  EXPECT_EQ(trial.control.pods, 1);
  EXPECT_EQ(trial.control.change.count, 1);
  EXPECT_EQ(Trial(0).canary.pods, 2);
}

// Its Binding was refused, and a node was chosen for it again, also by the next process.
TEST_F(SqlitePlacementsTest, OfAPodThatIsChosenForAgainTheNewestChoiceCounts) {
  PlacementComparison canary = Row("c");
  canary.group = ComparisonGroup::kCanary;
  for (const char* node : {"a", "b"}) {
    canary.node = canary.policy_node = node;
    const std::vector<PlacementComparison> twice = {canary, canary};
    ASSERT_TRUE(journal_->placements()->AppendComparisons(twice, {}).has_value());
    Open();
  }
  PlacementComparison advice = Row("c");
  advice.group = ComparisonGroup::kAdvice;
  Add(advice);
  Add(Row("other"));
  End({.uid = "uid-c", .measured_gain = 0, .measured_change = 1e-4});
  const TrialEvidence trial = Trial(0);
  EXPECT_EQ(trial.canary.pods, 1);
  EXPECT_EQ(trial.canary.change.count, 1);
  const auto rows = Reader().Comparisons({.limit = 10, .pod = "default/c"}).value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].row.node, "b");
  EXPECT_EQ(rows[1].row.group, ComparisonGroup::kAdvice);
}

TEST_F(SqlitePlacementsTest, AChoiceThatSomebodyElseForestalledIsNoEvidence) {
  PlacementComparison canary = Row("c");
  canary.group = ComparisonGroup::kCanary;
  Add(canary);
  End({.uid = "uid-c", .fate = "elsewhere"});
  EXPECT_EQ(Trial(0).canary.pods, 0);
  End({.uid = "uid-c", .fate = "failed"});  // There, where we did not want it.
  EXPECT_EQ(Trial(0).canary.pods, 0);
}

TEST_F(SqlitePlacementsTest, ARestartedProcessFindsTheComparisonsWhosePodsHaveNotEnded) {
  for (const char* name : {"placed", "started", "measured", "ended", "failed"}) Add(Row(name));
  for (const char* fate : {"started", "ended", "failed"})
    End({.uid = fmt::format("uid-{}", fate), .fate = fate});
  End({.uid = "uid-measured", .measured_gain = 0, .measured_change = 0});
  PlacementComparison advice = Row("advised");
  advice.group = ComparisonGroup::kAdvice;
  Add(advice);
  Open();
  const std::vector<UnendedComparison> rows =
      journal_->placements()->UnendedComparisons("").value();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].pod, Row("placed").pod);
  EXPECT_EQ(rows[0].written_at, 1000);
  EXPECT_EQ(rows[0].baseline_node, "a");
  EXPECT_FALSE(rows[0].is_started || rows[0].is_measured);
  EXPECT_TRUE(rows[1].is_started);
  EXPECT_TRUE(rows[2].is_measured);
}

// What a pod came to in one cluster says nothing of another.
TEST_F(SqlitePlacementsTest, EachClusterHasItsOwnEvidence) {
  ASSERT_TRUE(journal_->placements()->Evidence().has_value());
  PlacementComparison there = Row("there");
  there.cluster = "us";
  Add(Row("here"));
  Add(there);
  there = Row("bold");
  there.cluster = "us";
  there.group = ComparisonGroup::kCanary;
  Add(there);
  EXPECT_EQ(Shadowed().equal, 1);
  EXPECT_EQ(Trial(0).canary.pods, 0);
  EXPECT_EQ(Trial(0, "us").canary.pods, 1);
  EXPECT_EQ(Trial(0, "asia").canary.pods, 0);
  EXPECT_EQ(journal_->placements()->UnendedComparisons("").value().size(), 1u);
  ASSERT_EQ(journal_->placements()->UnendedComparisons("us").value().size(), 2u);
  EXPECT_EQ(journal_->placements()->UnendedComparisons("us").value()[0].pod.name, "there");
  EXPECT_EQ(Reader().Comparisons({})->size(), 3u);
  const std::vector<StoredComparison> rows = Reader().Comparisons({.cluster = "us"}).value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].row.cluster, "us");
  EXPECT_EQ(Reader().Comparisons({.cluster = ""})->size(), 1u);
}

// In SQL, as a user who doubts them would ask.
TEST_F(SqlitePlacementsTest, SumsAreThoseOfTheRowsToTheDigit) {
  ASSERT_TRUE(journal_->placements()->Evidence().has_value());
  Rng rng(7);
  constexpr ComparisonGroup kGroups[] = {ComparisonGroup::kCanary, ComparisonGroup::kControl,
                                         ComparisonGroup::kShadow};
  constexpr const char* kFates[] = {"started", "ended", "failed", "elsewhere", "evicted"};
  for (int i = 0; i < 1500; ++i) {
    PlacementComparison row = Row(fmt::format("p{}", rng.Below(300)), rng.Uniform() - 0.4);
    row.group = kGroups[rng.Below(3)];
    row.rules = static_cast<RulesVerdict>(rng.Below(4));
    if (rng.Below(5) == 0) row.policy_node.clear();
    if (rng.Below(5) == 0) row.node = "b";
    Add(row);
    PlacementOutcome outcome{.uid = fmt::format("uid-p{}", rng.Below(300))};
    if (rng.Below(2) == 0) outcome.fate = kFates[rng.Below(5)];
    if (rng.Below(2) == 0) {
      outcome.measured_gain = rng.Uniform() / 3;
      outcome.measured_change = rng.Uniform() / 7;
    }
    End(outcome);
  }
  const auto sum_of = [&](const std::string& expression, const std::string& where) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open((folder_ / "j.db").c_str(), &database), SQLITE_OK);
    MeanSum sum;
    const std::string sql = fmt::format(
        "SELECT count({0}), total({0}), total(({0}) * ({0})) FROM "
        "comparisons WHERE {1}",
        expression, where);
    {
      internal::Statement select(database, sql.c_str());
      EXPECT_TRUE(select.Step());
      sum = {select.Integer(0), select.Real(1), select.Real(2)};
    }
    sqlite3_close(database);
    return sum;
  };
  const TrialEvidence trial = Trial(0);
  EXPECT_GT(trial.canary.change.count, 20);
  EXPECT_EQ(trial.canary.change,
            sum_of("measured_change", "kind = 'canary' AND fate <> 'elsewhere'"));
  EXPECT_EQ(trial.canary.bad,
            sum_of("1", "kind = 'canary' AND fate IN ('failed', 'evicted')").count);
  EXPECT_EQ(trial.control.pods, sum_of("1", "kind = 'control' AND fate <> 'elsewhere'").count);
  const ShadowEvidence shadow = Shadowed();
  EXPECT_EQ(shadow.gain, sum_of("baseline_change - policy_change",
                                "kind = 'shadow' AND policy_node IS NOT NULL"));
  EXPECT_EQ(shadow.error,
            sum_of("baseline_change - policy_change - measured_gain", "kind = 'shadow'"));
  EXPECT_EQ(shadow.same_choice,
            sum_of("1", "kind = 'shadow' AND rules = 'equal' AND node = policy_node").count);
  EXPECT_EQ(shadow.started, sum_of("1", "kind = 'shadow' AND fate IN ('started', 'ended')").count);
}

TEST_F(SqlitePlacementsTest, WhatIsRemovedIsNoEvidence) {
  ASSERT_TRUE(journal_->placements()->Evidence().has_value());
  Add(Row("old"));
  AddOf("gone", "older", RulesVerdict::kEqual);
  // The same file, an hour later.
  journal_.reset();
  UnixMillis now = 3'600'000;
  journal_ = SqliteJournal::Open(folder_ / "j.db", {.retention = std::chrono::hours(2),
                                                    .now = [&now] { return now; }})
                 .value();
  Add(Row("new"));
  EXPECT_EQ(Shadowed().equal, 3);
  now = 3 * 3'600'000;
  ASSERT_TRUE(journal_->Trim().has_value());
  EXPECT_EQ(Shadowed().equal, 1);
  End({.uid = "uid-new", .fate = "failed"});
  End({.uid = "uid-old", .fate = "failed"});
  EXPECT_EQ(Shadowed().failed, 1);
  EXPECT_EQ(Shadowed({"gone"}).equal, 0);
  AddOf("gone", "newest", RulesVerdict::kEqual);  // For a while no row had its name.
  EXPECT_EQ(Shadowed({"gone"}).equal, 1);
  EXPECT_EQ(Shadowed({"default-scheduler"}).equal, 1);
}

TEST_F(SqlitePlacementsTest, WhatTheSizeRemovesIsNoEvidence) {
  journal_.reset();
  journal_ = SqliteJournal::Open(folder_ / "j.db", {.size_bytes = kJournalSizeMin}).value();
  ASSERT_TRUE(journal_->placements()->Evidence().has_value());
  PlacementComparison row = Row("x");
  row.detail = std::string(20'000, 'x');
  for (int i = 0; i < 100; ++i) {
    row.pod.uid = fmt::format("uid-{}", i);
    Add(row);
  }
  EXPECT_LT(Shadowed().equal, 60);
  EXPECT_GT(Shadowed().equal, 5);
}

TEST_F(SqlitePlacementsTest, EvidenceIsOfTheFileThatIsThere) {
  ASSERT_TRUE(journal_->placements()->Evidence().has_value());
  Add(Row("x"));
  ASSERT_TRUE(journal_->Mind().has_value());
  const std::string path = folder_ / "j.db";
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  EXPECT_FALSE(journal_->Mind()) << "all rows are in a new file";
  EXPECT_EQ(Shadowed().equal, 1);
  for (const char* end : {"", "-wal"})
    std::ofstream(path + end, std::ios::trunc) << std::string(50'000, 'x');
  EXPECT_FALSE(journal_->Mind()) << "all rows are lost";
  for (int i = 0; i < 3 && !journal_->Mind(); ++i) {
  }
  EXPECT_EQ(Shadowed().equal, 0);
}

TEST_F(SqlitePlacementsTest, AModeIsKept) {
  EXPECT_FALSE(journal_->modes()->ModeOf("placement").value().has_value());
  const KeptMode mode{.configured = Mode::kShadow,
                      .mode = Mode::kCanary,
                      .policy = "runs/a@12",
                      .objective = "energy",
                      .since = 7,
                      .serves = true,
                      .why = "promoted"};
  ASSERT_TRUE(journal_->modes()->KeepMode("placement", mode).has_value());
  Open();
  EXPECT_EQ(journal_->modes()->ModeOf("placement").value(), mode);
}

}  // namespace
}  // namespace rudderfish
