// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/kept_mode.h"

// What control/sqlite_journal.h keeps of modes and pauses, by kind of decision.

struct sqlite3;

namespace rudderfish {

class SqliteDatabase;
using KeptModes = std::map<std::string, KeptMode, std::less<>>;  // By kind.

namespace internal {
// Those in a journal that is open.
Result<KeptModes> ReadKeptModes(const std::filesystem::path& path, sqlite3* database);
}  // namespace internal

class SqliteModes {
 public:
  explicit SqliteModes(SqliteDatabase* database) : database_(database) {}

  // The mode of a kind of decision, as it was kept last; nothing: never.
  Result<void> KeepMode(std::string_view kind, const KeptMode& mode);
  Result<std::optional<KeptMode>> ModeOf(std::string_view kind);

  // Whether a kind of decision is paused.
  Result<void> KeepPause(std::string_view kind, const KeptPause& pause);
  Result<KeptPause> PauseOf(std::string_view kind);

  // Of a journal that cannot be opened for writing: what was kept may still be read, and is said
  // until it is open.
  Result<void> ReadUnopened();

 private:
  SqliteDatabase* database_;
  KeptModes unopened_modes_;
  std::map<std::string, KeptPause, std::less<>> unopened_pauses_;  // By kind.
};

}  // namespace rudderfish
