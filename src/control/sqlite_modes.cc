// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_modes.h"

#include <sqlite3.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "control/journal_file.h"
#include "control/sqlite_database.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

using internal::Statement;

constexpr const char* kSelectModes =
    "SELECT kind, configured, mode, policy, objective, since, serves, why FROM kept_modes";
constexpr const char* kPauses = "SELECT kind, since, paused_by, shared FROM kept_pauses";

Result<KeptMode> ModeFrom(const Statement& row) {
  KeptMode kept{.policy = row.Text(3),
                .objective = row.Text(4),
                .since = row.Integer(5),
                .serves = row.Integer(6) != 0,
                .why = row.Text(7)};
  TRY_ASSIGN(kept.configured, ModeNamed(row.Text(1)));
  TRY_ASSIGN(kept.mode, ModeNamed(row.Text(2)));
  return kept;
}

KeptPause PauseFrom(const Statement& row) {
  return {.since = row.Integer(1), .by = row.Text(2), .is_shared = row.Integer(3) != 0};
}

}  // namespace

Result<KeptModes> internal::ReadKeptModes(const std::filesystem::path& path, sqlite3* database) {
  Statement select(database, kSelectModes);
  KeptModes modes;
  while (select.Step()) {
    if (const Result<KeptMode> kept = ModeFrom(select)) modes[select.Text(0)] = *kept;
  }
  if (select.code() != SQLITE_OK) return DatabaseError(path, database, select.code());
  return modes;
}

Result<void> SqliteModes::KeepMode(std::string_view kind, const KeptMode& mode) {
  TRY(database_->CheckOpen());
  Statement insert(database_->handle(),
                   "INSERT OR REPLACE INTO kept_modes (kind, configured, mode, policy, objective, "
                   "since, serves, why) VALUES (?,?,?,?,?,?,?,?)");
  insert.Bind(kind).Bind(ModeName(mode.configured)).Bind(ModeName(mode.mode));
  insert.Bind(mode.policy).Bind(mode.objective).Bind(mode.since);
  insert.Bind(int64_t{mode.serves}).Bind(mode.why);
  return database_->Check(insert.Run());
}

Result<std::optional<KeptMode>> SqliteModes::ModeOf(std::string_view kind) {
  if (!database_->is_open()) {
    const auto kept = unopened_modes_.find(kind);
    return kept == unopened_modes_.end() ? std::nullopt : std::optional(kept->second);
  }
  Statement select(database_->handle(), kSelectModes);
  while (select.Step()) {
    if (select.Text(0) != kind) continue;
    TRY_ASSIGN(KeptMode kept, ModeFrom(select));
    return std::optional(std::move(kept));
  }
  TRY(database_->Check(select.code()));
  return std::optional<KeptMode>();
}

Result<void> SqliteModes::KeepPause(std::string_view kind, const KeptPause& pause) {
  TRY(database_->CheckOpen());
  Statement remove(database_->handle(), "DELETE FROM kept_pauses WHERE kind = ?");
  Statement insert(database_->handle(),
                   "INSERT OR REPLACE INTO kept_pauses (kind, since, paused_by, shared) "
                   "VALUES (?,?,?,?)");
  Statement& keep = pause.is_on() ? insert : remove;
  keep.Bind(kind);
  if (pause.is_on()) keep.Bind(pause.since).Bind(pause.by).Bind(int64_t{pause.is_shared});
  return database_->Check(keep.Run());
}

Result<KeptPause> SqliteModes::PauseOf(std::string_view kind) {
  if (!database_->is_open()) {
    const auto kept = unopened_pauses_.find(kind);
    return kept == unopened_pauses_.end() ? KeptPause() : kept->second;
  }
  Statement select(database_->handle(), kPauses);
  while (select.Step()) {
    if (select.Text(0) == kind) return PauseFrom(select);
  }
  TRY(database_->Check(select.code()));
  return KeptPause();
}

// Where there is no room for the index beside the log, a database can be read by one process that
// keeps the index in memory.
Result<void> SqliteModes::ReadUnopened() {
  const std::filesystem::path& path = database_->path();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  TRY_ASSIGN(const internal::Database held, internal::OpenDatabase(path, SQLITE_OPEN_READWRITE));
  sqlite3* const database = held.get();
  sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_exec(database, "PRAGMA locking_mode = EXCLUSIVE", nullptr, nullptr, nullptr);
  TRY_ASSIGN(const int64_t tables,
             internal::QueryNumber(path, database,
                                   "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND "
                                   "name IN ('kept_modes', 'kept_pauses')"));
  if (tables < 2) return {};
  TRY_ASSIGN(unopened_modes_, internal::ReadKeptModes(path, database));
  Statement pauses(database, kPauses);
  while (pauses.Step()) unopened_pauses_[pauses.Text(0)] = PauseFrom(pauses);
  if (pauses.code() != SQLITE_OK) return internal::DatabaseError(path, database, pauses.code());
  return {};
}

}  // namespace rudderfish
