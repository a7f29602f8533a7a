// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_journal.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "control/journal_file.h"
#include "control/journal_json.h"
#include "control/sqlite_schema.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

using internal::DatabaseError;
using internal::QueryNumber;
using internal::Statement;

constexpr int kAppendsBetweenLooks = 16;
constexpr int kRowBytes = 250;  // About, beside the longest of its texts, with its indexes.
constexpr double kFullShare =
    0.7;  // Of the size, at which the oldest rows go; the rest is the log's.

std::optional<std::string> PodOf(const std::vector<JournalMove>& moves) {
  return moves.empty() ? std::nullopt : std::optional(moves[0].pod);
}

}  // namespace

tl::unexpected<Error> SqliteJournal::Failed(int code) {
  tl::unexpected<Error> error = DatabaseError(path_, database(), code);
  is_damaged_ = is_damaged_ || error.value().code == ErrorCode::kCorruption;
  return error;
}

Result<void> SqliteJournal::Exec(const char* sql) {
  const int code = sqlite3_exec(database(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return Failed(code);
  return {};
}

Result<int64_t> SqliteJournal::Append(JournalRow row) {
  TRY(CheckOpen());
  TRY(MindSize());
  const std::string detail = ToJson(row);
  TRY(Insert(row, detail));
  // Each table counts by itself; last_number_ is of all of them.
  const int64_t number = sqlite3_last_insert_rowid(database());
  last_number_ = std::max(last_number_, number);
  return number;
}

Result<void> SqliteJournal::Insert(const JournalRow& row, const std::string& detail) {
  std::optional<std::string> from, to, baseline_to;
  if (!row.chosen.empty()) {
    from = row.chosen[0].from;
    to = row.chosen[0].to;
  }
  if (!row.baseline_choice.empty()) baseline_to = row.baseline_choice[0].to;
  std::optional<std::string> measured;
  if (row.measured) measured = ToJson(*row.measured);
  Statement insert(
      database(),
      "INSERT INTO decisions (written_at, application, kind, mode, policy, objective, plan, step, "
      "pod, from_node, to_node, latency_ms, predicted_gain_ms, step_cost_ms, plan_gain_ms, "
      "baseline_plan_gain_ms, allowed, reason, baseline, baseline_pod, baseline_to_node, fate, "
      "failure, measured, detail) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  insert.Bind(options_.now()).Bind(row.application).Bind(row.kind).Bind(row.mode).Bind(row.policy);
  insert.Bind(row.objective).Bind(row.plan).Bind(int64_t{row.step});
  insert.Bind(PodOf(row.chosen)).Bind(from).Bind(to);
  insert.Bind(row.seen.latency_ms).Bind(row.predicted_gain_ms).Bind(row.step_cost_ms);
  insert.Bind(row.plan_gain_ms).Bind(row.baseline_plan_gain_ms);
  insert.Bind(int64_t{row.verdict.allowed}).Bind(row.verdict.reason).Bind(row.baseline);
  insert.Bind(PodOf(row.baseline_choice)).Bind(baseline_to).Bind(FateName(row.fate));
  insert.Bind(row.failure).Bind(measured).Bind(detail);
  if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::Conclude(int64_t number, const RowEnd& end) {
  TRY(CheckOpen());
  Statement update(
      database(),
      "UPDATE decisions SET fate = ?, failure = ?, measured = ?, "
      "detail = json_set(detail, '$.move', ?) WHERE number = ? AND fate = 'in flight'");
  update.Bind(FateName(end.fate)).Bind(end.failure).Bind(std::string_view(ToJson(end.measured)));
  update.Bind(end.move).Bind(number);
  if (const int code = update.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::AppendEvidence(const EvidenceRow& row) {
  TRY(CheckOpen());
  TRY(MindSize());
  Statement insert(database(),
                   "INSERT INTO evidence (written_at, application, change, endpoint, term, source, "
                   "predicted_change_ms, measured_change_ms, model, execution_change_ms, "
                   "network_change_ms, transfer_change_ms, queueing_change_ms) VALUES "
                   "(?,?,?,?,?,?,?,?,?,?,?,?,?)");
  insert.Bind(options_.now()).Bind(row.application).Bind(row.change).Bind(row.endpoint);
  insert.Bind(row.term).Bind(row.source).Bind(row.predicted_change_ms).Bind(row.measured_change_ms);
  insert.Bind(row.model).Bind(row.uncorrected.execution_ms).Bind(row.uncorrected.network_ms);
  insert.Bind(row.uncorrected.transfer_ms).Bind(row.uncorrected.queueing_ms);
  if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::AppendCorrection(const ModelCorrection& correction,
                                             const std::string& model) {
  TRY(CheckOpen());
  TRY(MindSize());
  const LatencyFactors factors = correction.ToApply();
  Statement insert(database(),
                   "INSERT INTO corrections (written_at, application, model, execution, network, "
                   "transfer, queueing, changes, error_ms, corrected_error_ms) VALUES "
                   "(?,?,?,?,?,?,?,?,?,?)");
  insert.Bind(options_.now()).Bind(correction.application).Bind(model).Bind(factors.execution);
  insert.Bind(factors.network).Bind(factors.transfer).Bind(factors.queueing);
  insert.Bind(correction.changes).Bind(correction.error_ms).Bind(correction.corrected_error_ms);
  if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::AppendPlacements(std::span<PlacementRow> rows,
                                             std::span<const PlacementEnd> ends) {
  return CommitUnawaited([&] { return InsertPlacements(rows, ends); });
}

// A pod does not wait for the disk: what is committed outlives this process, and after a power
// failure the cluster itself knows where pods are.
Result<void> SqliteJournal::CommitUnawaited(const std::function<Result<void>()>& insert) {
  TRY(CheckOpen());
  TRY(MindSize());
  TRY(Exec("PRAGMA synchronous = NORMAL"));
  Result<void> written = Exec("BEGIN IMMEDIATE");
  if (written) written = insert();
  if (written) written = Exec("COMMIT");
  // A commit that failed, on a full disk say, may have left the transaction open.
  if (!written) sqlite3_exec(database(), "ROLLBACK", nullptr, nullptr, nullptr);
  TRY(Exec("PRAGMA synchronous = FULL"));
  return written;
}

Result<void> SqliteJournal::InsertPlacements(std::span<PlacementRow> rows,
                                             std::span<const PlacementEnd> ends) {
  Statement insert(database(),
                   "INSERT INTO placements (written_at, namespace, pod, uid, node, scheduler, "
                   "policy, priority, attempt, waited_ms, nodes, feasible, best, reason, fate, "
                   "failure, cluster) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  const UnixMillis now = options_.now();
  for (PlacementRow& row : rows) {
    insert.Reset();
    insert.Bind(row.at == 0 ? now : row.at);
    insert.Bind(row.pod.object_namespace).Bind(row.pod.name).Bind(row.pod.uid);
    insert.Bind(row.node.empty() ? std::nullopt : std::optional(row.node));
    insert.Bind(row.scheduler).Bind(row.policy).Bind(row.priority).Bind(int64_t{row.attempt});
    insert.Bind(row.waited_ms).Bind(int64_t{row.nodes}).Bind(int64_t{row.feasible});
    insert.Bind(ToJson(row.best)).Bind(row.reason).Bind(FateName(row.fate)).Bind(row.failure);
    insert.Bind(row.cluster);
    if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
    row.number = sqlite3_last_insert_rowid(database());
    last_number_ = std::max(last_number_, row.number);
  }
  Statement update(database(),
                   "UPDATE placements SET fate = ?, failure = ? WHERE number = ? AND "
                   "fate = 'in flight'");
  for (const PlacementEnd& end : ends) {
    update.Reset();
    update.Bind(FateName(end.fate)).Bind(end.failure).Bind(end.number);
    if (const int code = update.Run(); code != SQLITE_OK) return Failed(code);
  }
  return {};
}

Result<void> SqliteJournal::Trim() {
  TRY(CheckOpen());
  const UnixMillis oldest =
      options_.now() -
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.retention).count();
  for (const char* sql :
       {"DELETE FROM decisions WHERE written_at < ? AND fate <> 'in flight'",
        "DELETE FROM placements WHERE written_at < ? AND fate <> 'in flight'",
        "DELETE FROM comparisons WHERE written_at < ?", "DELETE FROM evidence WHERE written_at < ?",
        "DELETE FROM corrections WHERE written_at < ?"}) {
    Statement remove(database(), sql);
    remove.Bind(oldest);
    if (const int code = remove.Run(); code != SQLITE_OK) return Failed(code);
  }
  if (evidence_) evidence_->RemoveOlder(oldest);
  appended_ = 0;
  return MindSize();
}

Result<void> SqliteJournal::MindSize() {
  if (appended_++ % kAppendsBetweenLooks != 0) return {};
  const auto most = static_cast<int64_t>(static_cast<double>(options_.size_bytes) * kFullShare);
  for (int round = 0; round < 100; ++round) {
    TRY_ASSIGN(const int64_t pages, QueryNumber(path_, database(), "PRAGMA page_count"));
    TRY_ASSIGN(const int64_t unused, QueryNumber(path_, database(), "PRAGMA freelist_count"));
    if ((pages - unused) * page_bytes_ <= most) break;
    TRY(RemoveOldestTenth());
  }
  return {};
}

// About, by how many numbers there are and how long the newest rows are: to read all would hold up
// decisions.
Result<const char*> SqliteJournal::LargestTable() const {
  struct Table {
    const char *name, *text;  // What of a row differs most in length.
  };
  constexpr Table kTables[] = {{"decisions", "length(detail)"},
                               {"placements", "length(best) + length(reason)"},
                               {"comparisons", "length(detail)"},
                               {"evidence", "length(change)"}};
  const char* largest = kTables[0].name;
  int64_t most = 0;
  for (const auto& [name, text] : kTables) {
    const std::string sql = fmt::format(
        "SELECT CAST(((SELECT max(number) FROM {0}) - (SELECT min(number) FROM {0}) + 1) * "
        "(SELECT {2} + avg({1}) FROM (SELECT * FROM {0} ORDER BY number DESC LIMIT 100)) "
        "AS INTEGER)",
        name, text, kRowBytes);
    TRY_ASSIGN(const int64_t bytes, QueryNumber(path_, database(), sql.c_str()));
    if (bytes <= most) continue;
    most = bytes;
    largest = name;
  }
  return largest;
}

// Of one table: a busy one does not push out what others hold.
Result<void> SqliteJournal::RemoveOldestTenth() {
  TRY_ASSIGN(const char* const table, LargestTable());
  const std::string sql = fmt::format(
      "DELETE FROM {0} WHERE number <= (SELECT min(number) + (max(number) - min(number)) / 10 "
      "FROM {0})",
      table);
  TRY(Exec(sql.c_str()));
  TRY(FollowRemoval());
  return Exec("PRAGMA incremental_vacuum");
}

}  // namespace rudderfish
