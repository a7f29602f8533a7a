// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>

#include "control/journal_file.h"
#include "control/journal_reader.h"
#include "control/sqlite_journal.h"
#include "tests/support/test_folder.h"

// Journals of earlier versions of the schema, which stand here as they were.

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kVersion1 = R"(
CREATE TABLE decisions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  application TEXT NOT NULL,
  kind TEXT NOT NULL,
  mode TEXT NOT NULL,
  policy TEXT NOT NULL,
  plan INTEGER NOT NULL,
  step INTEGER NOT NULL,
  pod TEXT,
  from_node TEXT,
  to_node TEXT,
  latency_ms REAL NOT NULL,
  predicted_gain_ms REAL NOT NULL,
  step_cost_ms REAL NOT NULL,
  allowed INTEGER NOT NULL,
  reason TEXT NOT NULL,
  baseline TEXT NOT NULL,
  baseline_pod TEXT,
  baseline_to_node TEXT,
  fate TEXT NOT NULL,
  failure TEXT NOT NULL,
  measured TEXT,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX decisions_by_time ON decisions (written_at);
CREATE INDEX decisions_by_fate ON decisions (fate) WHERE fate = 'in flight';
CREATE TABLE evidence (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  application TEXT NOT NULL,
  change TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  term TEXT NOT NULL,
  source TEXT NOT NULL,
  predicted_change_ms REAL NOT NULL,
  measured_change_ms REAL NOT NULL
) STRICT;
)";

// A journal of version 1 has these if pods were placed by a later program.
constexpr const char* kVersion1Placing = R"(
CREATE TABLE placements (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  pod TEXT NOT NULL,
  uid TEXT NOT NULL,
  node TEXT,
  scheduler TEXT NOT NULL,
  policy TEXT NOT NULL,
  priority INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  waited_ms REAL NOT NULL,
  nodes INTEGER NOT NULL,
  feasible INTEGER NOT NULL,
  best TEXT NOT NULL,
  reason TEXT NOT NULL,
  fate TEXT NOT NULL,
  failure TEXT NOT NULL
) STRICT;
CREATE INDEX placements_by_time ON placements (written_at);
CREATE INDEX placements_by_fate ON placements (fate) WHERE fate = 'in flight';
CREATE TABLE comparisons (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  pod TEXT NOT NULL,
  uid TEXT NOT NULL,
  kind TEXT NOT NULL,
  scheduler TEXT NOT NULL,
  policy TEXT NOT NULL,
  objective TEXT NOT NULL,
  node TEXT,
  policy_node TEXT,
  baseline_node TEXT,
  policy_change REAL NOT NULL,
  baseline_change REAL NOT NULL,
  rules TEXT NOT NULL,
  reason TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  feasible INTEGER NOT NULL,
  waited_ms REAL NOT NULL,
  fate TEXT NOT NULL,
  failure TEXT NOT NULL,
  measured_gain REAL,
  measured_change REAL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX comparisons_by_time ON comparisons (written_at);
CREATE INDEX comparisons_by_uid ON comparisons (uid);
CREATE TABLE kept_modes (
  kind TEXT PRIMARY KEY,
  configured TEXT NOT NULL,
  mode TEXT NOT NULL,
  policy TEXT NOT NULL,
  objective TEXT NOT NULL,
  since INTEGER NOT NULL,
  serves INTEGER NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE TABLE kept_pauses (
  kind TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  paused_by TEXT NOT NULL,
  shared INTEGER NOT NULL
) STRICT;
)";

constexpr const char* kRows1 = R"(
INSERT INTO decisions VALUES (41, 1000, 'shop', 'migration', 'shadow', 'greedy', 0, 0, NULL, NULL,
  NULL, 10, 0, 0.1, 1, '', '', NULL, NULL, 'in flight', '', NULL,
  '{"at_ns":0,"application":"shop","kind":"migration","mode":"shadow","policy":"greedy",
    "baseline":"","plan":0,"step":0,"state_version":1,"allowed_cells":1,"seen":{"latency_ms":10},
    "chosen":[],"predicted":{"latency_ms":10},"predicted_gain_ms":0,"step_cost_ms":0.1,
    "baseline_choice":[],"verdict":{"allowed":true,"reason":""},"considered":[],"refused":[],
    "refused_count":0,"fate":"stayed","failure":"","measured":null}');
INSERT INTO evidence VALUES (1, 1000, 'shop', 'x', '', 'latency_ms', 's', 3, 2);
)";

constexpr const char* kPlacingRows1 = R"(
INSERT INTO placements VALUES (7, 1000, 'shop', 'web-1', 'u1', 'a', 'rudderfish', 'greedy', 0, 1, 5,
  3, 2, '[]', '', 'done', '');
INSERT INTO comparisons VALUES (9, 1000, 'shop', 'web-2', 'u2', 'shadow', 'default-scheduler',
  'greedy', 'balance', 'a', 'b', 'a', 0.001, 0.003, 'equal', '', 3, 2, 5, 'started', '', 0.001, 0,
  '{}');
INSERT INTO kept_modes VALUES ('placement', 'shadow', 'canary', 'greedy', 'balance', 5, 1, 'why');
)";

class SqliteSchemaTest : public ::testing::Test {
 protected:
  void Make(int version, std::initializer_list<const char*> statements) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    std::string sql = fmt::format(
        "PRAGMA journal_mode = WAL; PRAGMA application_id = 1380338225; PRAGMA user_version = {};",
        version);
    for (const char* one : statements) sql += one;
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
        << (error == nullptr ? "" : error);
    sqlite3_close(database);
  }
  std::unique_ptr<SqliteJournal> Open() {
    return SqliteJournal::Open(path_, {.now = [] { return UnixMillis{2000}; }}).value();
  }

  testing::TestFolder folder_;
  fs::path path_ = folder_ / "j.db";
};

TEST_F(SqliteSchemaTest, JournalOfMovesAloneIsUpgraded) {
  Make(1, {kVersion1, kRows1});
  const auto early = JournalReader::Open(path_);
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("`rudderfish run` upgrades it"));
  const auto journal = Open();
  const JournalReader reader = JournalReader::Open(path_).value();
  const auto rows = reader.Decisions({}).value();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(std::get<StoredRow>(rows[0]).number, 41);
  EXPECT_EQ(std::get<StoredRow>(rows[0]).row.fate, Fate::kUnknown);
  EXPECT_EQ(reader.Evidence().value().at(0).count, 1);
  EXPECT_TRUE(reader.Changes().value().empty()) << "it does not say which part was predicted";
  EXPECT_EQ(journal->moves()->Append({.kind = "migration"}).value(), 42)
      << "no number is given twice";
}

TEST_F(SqliteSchemaTest, JournalOfPlacementsKeepsThemTheirEvidenceAndTheMode) {
  Make(1, {kVersion1, kVersion1Placing, kRows1, kPlacingRows1});
  const auto journal = Open();
  const auto rows = JournalReader::Open(path_).value().Decisions({}).value();
  ASSERT_EQ(rows.size(), 3u);
  const ShadowEvidence evidence = journal->placements()->Evidence().value()->Shadowed(
      {.policy = "greedy", .objective = "balance"});
  EXPECT_EQ(evidence.equal, 1);
  EXPECT_NEAR(evidence.gain.mean(), 0.002, 1e-12);
  const auto compared = JournalReader::Open(path_).value().Comparisons({.cluster = ""}).value();
  ASSERT_EQ(compared.size(), 1u) << "all rows of earlier versions are of the own cluster";
  EXPECT_EQ(journal->modes()->ModeOf("placement").value()->mode, Mode::kCanary);
  EXPECT_EQ(JournalReader::Open(path_).value().Modes().value().at("placement").mode, Mode::kCanary);
}

TEST_F(SqliteSchemaTest, OneViewHasTheDecisionsOfAllKinds) {
  Make(1, {kVersion1, kVersion1Placing, kRows1, kPlacingRows1});
  const auto journal = Open();
  const auto listed = JournalReader::Open(path_).value().Decisions({}).value();
  const auto number = [&](const char* sql) {
    const internal::Database database = internal::OpenDatabase(path_, SQLITE_OPEN_READONLY).value();
    return internal::QueryNumber(path_, database.get(), sql).value();
  };
  EXPECT_EQ(number("SELECT count(*) FROM all_decisions"), static_cast<int64_t>(listed.size()));
  EXPECT_EQ(number("SELECT count(DISTINCT kind) FROM all_decisions"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM all_decisions WHERE subject NOT LIKE '%/%'"), 0);
  EXPECT_EQ(number("SELECT CAST(round(predicted_gain) AS INTEGER) FROM all_decisions "
                   "WHERE mode = 'shadow' AND kind = 'placement'"),
            2000)
      << "0.002 in parts per million";
}

TEST_F(SqliteSchemaTest, NewerVersionIsRefusedAndLeftAsItIs) {
  Make(6, {"CREATE TABLE decisions (number INTEGER PRIMARY KEY);"});
  for (const bool starts : {false, true}) {
    const auto opened = starts ? SqliteJournal::Start(path_, {}) : SqliteJournal::Open(path_, {});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kFailedPrecondition);
    EXPECT_THAT(opened.error().message,
                HasSubstr("was written by a newer version of rudderfish (schema version 6; this "
                          "program knows 5)"));
  }
}

}  // namespace
}  // namespace rudderfish
