// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

// The tables of control/sqlite_journal.h, and how those of earlier versions become these;
// docs/journal.md describes them.

struct sqlite3;

namespace rudderfish::internal {

inline constexpr int kSchemaVersion = 5;

// The version of a journal, 0 of a file that holds nothing yet. A database of another program, and
// a newer version than this program knows, are refused.
Result<int64_t> VersionOf(const std::filesystem::path& path, sqlite3* database);

// What makes a journal of this version from one of an earlier version.
std::string UpgradeFrom(int64_t version);

}  // namespace rudderfish::internal
