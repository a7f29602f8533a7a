// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "base/wall_time.h"
#include "control/journal_file.h"

// What all tables of control/sqlite_journal.h share: the database in its file, another one where
// that is lost, numbers of rows, transactions, errors, and what goes because it is old or too much.
// Not thread safe.

namespace rudderfish {

struct JournalOptions {
  std::chrono::seconds retention = std::chrono::hours(24 * 30);
  int64_t size_bytes = int64_t{256} << 20;  // At least kJournalSizeMin.
  std::function<UnixMillis()> now = UnixNow;
};
inline constexpr int64_t kJournalSizeMin = int64_t{1} << 20;

// How much there is.
struct JournalExtent {
  int64_t decisions = 0, evidence = 0;  // Rows.
  int64_t bytes = 0;                    // On disk, the log beside the database included.
};

// Who keeps in memory what rows say.
class RowFollower {
 public:
  virtual ~RowFollower() = default;
  virtual void Forget() = 0;  // The file is another one, with other rows.
  virtual void ForgetOlder(UnixMillis than) = 0;
  virtual Result<void> ForgetRemoved() = 0;  // The oldest rows of some table are gone.
};

class SqliteDatabase {
 public:
  // Closed at first. The follower outlives it.
  SqliteDatabase(std::filesystem::path path, const JournalOptions& options, RowFollower* follower)
      : path_(std::move(path)), options_(options), follower_(follower) {
    CHECK_GE(options.size_bytes, kJournalSizeMin);
  }

  // As SqliteJournal has them. `read` asks for what a process needs when it starts.
  Result<void> Open();
  Result<void> Start(const std::function<Result<void>()>& read);
  Result<void> Mind();
  Result<void> Trim();
  Result<void> Probe();

  bool is_open() const { return file_ != nullptr; }
  int openings() const { return openings_; }
  const std::filesystem::path& path() const { return path_; }

  // For tables. Of what is closed there is no handle.
  sqlite3* handle() const { return file_->database(); }
  UnixMillis now() const { return options_.now(); }
  Result<void> CheckOpen() const;
  Result<void> MakeRoom();  // Before a row is added; an error while it is closed.

  // In one transaction that does not wait for the disk.
  Result<void> CommitUnawaited(const std::function<Result<void>()>& insert);

  // Of the row that was inserted last, in any table; no number is given twice.
  int64_t NoteNumber();

  // What SQLite's code says, in words.
  Result<void> Check(int code);

 private:
  Result<void> OpenFile();
  Result<void> OpenOrSetAside();
  Result<void> Prepare();
  Result<void> Settle();
  Result<void> Rescue(const std::string& why);
  Result<void> Exec(const std::string& sql);
  Result<void> Transact(const std::string& sql);
  Result<void> RemoveOldestTenth();

  std::filesystem::path path_;
  JournalOptions options_;
  RowFollower* follower_;
  std::unique_ptr<internal::JournalFile> file_;  // Null: it is closed,
  std::string closed_;                           // and why.
  int openings_ = 0;
  bool is_damaged_ = false;
  int64_t last_number_ = 0;  // That was given, of any table; no number is given twice.
  bool is_settled_ = false;  // What an earlier process has left in flight is unknown now.
  // Up to these numbers rows of `decisions` and `placements` are of earlier processes.
  std::array<int64_t, 2> earlier_{};
  int64_t page_bytes_ = 0;
  int appended_ = 0;  // Since the size was looked at.
};

namespace internal {

Result<JournalExtent> ExtentOf(const std::filesystem::path& path, sqlite3* database);

}  // namespace internal
}  // namespace rudderfish
