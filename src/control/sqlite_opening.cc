// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "control/sqlite_journal.h"
#include "control/sqlite_schema.h"
#include "control/sqlite_statement.h"

// How control/sqlite_journal.h comes by its file, and by another one where that is lost.

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using internal::JournalFile;
using internal::QueryNumber;
using internal::Statement;

constexpr std::array<const char*, 2> kActs{"decisions", "placements"};  // Whose rows are in flight.

}  // namespace

Result<void> SqliteJournal::CheckOpen() const {
  if (is_open()) return {};
  return Fail(ErrorCode::kUnavailable, "{}", closed_);
}

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::Open(const fs::path& path,
                                                           const JournalOptions& options) {
  CHECK_GE(options.size_bytes, kJournalSizeMin);
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(path, options));
  TRY(journal->OpenFile());
  TRY(journal->Settle());
  TRY(journal->Trim());
  return journal;
}

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::Start(const fs::path& path,
                                                            const JournalOptions& options) {
  CHECK_GE(options.size_bytes, kJournalSizeMin);
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(path, options));
  Result<void> opened = journal->OpenOrSetAside();
  if (opened) opened = journal->Settle();
  if (opened) opened = journal->Trim();
  if (opened) opened = journal->ReadWhatIsNeeded();
  if (!opened && journal->is_damaged_) {
    opened = journal->Mind();
    if (!opened) LogWarning("{}", opened.error().message);
  }
  if (!opened && opened.error().code != ErrorCode::kUnavailable) {
    return tl::unexpected(opened.error());
  }
  if (const Result<void>& read = journal->kept_read_; !read) {
    return Fail(
        read.error().code,
        "{}; whether it says that decisions are paused cannot be read, so that none is made",
        read.error().message);
  }
  return journal;
}

// Damage is noticed now rather than by a kind of decision that could not begin then.
Result<void> SqliteJournal::ReadWhatIsNeeded() {
  TRY(Evidence());
  TRY(UnendedComparisons(""));
  TRY(ModeOf(""));
  TRY(PauseOf(""));
  return {};
}

Result<void> SqliteJournal::Mind() {
  if (!is_open()) return OpenOrSetAside();
  const std::string why = is_damaged_ ? "is damaged" : file_->WhyLost();
  return why.empty() ? Settle() : Rescue(why);
}

Result<void> SqliteJournal::OpenFile() {
  closed_.clear();
  Result<std::unique_ptr<JournalFile>> file = JournalFile::Open(path_);
  Result<void> opened = file ? Result<void>() : tl::unexpected(file.error());
  if (file) {
    file_ = *std::move(file);
    opened = Prepare();
  }
  if (!opened) {
    file_.reset();
    if (openings_ == 0 && opened.error().code == ErrorCode::kUnavailable) kept_read_ = ReadKept();
    closed_ = opened.error().message;
    return opened;
  }
  kept_read_ = {};
  file_->WhyLost();  // It learns what stands beside it.
  is_damaged_ = false;
  evidence_.reset();
  ++openings_;
  return {};
}

Result<void> SqliteJournal::OpenOrSetAside() {
  const Result<void> opened = OpenFile();
  if (opened || opened.error().code != ErrorCode::kCorruption) return opened;
  TRY_ASSIGN(const fs::path aside, internal::SetAside(path_));
  LogWarning(
      "{}; it was renamed to {}, and a new journal begins: a pause or a mode kept in it is lost",
      opened.error().message, aside.string());
  return OpenFile();
}

Result<void> SqliteJournal::Prepare() {
  TRY_ASSIGN(const int64_t version, internal::VersionOf(path_, database()));
  if (version == 0) TRY(Exec("PRAGMA auto_vacuum = INCREMENTAL"));
  TRY(Exec("PRAGMA journal_mode = WAL"));
  TRY(Exec("PRAGMA synchronous = FULL"));
  TRY(Upgrade(version));
  TRY_ASSIGN(page_bytes_, QueryNumber(path_, database(), "PRAGMA page_size"));
  // The log beside the database is emptied when it holds an eighth of the size.
  const int64_t log_pages = std::max<int64_t>(options_.size_bytes / 8 / page_bytes_, 16);
  TRY(Exec(fmt::format("PRAGMA wal_autocheckpoint = {0}; PRAGMA journal_size_limit = {1}",
                       std::min<int64_t>(log_pages, 1000),
                       std::min<int64_t>(log_pages, 1000) * page_bytes_)
               .c_str()));
  // Numbers that this process has given, in a file that is lost, are not given again.
  for (const char* table : {"decisions", "placements", "comparisons"}) {
    if (openings_ == 0) break;
    TRY(Exec(fmt::format("UPDATE sqlite_sequence SET seq = max(seq, {0}) WHERE name = '{1}'; "
                         "INSERT INTO sqlite_sequence (name, seq) SELECT '{1}', {0} WHERE NOT "
                         "EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = '{1}')",
                         last_number_, table)
                 .c_str()));
  }
  if (openings_ == 0) {
    for (size_t i = 0; i < kActs.size(); ++i) {
      const std::string last = fmt::format(
          "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '{}'", kActs[i]);
      TRY_ASSIGN(earlier_[i], QueryNumber(path_, database(), last.c_str()));
    }
    TRY_ASSIGN(last_number_,
               QueryNumber(path_, database(), "SELECT coalesce(max(seq), 0) FROM sqlite_sequence"));
  }
  return {};
}

// In one transaction: who reads meanwhile sees the one version or the other.
Result<void> SqliteJournal::Upgrade(int64_t version) {
  if (version == internal::kSchemaVersion) return {};
  std::string sql = "BEGIN IMMEDIATE; ";
  for (int64_t v = version; v < internal::kSchemaVersion; ++v) sql += internal::kUpgrades[v];
  sql += fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT",
                     internal::kApplicationId, internal::kSchemaVersion);
  const Result<void> upgraded = Exec(sql.c_str());
  if (!upgraded) sqlite3_exec(database(), "ROLLBACK", nullptr, nullptr, nullptr);
  return upgraded;
}

// Of an earlier process, once. It ended before it heard what came of them.
Result<void> SqliteJournal::Settle() {
  if (is_settled_) return {};
  for (size_t i = 0; i < kActs.size(); ++i) {
    TRY(Exec(fmt::format("UPDATE {} SET fate = 'unknown' WHERE fate = 'in flight' AND number <= {}",
                         kActs[i], earlier_[i])
                 .c_str()));
  }
  is_settled_ = true;
  return {};
}

// What is still open has all rows, whatever has become of its name.
Result<void> SqliteJournal::Rescue(const std::string& why) {
  const fs::path copy = fmt::format("{}.rescued-{}", path_.string(), UnixNow());
  const bool is_there = file_->IsAtItsPath();
  Result<void> copied = file_->CopyTo(copy);
  file_->DistrustLog();  // It may damage what it has not reached yet.
  if (!is_damaged_ && copied) file_->RemoveLog();
  file_.reset();
  std::string text = fmt::format("{}: {}", path_.string(), why);
  std::error_code failed;
  if (is_there && (copied || is_damaged_)) {
    TRY_ASSIGN(const fs::path aside, internal::SetAside(path_));
    text += fmt::format("; what is there was renamed to {}", aside.string());
  }
  const bool is_taken = fs::exists(path_, failed);
  if (!copied && !is_taken)  // A new file must not take it for its own.
    fs::rename(path_.string() + "-wal", copy.string() + "-wal", failed);
  std::optional<EvidenceTable> evidence;
  failed.clear();
  if (copied && !is_taken) fs::rename(copy, path_, failed);
  if (copied && !is_taken && !failed) {
    evidence = std::move(evidence_);
    text += "; all rows are in a new file of that name";
  } else if (copied) {
    text += fmt::format("; the rows that it held are in {}", copy.string());
  } else if (!is_taken) {
    text += fmt::format("; the rows that it held are lost ({}), and a new file begins",
                        copied.error().message);
  } else if (is_there) {
    text += "; the newest rows are lost";
  }
  if (const Result<void> opened = OpenOrSetAside(); !opened) {
    return Fail(opened.error().code, "{}; {}", text, opened.error().message);
  }
  if (evidence) evidence_ = std::move(evidence);
  return Fail(ErrorCode::kUnavailable, "{}", text);
}

Result<void> SqliteJournal::Probe() {
  TRY(CheckOpen());
  const std::string sql =
      fmt::format("BEGIN IMMEDIATE; PRAGMA user_version = {}; COMMIT", internal::kSchemaVersion);
  const Result<void> written = Exec(sql.c_str());
  if (!written) sqlite3_exec(database(), "ROLLBACK", nullptr, nullptr, nullptr);
  return written;
}

namespace internal {

Result<int64_t> VersionOf(const fs::path& path, sqlite3* database) {
  TRY_ASSIGN(const int64_t application, QueryNumber(path, database, "PRAGMA application_id"));
  TRY_ASSIGN(const int64_t version, QueryNumber(path, database, "PRAGMA user_version"));
  TRY_ASSIGN(const int64_t tables,
             QueryNumber(path, database, "SELECT count(*) FROM sqlite_master"));
  if (tables == 0) return 0;
  if (application != kApplicationId) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: is a database of another program",
                path.string());
  }
  if (version > kSchemaVersion) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: was written by a newer version of rudderfish (schema version {}; this program "
                "knows {}); use that version, or name another file in `journal.path`",
                path.string(), version, kSchemaVersion);
  }
  return version;
}

}  // namespace internal
}  // namespace rudderfish
