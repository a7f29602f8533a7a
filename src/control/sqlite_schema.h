// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tables of control/sqlite_journal.h; docs/journal.md describes them.

namespace rudderfish::internal {

inline constexpr const char* kSchema = R"(
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

// Came later than the others, so that a journal may lack it.
inline constexpr const char* kPlacementsSchema = R"(
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
UPDATE placements SET fate = 'unknown' WHERE fate = 'in flight';
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

}  // namespace rudderfish::internal
