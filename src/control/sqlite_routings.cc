// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "control/journal_reader.h"
#include "control/routing_decision_json.h"
#include "control/sqlite_statement.h"

// What control/sqlite_journal.h keeps of decisions about routes: rows of the table `decisions`, of
// kind routing, with the route as their application.

namespace rudderfish {
namespace {

using internal::Statement;

constexpr double kBeforeMs = 1e-9;

}  // namespace

Result<int64_t> SqliteJournal::AppendRouting(const RoutingDecision& decision) {
  TRY(CheckOpen());
  TRY(MindSize());
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
  const int64_t number = sqlite3_last_insert_rowid(database());
  last_number_ = std::max(last_number_, number);
  return number;
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

Result<std::vector<RouteEvidence>> SqliteJournal::RouteEvidenceOf(std::string_view policy,
                                                                  std::string_view objective,
                                                                  int64_t from) {
  TRY(CheckOpen());
  std::map<std::string, RouteEvidence> by_route;
  Statement select(database(),
                   "SELECT application, fate, detail ->> '$.gain', "
                   "detail ->> '$.gain_over_baseline', detail ->> '$.predicted_now_ms', "
                   "detail ->> '$.measured_now_ms' FROM decisions WHERE kind = 'routing' AND "
                   "policy = ? AND objective = ? AND number >= ? ORDER BY number");
  select.Bind(policy).Bind(objective).Bind(from);
  while (select.Step()) {
    RouteEvidence& one = by_route[select.Text(0)];
    const double predicted = select.Real(4), measured = select.Real(5);
    if (predicted <= kBeforeMs) continue;  // Decided without a look at the signals.
    ++one.decisions;
    if (!select.IsNull(5) && measured > kBeforeMs) one.error.Add(predicted / measured - 1);
    if (select.Text(1) == FateName(Fate::kStayed) || select.Text(1) == FateName(Fate::kRefused))
      continue;
    one.gain.Add(select.Real(2));
    if (!select.IsNull(3)) one.over_baseline.Add(select.Real(3));
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  std::vector<RouteEvidence> all;
  for (auto& [route, evidence] : by_route) {
    evidence.route = route;
    all.push_back(std::move(evidence));
  }
  return all;
}

Result<std::vector<RouteTrial>> SqliteJournal::RouteTrials(UnixMillis since) {
  TRY(CheckOpen());
  std::map<std::string, RouteTrial> by_route;
  Statement select(database(),
                   "SELECT application, fate, detail ->> '$.predicted_ms', "
                   "measured ->> '$.response_ms' FROM decisions WHERE kind = 'routing' AND "
                   "written_at >= ? AND mode IN ('canary', 'enforce') AND "
                   "fate IN ('done', 'failed') ORDER BY number");
  select.Bind(since);
  while (select.Step()) {
    RouteTrial& one = by_route[select.Text(0)];
    (select.Text(1) == FateName(Fate::kDone) ? one.done : one.failed) += 1;
    const double predicted = select.Real(2);
    if (!select.IsNull(3) && predicted > kBeforeMs)
      one.beyond_predicted.Add(select.Real(3) / predicted - 1);
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  std::vector<RouteTrial> all;
  for (auto& [route, trial] : by_route) {
    trial.route = route;
    all.push_back(std::move(trial));
  }
  return all;
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
