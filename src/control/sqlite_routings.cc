// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/journal_reader.h"
#include "control/routing_decision_json.h"
#include "control/sqlite_statement.h"

// What control/sqlite_journal.h keeps of decisions about routes: rows of the table `decisions`, of
// kind routing, with the route as their application.

namespace rudderfish {
namespace {

using internal::Statement;

constexpr double kNothingMs = 1e-9;

}  // namespace

// What is about to be done waits for the disk; what only was thought does not.
Result<int64_t> SqliteJournal::AppendRouting(const RoutingDecision& decision) {
  if (decision.fate != Fate::kInFlight) {
    TRY(CommitUnawaited([&] { return InsertRouting(decision); }));
  } else {
    TRY(CheckOpen());
    TRY(MindSize());
    TRY(InsertRouting(decision));
  }
  const int64_t number = sqlite3_last_insert_rowid(database());
  last_number_ = std::max(last_number_, number);
  return number;
}

Result<void> SqliteJournal::InsertRouting(const RoutingDecision& decision) {
  Statement insert(
      database(),
      "INSERT INTO decisions (written_at, application, kind, mode, policy, objective, plan, step, "
      "latency_ms, predicted_gain_ms, step_cost_ms, allowed, reason, baseline, fate, failure, "
      "detail) VALUES (?,?,'routing',?,?,?,0,0,?,?,0,?,?,?,?,?,?)");
  insert.Bind(options_.now()).Bind(decision.route).Bind(decision.mode).Bind(decision.policy);
  insert.Bind(decision.objective).Bind(decision.predicted_now_ms);
  insert.Bind(decision.predicted_now_ms - decision.predicted_ms);
  insert.Bind(int64_t{decision.verdict.allowed}).Bind(decision.verdict.reason);
  insert.Bind(decision.baseline).Bind(FateName(decision.fate)).Bind(decision.failure);
  insert.Bind(ToJson(decision));
  if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<void> SqliteJournal::ConcludeRouting(int64_t number, const RoutingEnd& end) {
  TRY(CheckOpen());
  std::optional<std::string> measured;
  if (end.measured_ms) measured = fmt::format("{{\"response_ms\":{}}}", *end.measured_ms);
  std::optional<std::string> fate;
  if (end.fate) fate = std::string(FateName(*end.fate));
  Statement update(database(),
                   "UPDATE decisions SET fate = coalesce(?, fate), failure = "
                   "CASE WHEN ? = '' THEN failure ELSE ? END, measured = coalesce(?, measured) "
                   "WHERE number = ? AND kind = 'routing'");
  update.Bind(fate).Bind(end.failure).Bind(end.failure).Bind(measured).Bind(number);
  if (const int code = update.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<RouteEvidence> SqliteJournal::RouteEvidenceOf(std::string_view route,
                                                     std::string_view policy,
                                                     std::string_view objective, int64_t from) {
  TRY(CheckOpen());
  RouteEvidence evidence{.route = std::string(route)};
  Statement select(database(),
                   "SELECT fate, detail ->> '$.gain', detail ->> '$.gain_over_baseline', "
                   "detail ->> '$.predicted_now_ms', detail ->> '$.measured_now_ms' FROM decisions "
                   "WHERE kind = 'routing' AND application = ? AND policy = ? AND objective = ? "
                   "AND number >= ? ORDER BY number DESC LIMIT ?");
  select.Bind(route).Bind(policy).Bind(objective).Bind(from).Bind(kRouteRows);
  while (select.Step()) {
    const double predicted = select.Real(3), measured = select.Real(4);
    if (predicted <= kNothingMs) continue;  // Decided without a look at the signals.
    ++evidence.decisions;
    if (!select.IsNull(4) && measured > kNothingMs) evidence.error.Add(predicted / measured - 1);
    if (select.Text(0) == FateName(Fate::kStayed) || select.Text(0) == FateName(Fate::kRefused))
      continue;
    evidence.gain.Add(select.Real(1));
    if (!select.IsNull(2)) evidence.over_baseline.Add(select.Real(2));
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  return evidence;
}

Result<RouteTrial> SqliteJournal::RouteTrialOf(std::string_view route, UnixMillis since) {
  TRY(CheckOpen());
  RouteTrial trial{.route = std::string(route)};
  Statement select(database(),
                   "SELECT fate, detail ->> '$.predicted_ms', measured ->> '$.response_ms' "
                   "FROM decisions WHERE kind = 'routing' AND application = ? AND "
                   "written_at >= ? AND mode IN ('canary', 'enforce') AND "
                   "fate IN ('done', 'failed') ORDER BY number DESC LIMIT ?");
  select.Bind(route).Bind(since).Bind(kRouteRows);
  while (select.Step()) {
    (select.Text(0) == FateName(Fate::kDone) ? trial.done : trial.failed) += 1;
    const double predicted = select.Real(1);
    if (!select.IsNull(2) && predicted > kNothingMs)
      trial.beyond_predicted.Add(select.Real(2) / predicted - 1);
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  return trial;
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

}  // namespace rudderfish
