// SPDX-License-Identifier: Apache-2.0
#include "control/journal_reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "control/journal_json.h"
#include "control/routing_decision_json.h"
#include "control/sqlite_moves.h"
#include "control/sqlite_placements.h"
#include "control/sqlite_schema.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

using internal::DatabaseError;
using internal::kSchemaVersion;
using internal::OpenDatabase;
using internal::Statement;
using internal::VersionOf;

}  // namespace

tl::unexpected<Error> JournalReader::Failed(int code) const {
  return DatabaseError(path_, database_.get(), code);
}

Result<JournalReader> JournalReader::Open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Fail(ErrorCode::kNotFound, "{}: there is no journal", path.string());
  }
  TRY_ASSIGN(internal::Database database, OpenDatabase(path, SQLITE_OPEN_READONLY));
  TRY_ASSIGN(const int64_t version, VersionOf(path, database.get()));
  if (version == 0)
    return Fail(ErrorCode::kFailedPrecondition, "{}: holds nothing yet", path.string());
  if (version < kSchemaVersion) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: has schema version {}; `rudderfish run` upgrades it to {} when it starts",
                path.string(), version, kSchemaVersion);
  }
  return JournalReader(path, std::move(database));
}

Result<KeptModes> JournalReader::Modes() const {
  return internal::ReadKeptModes(path_, database_.get());
}

Result<std::vector<StoredRow>> JournalReader::Rows(const RowFilter& filter) const {
  // Names stand in quotes in `detail`, so that a part of a name does not count.
  Statement select(database_.get(),
                   "SELECT number, written_at, fate, failure, measured, detail FROM decisions "
                   "WHERE kind = 'migration' AND written_at >= ? AND (? = '' OR application = ?) "
                   "AND (? = '' OR instr(detail, ?)) AND (? = '' OR detail ->> '$.move' = ?) "
                   "ORDER BY number DESC LIMIT ?");
  const std::string quoted = fmt::format("\"pod\":\"{}\"", filter.pod);
  select.Bind(filter.since.value_or(0)).Bind(filter.application).Bind(filter.application);
  select.Bind(filter.pod).Bind(quoted).Bind(filter.move).Bind(filter.move).Bind(filter.limit);
  std::vector<StoredRow> rows;
  while (select.Step()) {
    StoredRow stored{.number = select.Integer(0), .written_at = select.Integer(1)};
    const std::string name = fmt::format("{}, row {}", path_.string(), stored.number);
    TRY_ASSIGN(stored.row, JournalRowFrom(select.Text(5), name));
    const std::optional<Fate> fate = FateNamed(select.Text(2));
    if (!fate) return Fail(ErrorCode::kCorruption, "{}: unknown fate", name);
    stored.row.fate = *fate;
    stored.row.failure = select.Text(3);
    if (!select.IsNull(4)) {
      TRY_ASSIGN(stored.row.measured, TermsFrom(select.Text(4), name));
    }
    rows.push_back(std::move(stored));
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  std::reverse(rows.begin(), rows.end());
  return rows;
}

UnixMillis WrittenAt(const StoredDecision& decision) {
  return std::visit([](const auto& stored) { return stored.written_at; }, decision);
}

Result<std::vector<StoredDecision>> JournalReader::Decisions(const RowFilter& filter) const {
  std::vector<StoredDecision> all;
  const auto add = [&](auto rows) {
    for (auto& row : rows) all.emplace_back(std::move(row));
  };
  const auto wants = [&](std::string_view kind) {
    return filter.kind.empty() || filter.kind == kind;
  };
  if (wants("migration")) {
    TRY_ASSIGN(std::vector<StoredRow> moves, Rows(filter));
    add(std::move(moves));
  }
  if (wants("routing") && filter.pod.empty()) {
    TRY_ASSIGN(std::vector<StoredRouting> routings, Routings(filter));
    add(std::move(routings));
  }
  if (wants("placement") && filter.application.empty()) {
    TRY_ASSIGN(std::vector<StoredComparison> compared, Comparisons(filter));
    add(std::move(compared));
    RowFilter others = filter;
    others.is_uncompared = true;
    TRY_ASSIGN(std::vector<StoredPlacement> placed, Placements(others));
    add(std::move(placed));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return WrittenAt(a) < WrittenAt(b); });
  const auto limit = static_cast<size_t>(filter.limit);
  if (all.size() > limit) all.erase(all.begin(), all.end() - static_cast<int64_t>(limit));
  return all;
}

Result<std::vector<StoredPlacement>> JournalReader::Placements(const RowFilter& filter) const {
  Statement select(database_.get(),
                   "SELECT number, written_at, namespace, pod, uid, coalesce(node, ''), scheduler, "
                   "policy, priority, attempt, waited_ms, nodes, feasible, reason, fate, failure, "
                   "cluster FROM placements WHERE written_at >= ? AND "
                   "(? = '' OR namespace || '/' || pod GLOB ?) AND (? IS NULL OR cluster = ?) AND "
                   "(NOT ? OR NOT EXISTS "
                   "(SELECT 1 FROM comparisons WHERE comparisons.uid = placements.uid AND "
                   "kind <> 'advice')) ORDER BY number DESC LIMIT ?");
  select.Bind(filter.since.value_or(0)).Bind(filter.pod).Bind(filter.pod);
  select.Bind(filter.cluster).Bind(filter.cluster);
  select.Bind(int64_t{filter.is_uncompared}).Bind(filter.limit);
  std::vector<StoredPlacement> rows;
  while (select.Step()) {
    StoredPlacement& stored = rows.emplace_back();
    stored.written_at = select.Integer(1);
    stored.row = {.pod = {select.Text(2), select.Text(3), select.Text(4)},
                  .cluster = select.Text(16),
                  .node = select.Text(5),
                  .scheduler = select.Text(6),
                  .policy = select.Text(7),
                  .priority = select.Integer(8),
                  .attempt = static_cast<int>(select.Integer(9)),
                  .waited_ms = select.Real(10),
                  .nodes = static_cast<int>(select.Integer(11)),
                  .feasible = static_cast<int>(select.Integer(12)),
                  .reason = select.Text(13),
                  .number = select.Integer(0)};
    stored.fate = select.Text(14);
    stored.failure = select.Text(15);
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<std::vector<StoredComparison>> JournalReader::Comparisons(const RowFilter& filter) const {
  Statement select(
      database_.get(),
      "SELECT number, written_at, namespace, pod, uid, kind, scheduler, policy, objective, "
      "coalesce(node, ''), coalesce(policy_node, ''), coalesce(baseline_node, ''), policy_change, "
      "baseline_change, rules, reason, nodes, feasible, waited_ms, fate, failure, measured_gain, "
      "measured_change, CASE WHEN ? THEN detail ELSE '{}' END, cluster FROM comparisons "
      "WHERE written_at >= ? AND (? = '' OR namespace || '/' || pod GLOB ?) "
      "AND (? IS NULL OR cluster = ?) ORDER BY number DESC LIMIT ?");
  select.Bind(int64_t{filter.limit == 1}).Bind(filter.since.value_or(0));
  select.Bind(filter.pod).Bind(filter.pod).Bind(filter.cluster).Bind(filter.cluster);
  select.Bind(filter.limit);
  std::vector<StoredComparison> rows;
  while (select.Step()) {
    StoredComparison& stored = rows.emplace_back();
    stored.number = select.Integer(0);
    stored.written_at = select.Integer(1);
    stored.row = {.pod = {select.Text(2), select.Text(3), select.Text(4)},
                  .cluster = select.Text(24),
                  .group = ComparisonGroupNamed(select.Text(5)),
                  .scheduler = select.Text(6),
                  .policy = select.Text(7),
                  .objective = select.Text(8),
                  .node = select.Text(9),
                  .policy_node = select.Text(10),
                  .baseline_node = select.Text(11),
                  .policy_change = select.Real(12),
                  .baseline_change = select.Real(13),
                  .rules = RulesVerdictNamed(select.Text(14)),
                  .reason = select.Text(15),
                  .nodes = static_cast<int>(select.Integer(16)),
                  .feasible = static_cast<int>(select.Integer(17)),
                  .waited_ms = select.Real(18),
                  .detail = select.Text(23)};
    stored.outcome = {
        .uid = stored.row.pod.uid, .fate = select.Text(19), .failure = select.Text(20)};
    if (!select.IsNull(21)) stored.outcome.measured_gain = select.Real(21);
    if (!select.IsNull(22)) stored.outcome.measured_change = select.Real(22);
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<std::vector<StoredRouting>> JournalReader::Routings(const RowFilter& filter) const {
  Statement select(database_.get(),
                   "SELECT number, written_at, fate, failure, measured ->> '$.response_ms', detail "
                   "FROM decisions WHERE kind = 'routing' AND written_at >= ? AND "
                   "(? = '' OR application = ?) ORDER BY number DESC LIMIT ?");
  select.Bind(filter.since.value_or(0)).Bind(filter.application).Bind(filter.application);
  select.Bind(filter.limit);
  std::vector<StoredRouting> rows;
  while (select.Step()) {
    StoredRouting stored{.number = select.Integer(0), .written_at = select.Integer(1), .row = {}};
    const std::string name = fmt::format("{}, row {}", path_.string(), stored.number);
    TRY_ASSIGN(stored.row, RoutingDecisionFrom(select.Text(5), name));
    const std::optional<Fate> fate = FateNamed(select.Text(2));
    if (!fate) return Fail(ErrorCode::kCorruption, "{}: unknown fate", name);
    stored.row.fate = *fate;
    stored.row.failure = select.Text(3);
    if (!select.IsNull(4)) stored.row.measured_ms = select.Real(4);
    rows.push_back(std::move(stored));
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<EvidenceTable> JournalReader::LoadEvidence() const {
  EvidenceTable table;
  const int code = internal::ReadEvidence(database_.get(), &table);
  if (code != SQLITE_OK) return Failed(code);
  return table;
}

Result<std::vector<EvidenceSum>> JournalReader::Evidence() const {
  return internal::EvidenceIn(path_, database_.get());
}

Result<std::vector<MeasuredChange>> JournalReader::Changes() const {
  return internal::ChangesIn(path_, database_.get());
}

Result<JournalExtent> JournalReader::Extent() const {
  return internal::ExtentOf(path_, database_.get());
}

Result<std::vector<std::pair<std::string, int64_t>>> JournalReader::Counts(UnixMillis since) const {
  Statement select(database_.get(),
                   "SELECT fate, count(*) FROM decisions WHERE written_at >= ? GROUP BY fate "
                   "ORDER BY fate");
  select.Bind(since);
  std::vector<std::pair<std::string, int64_t>> counts;
  while (select.Step()) counts.emplace_back(select.Text(0), select.Integer(1));
  if (select.code() != SQLITE_OK) return Failed(select.code());
  return counts;
}

}  // namespace rudderfish
