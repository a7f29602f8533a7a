// SPDX-License-Identifier: Apache-2.0
#include "control/journal_reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "control/journal_json.h"
#include "control/sqlite_schema.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using internal::DatabaseError;
using internal::kSchemaVersion;
using internal::OpenDatabase;
using internal::QueryNumber;
using internal::Statement;
using internal::VersionOf;

Result<std::vector<EvidenceSum>> EvidenceIn(const fs::path& path, sqlite3* database) {
  Statement select(database,
                   "SELECT application, term, count(*), sum(e), sum(e * e), sum(abs(e)) FROM "
                   "(SELECT application, term, predicted_change_ms - measured_change_ms AS e FROM "
                   "evidence) GROUP BY application, term ORDER BY application, term");
  std::vector<EvidenceSum> sums;
  while (select.Step()) {
    sums.push_back({.application = select.Text(0),
                    .term = select.Text(1),
                    .count = select.Integer(2),
                    .error_sum = select.Real(3),
                    .error_squares = select.Real(4),
                    .absolute_sum = select.Real(5)});
  }
  if (select.code() != SQLITE_OK) return DatabaseError(path, database, select.code());
  return sums;
}

Result<std::vector<MeasuredChange>> ChangesIn(const fs::path& path, sqlite3* database) {
  Statement select(
      database,
      "SELECT application, model, avg(execution_change_ms), avg(network_change_ms), "
      "avg(transfer_change_ms), avg(queueing_change_ms), avg(measured_change_ms) "
      "FROM (SELECT *, row_number() OVER (PARTITION BY application, term, change, endpoint "
      "ORDER BY number) AS time_of_change FROM evidence WHERE execution_change_ms IS NOT NULL) "
      "GROUP BY application, model, term, change, time_of_change ORDER BY min(number)");
  std::vector<MeasuredChange> changes;
  while (select.Step()) {
    MeasuredChange change{.application = select.Text(0),
                          .model = select.Text(1),
                          .predicted = {.execution_ms = select.Real(2),
                                        .network_ms = select.Real(3),
                                        .transfer_ms = select.Real(4),
                                        .queueing_ms = select.Real(5)},
                          .measured_ms = select.Real(6)};
    Terms& predicted = change.predicted;
    predicted.latency_ms = predicted.execution_ms + predicted.network_ms + predicted.transfer_ms +
                           predicted.queueing_ms;
    changes.push_back(std::move(change));
  }
  if (select.code() != SQLITE_OK) return DatabaseError(path, database, select.code());
  return changes;
}

Result<JournalExtent> ExtentOf(const fs::path& path, sqlite3* database) {
  JournalExtent extent;
  TRY_ASSIGN(extent.decisions, QueryNumber(path, database, "SELECT count(*) FROM decisions"));
  TRY_ASSIGN(extent.evidence, QueryNumber(path, database, "SELECT count(*) FROM evidence"));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    const auto bytes = fs::file_size(path.string() + suffix, ignored);
    if (!ignored) extent.bytes += static_cast<int64_t>(bytes);
  }
  return extent;
}

}  // namespace

Result<JournalExtent> SqliteJournal::Extent() const {
  TRY(CheckOpen());
  return ExtentOf(path_, database());
}

Result<std::vector<EvidenceSum>> SqliteJournal::MeasuredEvidence() const {
  TRY(CheckOpen());
  return EvidenceIn(path_, database());
}

Result<std::vector<MeasuredChange>> SqliteJournal::Changes() const {
  TRY(CheckOpen());
  return ChangesIn(path_, database());
}

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
  if (select.code() != SQLITE_OK) return DatabaseError(path_, database_.get(), select.code());
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
  if (select.code() != SQLITE_OK) return DatabaseError(path_, database_.get(), select.code());
  std::reverse(rows.begin(), rows.end());
  return rows;
}

Result<std::vector<EvidenceSum>> JournalReader::Evidence() const {
  return EvidenceIn(path_, database_.get());
}

Result<std::vector<MeasuredChange>> JournalReader::Changes() const {
  return ChangesIn(path_, database_.get());
}

Result<JournalExtent> JournalReader::Extent() const { return ExtentOf(path_, database_.get()); }

Result<std::vector<std::pair<std::string, int64_t>>> JournalReader::Counts(UnixMillis since) const {
  Statement select(database_.get(),
                   "SELECT fate, count(*) FROM decisions WHERE written_at >= ? GROUP BY fate "
                   "ORDER BY fate");
  select.Bind(since);
  std::vector<std::pair<std::string, int64_t>> counts;
  while (select.Step()) counts.emplace_back(select.Text(0), select.Integer(1));
  if (select.code() != SQLITE_OK) return DatabaseError(path_, database_.get(), select.code());
  return counts;
}

}  // namespace rudderfish
