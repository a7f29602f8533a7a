// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/rng.h"
#include "control/journal_reader.h"
#include "control/sqlite_statement.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SqliteJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<SqliteJournal> Open(JournalOptions options = {}) {
    return SqliteJournal::Open(path_, options).value();
  }
  std::vector<StoredRow> Rows(RowFilter filter = {.limit = 1'000'000}) {
    return JournalReader::Open(path_).value().Rows(filter).value();
  }
  int64_t BytesOnDisk() const {
    int64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      bytes += static_cast<int64_t>(entry.file_size());
    }
    return bytes;
  }

  testing::TestFolder folder_;
  fs::path path_ = folder_ / "journal.db";
};

JournalRow FullRow() {
  JournalRow row{.at = std::chrono::seconds(7),
                 .application = "shop",
                 .mode = "shadow",
                 .plan = 3,
                 .step = 1,
                 .policy = "lookahead",
                 .baseline = "greedy",
                 .state_version = 12,
                 .seen = {30, 10, 15, 3, 2},
                 .allowed_cells = 5};
  row.considered = {{.move = JournalMove{"web-1", "edge-1", "cloud-1"},
                     .workload = "web",
                     .predicted = {20, 9, 8, 2, 1},
                     .score = 10},
                    {.move = std::nullopt, .predicted = row.seen, .score = 0.5}};
  row.refused = {{"db", "", "may not be moved"},
                 {"web", "edge-2", "asks for \"2\" CPU, 1 is free"}};
  row.refused_count = 9;
  row.chosen = {{"web-1", "edge-1", "cloud-1"}};
  row.baseline_choice = {{"web-2", "edge-1", "cloud-2"}};
  row.predicted = {20, 9, 8, 2, 1};
  row.predicted_gain_ms = 10;
  row.step_cost_ms = 0.2;
  row.verdict = {.allowed = true, .reason = ""};
  return row;
}

void ExpectSameRow(const JournalRow& a, const JournalRow& b) {
  EXPECT_EQ(a.at, b.at);
  EXPECT_EQ(a.application, b.application);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.plan, b.plan);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.policy, b.policy);
  EXPECT_EQ(a.baseline, b.baseline);
  EXPECT_EQ(a.state_version, b.state_version);
  EXPECT_EQ(a.seen.queueing_ms, b.seen.queueing_ms);
  EXPECT_EQ(a.allowed_cells, b.allowed_cells);
  ASSERT_EQ(a.considered.size(), b.considered.size());
  for (size_t i = 0; i < a.considered.size(); ++i) {
    EXPECT_EQ(a.considered[i].move, b.considered[i].move);
    EXPECT_EQ(a.considered[i].workload, b.considered[i].workload);
    EXPECT_EQ(a.considered[i].predicted.network_ms, b.considered[i].predicted.network_ms);
    EXPECT_EQ(a.considered[i].score, b.considered[i].score);
  }
  EXPECT_EQ(a.refused, b.refused);
  EXPECT_EQ(a.refused_count, b.refused_count);
  EXPECT_EQ(a.chosen, b.chosen);
  EXPECT_EQ(a.baseline_choice, b.baseline_choice);
  EXPECT_EQ(a.predicted.latency_ms, b.predicted.latency_ms);
  EXPECT_EQ(a.predicted_gain_ms, b.predicted_gain_ms);
  EXPECT_EQ(a.step_cost_ms, b.step_cost_ms);
  EXPECT_EQ(a.verdict.allowed, b.verdict.allowed);
  EXPECT_EQ(a.verdict.reason, b.verdict.reason);
}

TEST_F(SqliteJournalTest, RowComesBackAsItWasWritten) {
  auto journal = Open({.now = [] { return UnixMillis{1'700'000'000'123}; }});
  const int64_t number = journal->moves()->Append(FullRow()).value();
  const auto rows = Rows();  // While it is open for writing.
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].number, number);
  EXPECT_EQ(rows[0].written_at, 1'700'000'000'123);
  ExpectSameRow(rows[0].row, FullRow());
  EXPECT_EQ(rows[0].row.fate, Fate::kInFlight);
  EXPECT_FALSE(rows[0].row.measured.has_value());
}

TEST_F(SqliteJournalTest, ConcludedRowTellsWhatCameOfIt) {
  auto journal = Open();
  const int64_t number = journal->moves()->Append(FullRow()).value();
  const RowEnd end{Fate::kFailed, "no room", Terms{.latency_ms = 31}};
  ASSERT_TRUE(journal->moves()->Conclude(number, end));
  const JournalRow row = Rows()[0].row;
  EXPECT_EQ(row.fate, Fate::kFailed);
  EXPECT_EQ(row.failure, "no room");
  ASSERT_TRUE(row.measured.has_value());
  EXPECT_EQ(row.measured->latency_ms, 31);
}

TEST_F(SqliteJournalTest, RowLeftInFlightIsUnknownToTheNextProcess) {
  Open()->moves()->Append(FullRow()).value();
  auto journal = Open();
  EXPECT_EQ(Rows()[0].row.fate, Fate::kUnknown);
  EXPECT_EQ(journal->moves()->Append(FullRow()).value(), 2) << "no number is given twice";
}

TEST_F(SqliteJournalTest, OneProcessWrites) {
  auto journal = Open();
  const auto second = SqliteJournal::Open(path_, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("another rudderfish is writing it"));
}

TEST_F(SqliteJournalTest, RowsAreFoundByTimeApplicationAndPod) {
  UnixMillis now = 1000;
  auto journal = Open({.retention = std::chrono::hours(1), .now = [&] { return now; }});
  JournalRow row = FullRow();
  journal->moves()->Append(row).value();
  now = 2000;
  row.application = "video";
  row.considered.clear();
  row.baseline_choice.clear();
  row.chosen = {{"web-10", "edge-1", "cloud-1"}};
  journal->moves()->Append(row).value();
  EXPECT_EQ(Rows({.since = 1500}).size(), 1u);
  EXPECT_EQ(Rows({.application = "shop"}).size(), 1u);
  EXPECT_EQ(Rows({.pod = "web-2"}).size(), 1u) << "the baseline's choice counts";
  EXPECT_EQ(Rows({.pod = "web-1"})[0].number, 1) << "web-10 is another pod";
  EXPECT_EQ(Rows({.pod = "web-1"}).size(), 1u);
  EXPECT_EQ(Rows({.limit = 1})[0].number, 2) << "the newest";
}

TEST_F(SqliteJournalTest, OldRowsGo) {
  UnixMillis now = 0;
  auto journal = Open({.retention = std::chrono::seconds(10), .now = [&] { return now; }});
  journal->moves()->Append(FullRow()).value();
  ASSERT_TRUE(journal->moves()->Conclude(1, {Fate::kRecorded, "", {}}));
  now = 9'000;
  journal->moves()->Append(FullRow()).value();
  now = 15'000;
  ASSERT_TRUE(journal->Trim());
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].number, 2);
}

TEST_F(SqliteJournalTest, FileStaysWithinItsSizeAndKeepsTheNewest) {
  auto journal = Open({.size_bytes = kJournalSizeMin});
  JournalRow row = FullRow();
  row.verdict.reason.assign(4000, 'x');
  int64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    last = journal->moves()->Append(row).value();
    if (i % 50 == 0) {
      ASSERT_LE(BytesOnDisk(), kJournalSizeMin);
    }
  }
  const auto rows = Rows();
  EXPECT_EQ(last, 1000);
  EXPECT_EQ(rows.back().number, 1000);
  EXPECT_GT(rows.size(), 50u);
  EXPECT_LT(rows.size(), 1000u);
}

// Promotions rest on comparisons, of which there are few beside what a busy scheduler writes.
TEST_F(SqliteJournalTest, BusyTableDoesNotPushOutTheOthers) {
  constexpr int kComparisons = 200;
  auto journal = Open({.size_bytes = kJournalSizeMin});
  for (int i = 0; i < kComparisons; ++i) {
    const PlacementComparison row{.pod = {"shop", "web-" + std::to_string(i), std::to_string(i)},
                                  .scheduler = "default-scheduler",
                                  .policy = "greedy",
                                  .objective = "balance",
                                  .node = "edge-1",
                                  .detail = "{}"};
    ASSERT_TRUE(journal->placements()->AppendComparisons({&row, 1}, {}));
  }
  int64_t last = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<PlacementRow> rows(32);
    for (PlacementRow& row : rows) row.pod = {"shop", "job", "u"};
    ASSERT_TRUE(journal->placements()->AppendPlacements(rows, {}));
    last = rows.back().number;
  }
  const JournalReader reader = JournalReader::Open(path_).value();
  const EvidenceTable evidence = reader.LoadEvidence().value();
  EXPECT_EQ(evidence.Shadowed({.policy = "greedy", .objective = "balance"}).decisions(),
            kComparisons);
  const auto placements = reader.Placements({.limit = last}).value();
  EXPECT_LT(static_cast<int64_t>(placements.size()), last) << "nothing was trimmed";
  EXPECT_EQ(placements.back().row.number, last);
  EXPECT_LE(BytesOnDisk(), kJournalSizeMin);
}

// Many short rows take less room than few long ones.
TEST_F(SqliteJournalTest, TableIsLargeByItsBytesNotByItsRows) {
  auto journal = Open({.size_bytes = kJournalSizeMin});
  constexpr int kEvidence = 300;
  for (int i = 0; i < kEvidence; ++i)
    ASSERT_TRUE(journal->moves()->AppendEvidence({.application = "shop", .term = "latency_ms"}));
  JournalRow row = FullRow();
  row.verdict.reason.assign(8000, 'x');
  for (int i = 0; i < 200; ++i) journal->moves()->Append(row).value();
  const JournalExtent extent = JournalReader::Open(path_).value().Extent().value();
  EXPECT_LT(extent.decisions, 200);
  EXPECT_EQ(extent.evidence, kEvidence);
}

TEST_F(SqliteJournalTest, ForeignAndDamagedFilesAreRefusedInALine) {
  std::ofstream(path_) << std::string(10'000, 'x');
  const auto text = SqliteJournal::Open(path_, {});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(text.error().message, HasSubstr("journal.db"));
  const auto missing = JournalReader::Open(folder_ / "none.db");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(SqliteJournal::Open(folder_ / "no" / "folder.db", {}));
  EXPECT_FALSE(fs::exists(folder_ / "none.db")) << "reading creates nothing";
}

TEST_F(SqliteJournalTest, ExtentCountsRowsAndBytes) {
  const auto journal = Open();
  ASSERT_TRUE(journal->moves()->Append(FullRow()));
  ASSERT_TRUE(journal->moves()->Append(FullRow()));
  ASSERT_TRUE(journal->moves()->AppendEvidence({.application = "shop", .term = "latency_ms"}));
  const JournalExtent extent = JournalReader::Open(path_).value().Extent().value();
  EXPECT_EQ(extent.decisions, 2);
  EXPECT_EQ(extent.evidence, 1);
  EXPECT_EQ(extent.bytes, BytesOnDisk());
}

TEST_F(SqliteJournalTest, EvidenceIsSummedByTerm) {
  auto journal = Open();
  for (const double measured : {-8.0, -12.0}) {
    ASSERT_TRUE(journal->moves()->AppendEvidence({.application = "shop",
                                                  .change = "web-1 from a to b",
                                                  .endpoint = "buy",
                                                  .term = "latency_ms",
                                                  .source = "test",
                                                  .predicted_change_ms = -9,
                                                  .measured_change_ms = measured}));
  }
  const auto sums = JournalReader::Open(path_).value().Evidence().value();
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].count, 2);
  EXPECT_DOUBLE_EQ(sums[0].mean_ms(), 1.0);
  EXPECT_DOUBLE_EQ(sums[0].mean_absolute_ms(), 2.0);
}

// What a full disk does to a file: it cannot grow.
TEST_F(SqliteJournalTest, FullDiskIsOneLineAndCostsNoEarlierRow) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    auto journal = SqliteJournal::Open(path_, {}).value();
    limit.rlim_cur = 300'000;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int64_t reported = 0;
    Result<int64_t> appended = 0;
    while (appended && reported < 100'000) {
      appended = journal->moves()->Append(FullRow());
      if (appended) reported = *appended;
    }
    const bool told = !appended && appended.error().code == ErrorCode::kUnavailable &&
                      appended.error().message.find(path_.string()) == 0 &&
                      appended.error().message.find('\n') == std::string::npos;
    bool still = !journal->moves()->Append(FullRow());
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto again = journal->moves()->Append(FullRow());
    const bool resumed = again && *again == reported + 1;
    journal.reset();
    const auto rows = JournalReader::Open(path_).value().Rows({.limit = 1'000'000}).value();
    const bool kept = static_cast<int64_t>(rows.size()) == reported + 1;
    ::_exit((told ? 0 : 1) | (still ? 0 : 2) | (resumed ? 0 : 4) | (kept ? 0 : 8));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1 told, 2 still, 4 resumed, 8 kept";
}

TEST_F(SqliteJournalTest, RemovedFileIsNoticedAndAllRowsAreInANewOne) {
  auto journal = SqliteJournal::Start(path_, {}).value();
  const int64_t first = journal->moves()->Append(FullRow()).value();
  ASSERT_TRUE(journal->Mind().has_value());
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(path_.string() + end);
  const Result<void> minded = journal->Mind();
  ASSERT_FALSE(minded);
  EXPECT_EQ(minded.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(minded.error().message, HasSubstr("has been removed or renamed; all rows are in a "
                                                "new file of that name"));
  EXPECT_TRUE(journal->Mind().has_value()) << "said once";
  ASSERT_TRUE(journal->moves()->Conclude(first, {Fate::kDone, "", {}}).has_value());
  EXPECT_EQ(journal->moves()->Append(FullRow()).value(), first + 1);
  EXPECT_EQ(Rows()[0].row.fate, Fate::kDone) << "it is no earlier process's";
}

TEST_F(SqliteJournalTest, NumbersGoOnInAFileThatHasLostAllRows) {
  auto journal = SqliteJournal::Start(path_, {}).value();
  const int64_t last = journal->moves()->Append(FullRow()).value();
  {
    std::ofstream(path_, std::ios::trunc) << std::string(50'000, 'x');
    std::ofstream(path_.string() + "-wal", std::ios::trunc) << std::string(50'000, 'x');
  }
  ASSERT_FALSE(journal->Mind());
  for (int i = 0; i < 3 && !journal->Mind(); ++i) {
  }
  EXPECT_EQ(journal->moves()->Append(FullRow()).value(), last + 1);
}

TEST_F(SqliteJournalTest, EachTableCountsByItself) {
  {
    auto journal = SqliteJournal::Open(path_, {}).value();
    std::vector<PlacementRow> rows(5);
    ASSERT_TRUE(journal->placements()->AppendPlacements(rows, {}).has_value());
    JournalRow row = FullRow();
    row.fate = Fate::kInFlight;
    const int64_t number = journal->moves()->Append(row).value();
    EXPECT_EQ(number, 1);
    ASSERT_TRUE(journal->moves()->Conclude(number, {Fate::kDone, "", {}}).has_value());
    EXPECT_EQ(JournalReader::Open(path_)->Rows({}).value().at(0).row.fate, Fate::kDone);
  }
  auto again = SqliteJournal::Open(path_, {}).value();
  JournalRow row = FullRow();
  row.fate = Fate::kInFlight;
  EXPECT_EQ(again->moves()->Append(row).value(), 2);
}

TEST_F(SqliteJournalTest, ADamagedTableIsNoticedWhereAProcessMustStart) {
  ASSERT_TRUE(Open()->moves()->Append(FullRow()).has_value());
  {
    const internal::Database database =
        internal::OpenDatabase(path_, SQLITE_OPEN_READWRITE).value();
    const int64_t page = internal::QueryNumber(path_, database.get(), "PRAGMA page_size").value();
    const int64_t root =
        internal::QueryNumber(path_, database.get(),
                              "SELECT rootpage FROM sqlite_master WHERE name = 'comparisons'")
            .value();
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((root - 1) * page);
    file << std::string(static_cast<size_t>(page), 'x');
  }
  auto journal = SqliteJournal::Start(path_, {}).value();
  EXPECT_TRUE(journal->placements()->Evidence().has_value());
  EXPECT_TRUE(journal->moves()->Append(FullRow()).has_value());
}

// It may say that decisions are paused.
TEST_F(SqliteJournalTest, NothingStartsOnAJournalWhosePausesCannotBeRead) {
  ASSERT_TRUE(Open()->modes()->KeepPause("decisions", {.since = 1, .by = "me"}).has_value());
  const internal::Database other = internal::OpenDatabase(path_, SQLITE_OPEN_READWRITE).value();
  ASSERT_EQ(sqlite3_exec(other.get(), "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  const auto started = SqliteJournal::Start(path_, {});
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("paused cannot be read"));
}

TEST_F(SqliteJournalTest, DamagedFileIsSetAsideWhereAProcessMustStart) {
  std::ofstream(path_) << std::string(10'000, 'x');
  auto journal = SqliteJournal::Start(path_, {}).value();
  EXPECT_TRUE(journal->moves()->Append(FullRow()).has_value());
  int aside = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    aside += entry.path().filename().string().starts_with("journal.db.damaged-") ? 1 : 0;
  EXPECT_EQ(aside, 1);
}

TEST_F(SqliteJournalTest, FullDiskAtTheStartHidesNoModeAndIsOpenedOnceThereIsRoom) {
  const KeptMode mode{
      .configured = Mode::kShadow, .mode = Mode::kEnforce, .policy = "p", .since = 5};
  ASSERT_TRUE(Open()->modes()->KeepMode("placement", mode).has_value());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 1000;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto journal = SqliteJournal::Start(path_, {}).value();
    const bool closed =
        !journal->is_open() && !journal->moves()->Append(FullRow()) && !journal->Mind();
    const bool known = journal->modes()->ModeOf("placement").value() == mode;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const bool opened = journal->Mind() && journal->moves()->Append(FullRow());
    ::_exit((closed ? 0 : 1) | (known ? 0 : 2) | (opened ? 0 : 4));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1 closed, 2 known, 4 opened";
}

// Appends and concludes until it is killed; says each number once it has been given.
[[noreturn]] void AppendForever(const fs::path& path, int report) {
  auto journal = SqliteJournal::Open(path, {.size_bytes = int64_t{64} << 20}).value();
  while (true) {
    const int64_t number = journal->moves()->Append(FullRow()).value();
    if (::write(report, &number, sizeof number) != sizeof number) ::_exit(1);
    if (!journal->moves()->Conclude(number, {Fate::kRecorded, "", {}})) ::_exit(1);
  }
}

// RUDDERFISH_KILLS: how often; 5 by default.
TEST_F(SqliteJournalTest, KillLosesNoRowThatWasReportedAndRepeatsNone) {
  const char* kills_text = std::getenv("RUDDERFISH_KILLS");
  const int kills = kills_text == nullptr ? 5 : std::atoi(kills_text);
  Rng rng(static_cast<uint64_t>(::getpid()));
  std::set<int64_t> reported;
  size_t unreported = 0;
  for (int kill = 0; kill < kills; ++kill) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(ends[0]);
      AppendForever(path_, ends[1]);
    }
    ::close(ends[1]);
    // Killed while it writes, after some rows and some microseconds.
    int64_t number = 0;
    const uint32_t rows = 1 + rng.Below(60);
    for (uint32_t i = 0; i < rows; ++i) {
      ASSERT_EQ(::read(ends[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
      EXPECT_TRUE(reported.insert(number).second) << number << " was given twice";
    }
    ::usleep(rng.Below(3000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    while (::read(ends[0], &number, sizeof number) == sizeof number) {
      EXPECT_TRUE(reported.insert(number).second) << number << " was given twice";
    }
    ::close(ends[0]);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);

    std::set<int64_t> there;
    for (const StoredRow& row : Rows()) EXPECT_TRUE(there.insert(row.number).second);
    for (const int64_t one : reported) EXPECT_TRUE(there.contains(one)) << one << " is lost";
    EXPECT_LE(there.size(), reported.size() + unreported + 1) << "one was being reported";
    unreported = there.size() - reported.size();
  }
}

}  // namespace
}  // namespace rudderfish
