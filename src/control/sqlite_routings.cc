// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_routings.h"

#include <fmt/format.h>

#include <optional>

#include "control/routing_decision_json.h"
#include "control/sqlite_database.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

using internal::Statement;

constexpr double kNothingMs = 1e-9;

}  // namespace

// What is about to be done waits for the disk; what only was thought does not.
Result<int64_t> SqliteRoutings::AppendRouting(const RoutingDecision& decision) {
  if (decision.fate != Fate::kInFlight) {
    TRY(database_->CommitUnawaited([&] { return Insert(decision); }));
  } else {
    TRY(database_->MakeRoom());
    TRY(Insert(decision));
  }
  return database_->NoteNumber();
}

Result<void> SqliteRoutings::Insert(const RoutingDecision& decision) {
  Statement insert(
      database_->handle(),
      "INSERT INTO decisions (written_at, application, kind, mode, policy, objective, plan, step, "
      "latency_ms, predicted_gain_ms, step_cost_ms, allowed, reason, baseline, fate, failure, "
      "detail) VALUES (?,?,'routing',?,?,?,0,0,?,?,0,?,?,?,?,?,?)");
  insert.Bind(database_->now()).Bind(decision.route).Bind(decision.mode).Bind(decision.policy);
  insert.Bind(decision.objective).Bind(decision.predicted_now_ms);
  insert.Bind(decision.predicted_now_ms - decision.predicted_ms);
  insert.Bind(int64_t{decision.verdict.allowed}).Bind(decision.verdict.reason);
  insert.Bind(decision.baseline).Bind(FateName(decision.fate)).Bind(decision.failure);
  insert.Bind(ToJson(decision));
  return database_->Check(insert.Run());
}

Result<void> SqliteRoutings::ConcludeRouting(int64_t number, const RoutingEnd& end) {
  TRY(database_->CheckOpen());
  std::optional<std::string> measured;
  if (end.measured_ms) measured = fmt::format("{{\"response_ms\":{}}}", *end.measured_ms);
  std::optional<std::string> fate;
  if (end.fate) fate = std::string(FateName(*end.fate));
  Statement update(database_->handle(),
                   "UPDATE decisions SET fate = coalesce(?, fate), failure = "
                   "CASE WHEN ? = '' THEN failure ELSE ? END, measured = coalesce(?, measured) "
                   "WHERE number = ? AND kind = 'routing'");
  update.Bind(fate).Bind(end.failure).Bind(end.failure).Bind(measured).Bind(number);
  return database_->Check(update.Run());
}

Result<RouteEvidence> SqliteRoutings::RouteEvidenceOf(std::string_view route,
                                                      std::string_view policy,
                                                      std::string_view objective, int64_t from) {
  TRY(database_->CheckOpen());
  RouteEvidence evidence{.route = std::string(route)};
  Statement select(database_->handle(),
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
  TRY(database_->Check(select.code()));
  return evidence;
}

Result<RouteTrial> SqliteRoutings::RouteTrialOf(std::string_view route, UnixMillis since) {
  TRY(database_->CheckOpen());
  RouteTrial trial{.route = std::string(route)};
  Statement select(database_->handle(),
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
  TRY(database_->Check(select.code()));
  return trial;
}

}  // namespace rudderfish
