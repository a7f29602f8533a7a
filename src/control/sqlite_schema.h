// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "base/result.h"

// The tables of control/sqlite_journal.h; docs/journal.md describes them.

struct sqlite3;

namespace rudderfish::internal {

inline constexpr int kApplicationId = 0x52464a31;  // "RFJ1"
inline constexpr int kSchemaVersion = 4;

// The version of a journal, 0 of a file that holds nothing yet. A database of another program, and
// a newer version than this program knows, are refused.
Result<int64_t> VersionOf(const std::filesystem::path& path, sqlite3* database);

inline constexpr const char* kFirstVersion = R"(
CREATE TABLE decisions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  application TEXT NOT NULL,
  kind TEXT NOT NULL,
  mode TEXT NOT NULL,
  policy TEXT NOT NULL,
  plan INTEGER NOT NULL,
  step INTEGER NOT NULL,
  pod TEXT,
  from_node TEXT,
  to_node TEXT,
  latency_ms REAL NOT NULL,
  predicted_gain_ms REAL NOT NULL,
  step_cost_ms REAL NOT NULL,
  allowed INTEGER NOT NULL,
  reason TEXT NOT NULL,
  baseline TEXT NOT NULL,
  baseline_pod TEXT,
  baseline_to_node TEXT,
  fate TEXT NOT NULL,
  failure TEXT NOT NULL,
  measured TEXT,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX decisions_by_time ON decisions (written_at);
CREATE INDEX decisions_by_fate ON decisions (fate) WHERE fate = 'in flight';
CREATE TABLE evidence (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  application TEXT NOT NULL,
  change TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  term TEXT NOT NULL,
  source TEXT NOT NULL,
  predicted_change_ms REAL NOT NULL,
  measured_change_ms REAL NOT NULL
) STRICT;
)";

// A journal of version 1 may have the new tables already.
inline constexpr const char* kSecondVersion = R"(
ALTER TABLE decisions ADD COLUMN objective TEXT NOT NULL DEFAULT '';
UPDATE decisions SET detail = json_set(detail, '$.objective', '');
ALTER TABLE decisions ADD COLUMN plan_gain_ms REAL;
ALTER TABLE decisions ADD COLUMN baseline_plan_gain_ms REAL;
CREATE INDEX decisions_by_plan ON decisions (policy, objective) WHERE plan_gain_ms IS NOT NULL;
CREATE TABLE IF NOT EXISTS placements (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  pod TEXT NOT NULL,
  uid TEXT NOT NULL,
  node TEXT,
  scheduler TEXT NOT NULL,
  policy TEXT NOT NULL,
  priority INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  waited_ms REAL NOT NULL,
  nodes INTEGER NOT NULL,
  feasible INTEGER NOT NULL,
  best TEXT NOT NULL,
  reason TEXT NOT NULL,
  fate TEXT NOT NULL,
  failure TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS placements_by_time ON placements (written_at);
CREATE INDEX IF NOT EXISTS placements_by_fate ON placements (fate) WHERE fate = 'in flight';
CREATE TABLE IF NOT EXISTS comparisons (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  pod TEXT NOT NULL,
  uid TEXT NOT NULL,
  kind TEXT NOT NULL,
  scheduler TEXT NOT NULL,
  policy TEXT NOT NULL,
  objective TEXT NOT NULL,
  node TEXT,
  policy_node TEXT,
  baseline_node TEXT,
  policy_change REAL NOT NULL,
  baseline_change REAL NOT NULL,
  rules TEXT NOT NULL,
  reason TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  feasible INTEGER NOT NULL,
  waited_ms REAL NOT NULL,
  fate TEXT NOT NULL,
  failure TEXT NOT NULL,
  measured_gain REAL,
  measured_change REAL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS comparisons_by_time ON comparisons (written_at);
CREATE INDEX IF NOT EXISTS comparisons_by_uid ON comparisons (uid);
CREATE TABLE IF NOT EXISTS kept_modes (
  kind TEXT PRIMARY KEY,
  configured TEXT NOT NULL,
  mode TEXT NOT NULL,
  policy TEXT NOT NULL,
  objective TEXT NOT NULL,
  since INTEGER NOT NULL,
  serves INTEGER NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS kept_pauses (
  kind TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  paused_by TEXT NOT NULL,
  shared INTEGER NOT NULL
) STRICT;
)";

// Evidence of earlier versions does not say which part of a latency was predicted to change.
inline constexpr const char* kThirdVersion = R"(
ALTER TABLE evidence ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE evidence ADD COLUMN execution_change_ms REAL;
ALTER TABLE evidence ADD COLUMN network_change_ms REAL;
ALTER TABLE evidence ADD COLUMN transfer_change_ms REAL;
ALTER TABLE evidence ADD COLUMN queueing_change_ms REAL;
CREATE TABLE corrections (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  written_at INTEGER NOT NULL,
  application TEXT NOT NULL,
  model TEXT NOT NULL,
  execution REAL NOT NULL,
  network REAL NOT NULL,
  transfer REAL NOT NULL,
  queueing REAL NOT NULL,
  changes INTEGER NOT NULL,
  error_ms REAL NOT NULL,
  corrected_error_ms REAL NOT NULL
) STRICT;
)";

// Empty: the configuration's own cluster, as of all rows of earlier versions.
inline constexpr const char* kFourthVersion = R"(
ALTER TABLE placements ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
ALTER TABLE comparisons ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
)";

// [i] makes version i + 1 from version i.
inline constexpr const char* kUpgrades[kSchemaVersion] = {kFirstVersion, kSecondVersion,
                                                          kThirdVersion, kFourthVersion};

}  // namespace rudderfish::internal
