// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <system_error>

#include "base/log.h"
#include "control/sqlite_schema.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using internal::DatabaseError;
using internal::JournalFile;
using internal::QueryNumber;
using internal::Statement;

constexpr std::array<const char*, 2> kActs{"decisions", "placements"};  // Whose rows are in flight.
constexpr int kAppendsBetweenLooks = 16;
constexpr int kRowBytes = 250;      // About, beside the longest of its texts, with its indexes.
constexpr double kFullShare = 0.7;  // Of the size: then the oldest rows go; the rest is the log's.

// About, by how many numbers there are and how long the newest rows are: to read all would hold up
// decisions.
Result<const char*> LargestTable(const fs::path& path, sqlite3* database) {
  struct Table {
    const char *name, *text;  // What of a row differs most in length.
  };
  constexpr Table kTables[] = {{"decisions", "length(detail)"},
                               {"placements", "length(best) + length(reason)"},
                               {"comparisons", "length(detail)"},
                               {"evidence", "length(change)"}};
  const char* largest = kTables[0].name;
  int64_t most = 0;
  for (const auto& [name, text] : kTables) {
    const std::string sql = fmt::format(
        "SELECT CAST(((SELECT max(number) FROM {0}) - (SELECT min(number) FROM {0}) + 1) * "
        "(SELECT {2} + avg({1}) FROM (SELECT * FROM {0} ORDER BY number DESC LIMIT 100)) "
        "AS INTEGER)",
        name, text, kRowBytes);
    TRY_ASSIGN(const int64_t bytes, QueryNumber(path, database, sql.c_str()));
    if (bytes <= most) continue;
    most = bytes;
    largest = name;
  }
  return largest;
}

}  // namespace

Result<void> SqliteDatabase::Check(int code) {
  if (code == SQLITE_OK) return {};
  tl::unexpected<Error> error = DatabaseError(path_, handle(), code);
  is_damaged_ = is_damaged_ || error.value().code == ErrorCode::kCorruption;
  return error;
}

Result<void> SqliteDatabase::CheckOpen() const {
  if (is_open()) return {};
  return Fail(ErrorCode::kUnavailable, "{}", closed_);
}

Result<void> SqliteDatabase::Exec(const std::string& sql) {
  return Check(sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr));
}

Result<void> SqliteDatabase::Open() {
  TRY(OpenFile());
  TRY(Settle());
  return Trim();
}

Result<void> SqliteDatabase::Start(const std::function<Result<void>()>& read) {
  Result<void> opened = OpenOrSetAside();
  if (opened) opened = Settle();
  if (opened) opened = Trim();
  if (opened) opened = read();
  if (!opened && is_damaged_) {
    opened = Mind();
    if (!opened) LogWarning("{}", opened.error().message);
  }
  return opened;
}

Result<void> SqliteDatabase::Mind() {
  if (!is_open()) {
    TRY(OpenOrSetAside());
    follower_->Forget();
    return {};
  }
  const std::string why = is_damaged_ ? "is damaged" : file_->WhyLost();
  return why.empty() ? Settle() : Rescue(why);
}

Result<void> SqliteDatabase::OpenFile() {
  closed_.clear();
  Result<std::unique_ptr<JournalFile>> file = JournalFile::Open(path_);
  Result<void> opened = file ? Result<void>() : tl::unexpected(file.error());
  if (file) {
    file_ = *std::move(file);
    opened = Prepare();
  }
  if (!opened) {
    file_.reset();
    closed_ = opened.error().message;
    return opened;
  }
  file_->WhyLost();  // It learns what stands beside it.
  is_damaged_ = false;
  ++openings_;
  return {};
}

Result<void> SqliteDatabase::OpenOrSetAside() {
  const Result<void> opened = OpenFile();
  if (opened || opened.error().code != ErrorCode::kCorruption) return opened;
  TRY_ASSIGN(const fs::path aside, internal::SetAside(path_));
  LogWarning(
      "{}; it was renamed to {}, and a new journal begins: a pause or a mode kept in it is lost",
      opened.error().message, aside.string());
  return OpenFile();
}

Result<void> SqliteDatabase::Prepare() {
  TRY_ASSIGN(const int64_t version, internal::VersionOf(path_, handle()));
  if (version == 0) TRY(Exec("PRAGMA auto_vacuum = INCREMENTAL"));
  TRY(Exec("PRAGMA journal_mode = WAL"));
  TRY(Exec("PRAGMA synchronous = FULL"));
  if (version < internal::kSchemaVersion) TRY(Transact(internal::UpgradeFrom(version)));
  TRY_ASSIGN(page_bytes_, QueryNumber(path_, handle(), "PRAGMA page_size"));
  // The log beside the database is emptied when it holds an eighth of the size.
  const int64_t log_pages = std::max<int64_t>(options_.size_bytes / 8 / page_bytes_, 16);
  TRY(Exec(fmt::format("PRAGMA wal_autocheckpoint = {0}; PRAGMA journal_size_limit = {1}",
                       std::min<int64_t>(log_pages, 1000),
                       std::min<int64_t>(log_pages, 1000) * page_bytes_)));
  // Numbers that this process has given, in a file that is lost, are not given again.
  for (const char* table : {"decisions", "placements", "comparisons"}) {
    if (openings_ == 0) break;
    TRY(
        Exec(fmt::format("UPDATE sqlite_sequence SET seq = max(seq, {0}) WHERE name = '{1}'; "
                         "INSERT INTO sqlite_sequence (name, seq) SELECT '{1}', {0} WHERE NOT "
                         "EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = '{1}')",
                         last_number_, table)));
  }
  if (openings_ == 0) {
    for (size_t i = 0; i < kActs.size(); ++i) {
      const std::string last = fmt::format(
          "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '{}'", kActs[i]);
      TRY_ASSIGN(earlier_[i], QueryNumber(path_, handle(), last.c_str()));
    }
    TRY_ASSIGN(last_number_,
               QueryNumber(path_, handle(), "SELECT coalesce(max(seq), 0) FROM sqlite_sequence"));
  }
  return {};
}

// In one transaction: who reads meanwhile sees all of it or nothing.
Result<void> SqliteDatabase::Transact(const std::string& sql) {
  Result<void> written = Exec("BEGIN IMMEDIATE; " + sql + "; COMMIT");
  if (!written) sqlite3_exec(handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  return written;
}

// Of an earlier process, once. It ended before it heard their outcomes.
Result<void> SqliteDatabase::Settle() {
  if (is_settled_) return {};
  for (size_t i = 0; i < kActs.size(); ++i) {
    TRY(Exec(fmt::format("UPDATE {} SET fate = 'unknown' WHERE fate = 'in flight' AND number <= {}",
                         kActs[i], earlier_[i])));
  }
  is_settled_ = true;
  return {};
}

// What is still open has all rows, whatever has become of its name.
Result<void> SqliteDatabase::Rescue(const std::string& why) {
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
  failed.clear();
  if (copied && !is_taken) fs::rename(copy, path_, failed);
  const bool has_all_rows = copied && !is_taken && !failed;
  if (has_all_rows) {
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
  if (!has_all_rows) follower_->Forget();
  return Fail(ErrorCode::kUnavailable, "{}", text);
}

Result<void> SqliteDatabase::Probe() {
  TRY(CheckOpen());
  return Transact(fmt::format("PRAGMA user_version = {}", internal::kSchemaVersion));
}

int64_t SqliteDatabase::NoteNumber() {
  const int64_t number = sqlite3_last_insert_rowid(handle());
  last_number_ = std::max(last_number_, number);
  return number;
}

// A pod does not wait for the disk: what is committed outlives this process, and after a power
// failure the cluster itself knows where pods are.
Result<void> SqliteDatabase::CommitUnawaited(const std::function<Result<void>()>& insert) {
  TRY(MakeRoom());
  TRY(Exec("PRAGMA synchronous = NORMAL"));
  Result<void> written = Exec("BEGIN IMMEDIATE");
  if (written) written = insert();
  if (written) written = Exec("COMMIT");
  // A commit that failed, on a full disk say, may have left the transaction open.
  if (!written) sqlite3_exec(handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  TRY(Exec("PRAGMA synchronous = FULL"));
  return written;
}

Result<void> SqliteDatabase::Trim() {
  TRY(CheckOpen());
  const UnixMillis oldest =
      options_.now() -
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.retention).count();
  for (const char* sql :
       {"DELETE FROM decisions WHERE written_at < ? AND fate <> 'in flight'",
        "DELETE FROM placements WHERE written_at < ? AND fate <> 'in flight'",
        "DELETE FROM comparisons WHERE written_at < ?", "DELETE FROM evidence WHERE written_at < ?",
        "DELETE FROM corrections WHERE written_at < ?"}) {
    Statement remove(handle(), sql);
    remove.Bind(oldest);
    TRY(Check(remove.Run()));
  }
  follower_->ForgetOlder(oldest);
  appended_ = 0;
  return MakeRoom();
}

Result<void> SqliteDatabase::MakeRoom() {
  TRY(CheckOpen());
  if (appended_++ % kAppendsBetweenLooks != 0) return {};
  const auto most = static_cast<int64_t>(static_cast<double>(options_.size_bytes) * kFullShare);
  for (int round = 0; round < 100; ++round) {
    TRY_ASSIGN(const int64_t pages, QueryNumber(path_, handle(), "PRAGMA page_count"));
    TRY_ASSIGN(const int64_t unused, QueryNumber(path_, handle(), "PRAGMA freelist_count"));
    if ((pages - unused) * page_bytes_ <= most) break;
    TRY(RemoveOldestTenth());
  }
  return {};
}

// Of one table: a busy one does not push out what others hold.
Result<void> SqliteDatabase::RemoveOldestTenth() {
  TRY_ASSIGN(const char* const table, LargestTable(path_, handle()));
  const std::string sql = fmt::format(
      "DELETE FROM {0} WHERE number <= (SELECT min(number) + (max(number) - min(number)) / 10 "
      "FROM {0})",
      table);
  TRY(Exec(sql));
  TRY(follower_->ForgetRemoved());
  return Exec("PRAGMA incremental_vacuum");
}

namespace internal {

Result<JournalExtent> ExtentOf(const fs::path& path, sqlite3* database) {
  JournalExtent extent;
  TRY_ASSIGN(extent.decisions, QueryNumber(path, database, "SELECT count(*) FROM decisions"));
  TRY_ASSIGN(extent.evidence, QueryNumber(path, database, "SELECT count(*) FROM evidence"));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    const auto bytes = fs::file_size(path.string() + suffix, ignored);
    if (!ignored) extent.bytes += static_cast<int64_t>(bytes);
  }
  return extent;
}

}  // namespace internal
}  // namespace rudderfish
