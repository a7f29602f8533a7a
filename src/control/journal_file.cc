// SPDX-License-Identifier: Apache-2.0
#include "control/journal_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/wall_time.h"
#include "control/sqlite_statement.h"

namespace rudderfish::internal {

namespace fs = std::filesystem;

namespace {

constexpr int kBusyMs = 2000;                  // A reader that is in the way of a checkpoint.
constexpr uintmax_t kDiskBytesMin = 64 << 10;  // Less room than this is none.
constexpr const char* kBeside[] = {"-wal", "-shm"};
// How SQLite's log begins, but for the lowest bit of the first number: its format, version 3007000.
constexpr unsigned char kLogHead[] = {0x37, 0x7f, 0x06, 0x82, 0x00, 0x2d, 0xe2, 0x18};

// Some calls of SQLite's fail on a full disk without saying that it is full.
bool IsOnFullDisk(const fs::path& path) {
  std::error_code failed;
  const fs::path folder = path.parent_path().empty() ? "." : path.parent_path();
  const fs::space_info space = fs::space(folder, failed);
  return !failed && space.available < kDiskBytesMin;
}

// One process writes a journal. The lock is of another sort than SQLite's own and ends with the
// process, however it ends.
Result<int> Lock(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (file < 0) {
    const bool full = errno == ENOSPC || errno == EDQUOT;
    return Fail(full ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument, "{}: {}",
                path.string(), std::generic_category().message(errno));
  }
  if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file);
    return Fail(ErrorCode::kConflict, "{}: another rudderfish is writing it", path.string());
  }
  return file;
}

// Whether a log begins as SQLite begins it. It holds no locks of SQLite's.
bool HasLogHead(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;  // Not known.
  unsigned char head[sizeof kLogHead];
  const ssize_t read = ::pread(file, head, sizeof head, 0);
  ::close(file);
  if (read < 0) return true;
  if (read < static_cast<ssize_t>(sizeof head)) return false;
  head[3] &= ~1U;
  return std::memcmp(head, kLogHead, sizeof head) == 0;
}

}  // namespace

void CloseDatabase::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

tl::unexpected<Error> DatabaseError(const fs::path& path, sqlite3* database, int code) {
  const int kind = code & 0xff;
  const bool may_be_full = kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN;
  switch (may_be_full && IsOnFullDisk(path) ? SQLITE_FULL : kind) {
    case SQLITE_FULL:
      return Fail(ErrorCode::kUnavailable, "{}: the disk is full", path.string());
    case SQLITE_IOERR:
      return Fail(ErrorCode::kUnavailable, "{}: cannot be written or read ({})", path.string(),
                  sqlite3_errstr(code));
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return Fail(ErrorCode::kCorruption, "{}: is damaged or no journal ({})", path.string(),
                  sqlite3_errstr(code));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Fail(ErrorCode::kUnavailable, "{}: is locked by another program", path.string());
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return Invalid("{}: cannot be opened ({})", path.string(), sqlite3_errstr(code));
    default:
      break;
  }
  return Fail(ErrorCode::kUnavailable, "{}: {}", path.string(),
              database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database));
}

Result<Database> OpenDatabase(const fs::path& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw);
  if (code != SQLITE_OK) return DatabaseError(path, nullptr, code);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyMs);
  return database;
}

Result<int64_t> QueryNumber(const fs::path& path, sqlite3* database, const char* sql) {
  Statement statement(database, sql);
  if (!statement.Step()) return DatabaseError(path, database, statement.code());
  return statement.Integer(0);
}

Result<fs::path> SetAside(const fs::path& path) {
  fs::path to;
  for (UnixMillis at = UnixNow();; ++at) {
    to = fmt::format("{}.damaged-{}", path.string(), at);
    if (!fs::exists(to)) break;
  }
  std::error_code failed;
  fs::rename(path, to, failed);
  if (failed) return Invalid("{}: cannot be renamed: {}", path.string(), failed.message());
  fs::rename(path.string() + "-wal", to.string() + "-wal", failed);
  fs::remove(path.string() + "-shm", failed);
  return to;
}

JournalFile::JournalFile(fs::path path, int lock, Database database)
    : path_(std::move(path)), lock_(lock), database_(std::move(database)) {}

Result<std::unique_ptr<JournalFile>> JournalFile::Open(const fs::path& path) {
  TRY_ASSIGN(const int lock, Lock(path));
  Result<Database> database = OpenDatabase(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!database) {
    ::close(lock);
    return tl::unexpected(std::move(database).error());
  }
  return std::unique_ptr<JournalFile>(new JournalFile(path, lock, *std::move(database)));
}

JournalFile::~JournalFile() {
  database_.reset();  // Before the file: closing that would end SQLite's own locks.
  ::close(lock_);
}

bool JournalFile::IsAtItsPath() const {
  struct stat held {
  }, named{};
  if (::stat(path_.c_str(), &named) != 0) return errno != ENOENT;
  return ::fstat(lock_, &held) != 0 || (held.st_dev == named.st_dev && held.st_ino == named.st_ino);
}

std::string JournalFile::WhyLost() {
  if (!IsAtItsPath()) {
    return fs::exists(path_) ? "has been replaced by another file" : "has been removed or renamed";
  }
  for (size_t i = 0; i < beside_.size(); ++i) {
    const std::string name = path_.string() + kBeside[i];
    const Identity now = IdentityOf(name);
    if (beside_[i] == Identity{}) beside_[i] = now;
    if (!(beside_[i] == now)) return fmt::format("has lost {}", name);
  }
  const std::string log = path_.string() + kBeside[0];
  std::error_code ignored;
  has_log_ = has_log_ || (fs::exists(log, ignored) && fs::file_size(log, ignored) > 0);
  if (has_log_ && !HasLogHead(log)) return fmt::format("has a log that was overwritten, {}", log);
  return "";
}

JournalFile::Identity JournalFile::IdentityOf(const std::string& name) {
  struct stat named {};
  if (::stat(name.c_str(), &named) != 0) return {};
  return {named.st_dev, named.st_ino};
}

void JournalFile::RemoveLog() {
  std::error_code ignored;
  for (size_t i = 0; i < beside_.size(); ++i) {
    const std::string name = path_.string() + kBeside[i];
    if (!(beside_[i] == Identity{}) && beside_[i] == IdentityOf(name)) fs::remove(name, ignored);
  }
}

Result<void> JournalFile::CopyTo(const fs::path& to) const {
  std::error_code ignored;
  fs::remove(to, ignored);
  int code = SQLITE_OK;
  {
    Statement copy(database_.get(), "VACUUM INTO ?");
    copy.Bind(to.string());
    code = copy.Run();
  }
  if (code == SQLITE_OK) return {};
  const tl::unexpected<Error> error = DatabaseError(to, database_.get(), code);
  fs::remove(to, ignored);
  return error;
}

void JournalFile::DistrustLog() {
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

}  // namespace rudderfish::internal
