// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_moves.h"

#include <cmath>
#include <map>
#include <utility>

#include "control/journal_file.h"
#include "control/journal_json.h"
#include "control/sqlite_database.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

using internal::Statement;

std::optional<std::string> PodOf(const std::vector<JournalMove>& moves) {
  return moves.empty() ? std::nullopt : std::optional(moves[0].pod);
}

}  // namespace

namespace internal {

Result<std::vector<EvidenceSum>> EvidenceIn(const std::filesystem::path& path, sqlite3* database) {
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

Result<std::vector<MeasuredChange>> ChangesIn(const std::filesystem::path& path,
                                              sqlite3* database) {
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

}  // namespace internal

Result<int64_t> SqliteMoves::Append(JournalRow row) {
  TRY(database_->MakeRoom());
  const std::string detail = ToJson(row);
  TRY(Insert(row, detail));
  return database_->NoteNumber();
}

Result<void> SqliteMoves::Insert(const JournalRow& row, const std::string& detail) {
  std::optional<std::string> from, to, baseline_to;
  if (!row.chosen.empty()) {
    from = row.chosen[0].from;
    to = row.chosen[0].to;
  }
  if (!row.baseline_choice.empty()) baseline_to = row.baseline_choice[0].to;
  std::optional<std::string> measured;
  if (row.measured) measured = ToJson(*row.measured);
  Statement insert(
      database_->handle(),
      "INSERT INTO decisions (written_at, application, kind, mode, policy, objective, plan, step, "
      "pod, from_node, to_node, latency_ms, predicted_gain_ms, step_cost_ms, plan_gain_ms, "
      "baseline_plan_gain_ms, allowed, reason, baseline, baseline_pod, baseline_to_node, fate, "
      "failure, measured, detail) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  insert.Bind(database_->now()).Bind(row.application).Bind(row.kind).Bind(row.mode);
  insert.Bind(row.policy).Bind(row.objective).Bind(row.plan).Bind(int64_t{row.step});
  insert.Bind(PodOf(row.chosen)).Bind(from).Bind(to);
  insert.Bind(row.seen.latency_ms).Bind(row.predicted_gain_ms).Bind(row.step_cost_ms);
  insert.Bind(row.plan_gain_ms).Bind(row.baseline_plan_gain_ms);
  insert.Bind(int64_t{row.verdict.allowed}).Bind(row.verdict.reason).Bind(row.baseline);
  insert.Bind(PodOf(row.baseline_choice)).Bind(baseline_to).Bind(FateName(row.fate));
  insert.Bind(row.failure).Bind(measured).Bind(detail);
  return database_->Check(insert.Run());
}

Result<void> SqliteMoves::Conclude(int64_t number, const RowEnd& end) {
  TRY(database_->CheckOpen());
  Statement update(
      database_->handle(),
      "UPDATE decisions SET fate = ?, failure = ?, measured = ?, "
      "detail = json_set(detail, '$.move', ?) WHERE number = ? AND fate = 'in flight'");
  std::optional<std::string> measured;
  if (end.measured) measured = ToJson(*end.measured);
  update.Bind(FateName(end.fate)).Bind(end.failure).Bind(measured);
  update.Bind(end.move).Bind(number);
  return database_->Check(update.Run());
}

Result<void> SqliteMoves::AppendEvidence(const EvidenceRow& row) {
  TRY(database_->MakeRoom());
  Statement insert(database_->handle(),
                   "INSERT INTO evidence (written_at, application, change, endpoint, term, source, "
                   "predicted_change_ms, measured_change_ms, model, execution_change_ms, "
                   "network_change_ms, transfer_change_ms, queueing_change_ms) VALUES "
                   "(?,?,?,?,?,?,?,?,?,?,?,?,?)");
  insert.Bind(database_->now()).Bind(row.application).Bind(row.change).Bind(row.endpoint);
  insert.Bind(row.term).Bind(row.source).Bind(row.predicted_change_ms).Bind(row.measured_change_ms);
  insert.Bind(row.model).Bind(row.uncorrected.execution_ms).Bind(row.uncorrected.network_ms);
  insert.Bind(row.uncorrected.transfer_ms).Bind(row.uncorrected.queueing_ms);
  return database_->Check(insert.Run());
}

Result<void> SqliteMoves::AppendCorrection(const ModelCorrection& correction,
                                           const std::string& model) {
  TRY(database_->MakeRoom());
  const LatencyFactors factors = correction.ToApply();
  Statement insert(database_->handle(),
                   "INSERT INTO corrections (written_at, application, model, execution, network, "
                   "transfer, queueing, changes, error_ms, corrected_error_ms) VALUES "
                   "(?,?,?,?,?,?,?,?,?,?)");
  insert.Bind(database_->now()).Bind(correction.application).Bind(model).Bind(factors.execution);
  insert.Bind(factors.network).Bind(factors.transfer).Bind(factors.queueing);
  insert.Bind(correction.changes).Bind(correction.error_ms).Bind(correction.corrected_error_ms);
  return database_->Check(insert.Run());
}

Result<std::vector<EvidenceSum>> SqliteMoves::MeasuredEvidence() const {
  TRY(database_->CheckOpen());
  return internal::EvidenceIn(database_->path(), database_->handle());
}

Result<std::vector<MeasuredChange>> SqliteMoves::Changes() const {
  TRY(database_->CheckOpen());
  return internal::ChangesIn(database_->path(), database_->handle());
}

Result<std::vector<PlanEvidence>> SqliteMoves::Plans(std::string_view policy,
                                                     std::string_view objective, int64_t from) {
  TRY(database_->CheckOpen());
  std::map<std::string, PlanEvidence> by_application;
  Statement plans(database_->handle(),
                  "SELECT application, plan_gain_ms, coalesce(baseline_plan_gain_ms, 0), "
                  "step > 0 OR fate NOT IN ('stayed', 'refused') FROM decisions "
                  "WHERE plan_gain_ms IS NOT NULL AND kind = 'migration' AND policy = ? "
                  "AND objective = ? AND number >= ? ORDER BY number");
  plans.Bind(policy).Bind(objective).Bind(from);
  while (plans.Step()) {
    PlanEvidence& one = by_application[plans.Text(0)];
    ++one.plans;
    if (plans.Integer(3) == 0) continue;  // It would move nothing.
    one.gain.Add(plans.Real(1));
    one.over_baseline.Add(plans.Real(1) - plans.Real(2));
  }
  TRY(database_->Check(plans.code()));
  // The endpoints of one change are written together: their mean is one error.
  Statement errors(database_->handle(),
                   "SELECT application, avg(predicted_change_ms - measured_change_ms) FROM "
                   "(SELECT *, row_number() OVER (PARTITION BY application, change, endpoint "
                   "ORDER BY number) AS time_of_change FROM evidence WHERE term = 'latency_ms') "
                   "GROUP BY application, change, time_of_change ORDER BY min(number)");
  while (errors.Step()) by_application[errors.Text(0)].error.Add(errors.Real(1));
  TRY(database_->Check(errors.code()));
  std::vector<PlanEvidence> all;
  for (auto& [application, one] : by_application) {
    one.application = application;
    all.push_back(std::move(one));
  }
  return all;
}

Result<MoveTrial> SqliteMoves::CanaryMoves(std::string_view application, UnixMillis since) {
  TRY(database_->CheckOpen());
  MoveTrial trial{.application = std::string(application)};
  Statement moves(database_->handle(),
                  "SELECT fate = 'done', count(*) FROM decisions WHERE kind = 'migration' AND "
                  "application = ? AND written_at >= ? AND mode IN ('canary', 'enforce') AND "
                  "fate IN ('done', 'failed') GROUP BY 1");
  moves.Bind(application).Bind(since);
  while (moves.Step()) (moves.Integer(0) != 0 ? trial.moved : trial.not_moved) = moves.Integer(1);
  TRY(database_->Check(moves.code()));
  // The endpoints of one change are written together: their mean is one change.
  Statement changes(database_->handle(),
                    "SELECT avg(predicted_change_ms), avg(measured_change_ms) FROM "
                    "(SELECT *, row_number() OVER (PARTITION BY change, endpoint ORDER BY number) "
                    "AS time_of_change FROM evidence WHERE term = 'latency_ms' AND "
                    "application = ? AND written_at >= ?) "
                    "GROUP BY change, time_of_change ORDER BY min(number)");
  changes.Bind(application).Bind(since);
  while (changes.Step()) {
    const double predicted = changes.Real(0), measured = changes.Real(1);
    if (predicted < 0) trial.beyond_half.Add(predicted / 2 - measured);
    trial.worse_than_none.Add(std::abs(predicted - measured) - std::abs(measured));
  }
  TRY(database_->Check(changes.code()));
  return trial;
}

Result<std::vector<EarlierMove>> SqliteMoves::MovesSince(std::string_view application,
                                                         UnixMillis since) {
  TRY(database_->CheckOpen());
  Statement moves(database_->handle(),
                  "SELECT written_at, from_node, to_node, (SELECT value ->> '$.workload' FROM "
                  "json_each(detail, '$.considered') WHERE value ->> '$.move.pod' = pod LIMIT 1), "
                  "pod, fate = 'failed' FROM decisions WHERE kind = 'migration' AND "
                  "application = ? AND written_at >= ? AND mode IN ('canary', 'enforce') AND "
                  "fate IN ('done', 'in flight', 'unknown', 'failed') ORDER BY number");
  moves.Bind(application).Bind(since);
  std::vector<EarlierMove> made;
  const UnixMillis now = UnixNow();
  while (moves.Step()) {
    made.push_back({.workload = moves.Text(3),
                    .from = moves.Text(1),
                    .to = moves.Text(2),
                    .ago = std::chrono::milliseconds(now - moves.Integer(0)),
                    .pod = moves.Text(4),
                    .is_failed = moves.Integer(5) != 0});
  }
  TRY(database_->Check(moves.code()));
  return made;
}

}  // namespace rudderfish
