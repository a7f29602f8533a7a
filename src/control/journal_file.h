// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

// The file of a journal. A part of control/sqlite_database.h. SQLite's own locks end when any
// descriptor of the database is closed, so that a process opens and closes that file through SQLite
// alone, but for the lock here, which is closed last.

struct sqlite3;

namespace rudderfish::internal {

// Closes what is nullptr, too.
struct CloseDatabase {
  void operator()(sqlite3* database) const;
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

Result<Database> OpenDatabase(const std::filesystem::path& path, int flags);

// What went wrong, in one line that names the file.
tl::unexpected<Error> DatabaseError(const std::filesystem::path& path, sqlite3* database, int code);

// The first number of the first row.
Result<int64_t> QueryNumber(const std::filesystem::path& path, sqlite3* database, const char* sql);

// Renames a file and the log beside it; returns its new name.
Result<std::filesystem::path> SetAside(const std::filesystem::path& path);

// As its one writer holds it. Not thread safe.
class JournalFile {
 public:
  // Creates the file if there is none. kConflict if another process writes it.
  static Result<std::unique_ptr<JournalFile>> Open(const std::filesystem::path& path);
  ~JournalFile();
  JournalFile(const JournalFile&) = delete;

  sqlite3* database() const { return database_.get(); }

  // Why what is written is not where a reader looks for it, by the identity of the files and the
  // head of the log; empty: it is. Cheap.
  std::string WhyLost();
  bool IsAtItsPath() const;  // The database itself.

  // Writes all rows to another file, also if this one has no name any more.
  Result<void> CopyTo(const std::filesystem::path& to) const;

  // The log does not get into the database when this is closed.
  void DistrustLog();

  // Removes the log and its index by their names: what they do not belong to must not be opened
  // with them.
  void RemoveLog();

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };

  JournalFile(std::filesystem::path path, int lock, Database database);
  static Identity IdentityOf(const std::string& name);  // Of none: none is there.

  std::filesystem::path path_;
  int lock_;
  Database database_;
  std::array<Identity, 2> beside_{};  // Of the log and its index, once they are there.
  bool has_log_ = false;              // Something was written there.
};

}  // namespace rudderfish::internal
