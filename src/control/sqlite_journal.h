// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "control/sqlite_database.h"
#include "control/sqlite_modes.h"
#include "control/sqlite_moves.h"
#include "control/sqlite_placements.h"
#include "control/sqlite_routings.h"

// The journal on disk: one SQLite database in WAL mode (docs/journal.md has its schema). A row that
// Append has returned the number of is there after kill -9 and after the power fails. One process
// writes, any number read meanwhile or later. Bounded: rows older than `retention` go, and the
// oldest tenth of the table that is largest whenever the file is about to outgrow `size_bytes`.
//
// A disk that is full is kUnavailable in one line, and costs no row that was written before. A
// journal that is closed refuses what is written in the same way, and knows of no rows. Not thread
// safe.

namespace rudderfish {

class SqliteJournal {
 public:
  // Creates what is missing. Rows that an earlier process left in flight become kUnknown. kConflict
  // if another process writes there.
  static Result<std::unique_ptr<SqliteJournal>> Open(const std::filesystem::path& path,
                                                     const JournalOptions& options);

  // For a process that runs without a journal rather than not at all. One whose disk is full is
  // closed until Mind can open it, but for what was kept of modes; a damaged file is set aside.
  static Result<std::unique_ptr<SqliteJournal>> Start(const std::filesystem::path& path,
                                                      const JournalOptions& options);
  SqliteJournal(const SqliteJournal&) = delete;

  // About once a second: opens what is closed, and notices that the file was removed, replaced or
  // damaged. That is an error, once: it says what is lost, and the journal goes on in a new file
  // with all rows that could still be read.
  Result<void> Mind();

  // Removes what is too old; the size is minded whenever a row is added.
  Result<void> Trim() { return database_.Trim(); }

  // Writes something of no meaning, and waits for the disk.
  Result<void> Probe() { return database_.Probe(); }

  bool is_open() const { return database_.is_open(); }
  int openings() const { return database_.openings(); }  // So far.
  const std::filesystem::path& path() const { return database_.path(); }
  Result<JournalExtent> Extent() const;  // As a JournalReader has it.

  SqliteMoves* moves() { return &moves_; }
  SqlitePlacements* placements() { return &placements_; }
  SqliteRoutings* routings() { return &routings_; }
  SqliteModes* modes() { return &modes_; }

 private:
  SqliteJournal(const std::filesystem::path& path, const JournalOptions& options)
      : database_(path, options, &placements_) {}
  Result<void> ReadWhatIsNeeded();
  Result<void> ReadUnopened();

  SqlitePlacements placements_{&database_};  // Before the database, whose rows it follows.
  SqliteDatabase database_;
  SqliteMoves moves_{&database_};
  SqliteRoutings routings_{&database_};
  SqliteModes modes_{&database_};
};

}  // namespace rudderfish
