// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_schema.h"

#include <fmt/format.h>

#include "control/journal_file.h"

namespace rudderfish::internal {
namespace {

constexpr int kApplicationId = 0x52464a31;  // "RFJ1"

constexpr const char* kFirstVersion = R"(
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
constexpr const char* kSecondVersion = R"(
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
constexpr const char* kThirdVersion = R"(
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
constexpr const char* kFourthVersion = R"(
ALTER TABLE placements ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
ALTER TABLE comparisons ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
)";

// One table for readers: what was decided, of any kind. A pod that was placed is one row,
// with what it was compared with if it was.
constexpr const char* kFifthVersion = R"(
CREATE VIEW all_decisions AS
SELECT kind, number, written_at, mode,
  CASE WHEN pod IS NOT NULL THEN 'pod/' || pod
    WHEN kind <> 'routing' THEN 'application/' || application
    WHEN application LIKE 'capacity/%' THEN application
    ELSE 'route/' || application END AS subject,
  '' AS cluster, policy, objective, from_node AS "from", to_node AS chosen,
  baseline_to_node AS baseline_choice, predicted_gain_ms AS predicted_gain,
  CASE kind WHEN 'routing' THEN (detail ->> '$.measured_now_ms') - (measured ->> '$.response_ms')
    ELSE latency_ms - (measured ->> '$.latency_ms') END AS measured_gain,
  'ms' AS unit, allowed, reason, fate, failure, detail
FROM decisions
UNION ALL
SELECT 'placement', number, written_at, kind, 'pod/' || namespace || '/' || pod,
  cluster, policy, objective, NULL, policy_node,
  baseline_node, 1e6 * (baseline_change - policy_change),
  1e6 * measured_gain,
  'ppm', CASE rules WHEN 'equal' THEN 1 WHEN 'different' THEN 0 END, reason, fate, failure, detail
FROM comparisons
UNION ALL
SELECT 'placement', number, written_at, '', 'pod/' || namespace || '/' || pod,
  cluster, policy, '', NULL, node,
  NULL, NULL,
  NULL,
  'ppm', node IS NOT NULL, reason, fate, failure, json_object('considered', json(best))
FROM placements
WHERE NOT EXISTS (SELECT 1 FROM comparisons
                  WHERE comparisons.uid = placements.uid AND comparisons.kind <> 'advice');
)";

// [i] makes version i + 1 from version i.
constexpr const char* kUpgrades[kSchemaVersion] = {kFirstVersion, kSecondVersion, kThirdVersion,
                                                   kFourthVersion, kFifthVersion};

}  // namespace

Result<int64_t> VersionOf(const std::filesystem::path& path, sqlite3* database) {
  TRY_ASSIGN(const int64_t application, QueryNumber(path, database, "PRAGMA application_id"));
  TRY_ASSIGN(const int64_t version, QueryNumber(path, database, "PRAGMA user_version"));
  TRY_ASSIGN(const int64_t tables,
             QueryNumber(path, database, "SELECT count(*) FROM sqlite_master"));
  if (tables == 0) return 0;
  if (application != kApplicationId) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: is a database of another program",
                path.string());
  }
  if (version > kSchemaVersion) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: was written by a newer version of rudderfish (schema version {}; this program "
                "knows {}); use that version, or name another file in `journal.path`",
                path.string(), version, kSchemaVersion);
  }
  return version;
}

std::string UpgradeFrom(int64_t version) {
  std::string sql;
  for (int64_t v = version; v < kSchemaVersion; ++v) sql += kUpgrades[v];
  return sql + fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId,
                           kSchemaVersion);
}

}  // namespace rudderfish::internal
