// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_set>
#include <utility>

#include "control/journal_reader.h"
#include "control/sqlite_statement.h"

// What control/sqlite_journal.h keeps of comparisons, and what promotions rest on.

namespace rudderfish {
namespace {

using internal::Statement;

std::optional<std::string> UnlessEmpty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

ComparisonGroup GroupNamed(std::string_view name) {
  for (const auto group : {ComparisonGroup::kShadow, ComparisonGroup::kAdvice,
                           ComparisonGroup::kCanary, ComparisonGroup::kEnforced}) {
    if (NameOf(group) == name) return group;
  }
  return ComparisonGroup::kControl;
}

RulesVerdict VerdictNamed(std::string_view name) {
  for (const auto verdict :
       {RulesVerdict::kEqual, RulesVerdict::kDifferent, RulesVerdict::kUnclear}) {
    if (NameOf(verdict) == name) return verdict;
  }
  return RulesVerdict::kUnmodelled;
}

constexpr const char* kEvidenceRows =
    "SELECT number, written_at, kind, rules, uid, policy, objective, fate, scheduler, "
    "policy_node IS NOT NULL, node IS NOT NULL AND node IS policy_node, policy_change, "
    "baseline_change, measured_gain, measured_change, cluster FROM comparisons "
    "WHERE kind <> 'advice' ORDER BY number";

void ReadEvidence(Statement* select, EvidenceTable* table) {
  while (select->Step()) {
    const std::string uid = select->Text(4), policy = select->Text(5), objective = select->Text(6),
                      fate = select->Text(7), scheduler = select->Text(8),
                      cluster = select->Text(15);
    EvidenceTable::Row row{.number = select->Integer(0),
                           .written_at = select->Integer(1),
                           .group = GroupNamed(select->Text(2)),
                           .rules = VerdictNamed(select->Text(3)),
                           .uid = uid,
                           .cluster = cluster,
                           .scheduler = scheduler,
                           .policy = policy,
                           .objective = objective,
                           .fate = fate,
                           .is_asked = select->Integer(9) != 0,
                           .is_same_choice = select->Integer(10) != 0,
                           .policy_change = select->Real(11),
                           .baseline_change = select->Real(12)};
    if (!select->IsNull(13)) row.measured_gain = select->Real(13);
    if (!select->IsNull(14)) row.measured_change = select->Real(14);
    table->Add(row);
  }
}

}  // namespace

Result<void> SqliteJournal::AppendComparisons(std::span<const PlacementComparison> rows,
                                              std::span<const PlacementOutcome> outcomes) {
  TRY(CheckOpen());  // What is known here is not all then.
  std::vector<PlacementOutcome> known;
  if (evidence_) {  // Most pods that fail were never compared.
    std::unordered_set<std::string_view> added;
    for (const PlacementComparison& row : rows) added.insert(row.pod.uid);
    for (const PlacementOutcome& outcome : outcomes) {
      if (evidence_->Knows(outcome.uid) || added.contains(outcome.uid)) known.push_back(outcome);
    }
    outcomes = known;
  }
  if (rows.empty() && outcomes.empty()) return {};
  std::vector<EvidenceTable::Row> written;
  TRY(CommitUnawaited([&] { return InsertComparisons(rows, outcomes, &written); }));
  if (!evidence_) return {};
  for (const EvidenceTable::Row& row : written) evidence_->Add(row);
  for (const PlacementOutcome& outcome : outcomes) evidence_->Note(outcome);
  return {};
}

Result<void> SqliteJournal::InsertComparisons(std::span<const PlacementComparison> rows,
                                              std::span<const PlacementOutcome> outcomes,
                                              std::vector<EvidenceTable::Row>* written) {
  Statement insert(database(),
                   "INSERT INTO comparisons (written_at, namespace, pod, uid, kind, scheduler, "
                   "policy, objective, node, policy_node, baseline_node, policy_change, "
                   "baseline_change, rules, reason, nodes, feasible, waited_ms, fate, failure, "
                   "detail, cluster) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'',?,?)");
  // A retry is no further evidence.
  Statement replace(database(), "DELETE FROM comparisons WHERE uid = ? AND kind <> 'advice'");
  const UnixMillis now = options_.now();
  for (const PlacementComparison& row : rows) {
    if (row.group != ComparisonGroup::kAdvice) {
      replace.Reset();
      replace.Bind(row.pod.uid);
      if (const int code = replace.Run(); code != SQLITE_OK) return Failed(code);
    }
    insert.Reset();
    insert.Bind(now).Bind(row.pod.object_namespace).Bind(row.pod.name).Bind(row.pod.uid);
    insert.Bind(NameOf(row.group)).Bind(row.scheduler).Bind(row.policy).Bind(row.objective);
    insert.Bind(UnlessEmpty(row.node)).Bind(UnlessEmpty(row.policy_node));
    insert.Bind(UnlessEmpty(row.baseline_node)).Bind(row.policy_change).Bind(row.baseline_change);
    insert.Bind(NameOf(row.rules)).Bind(row.reason).Bind(int64_t{row.nodes});
    insert.Bind(int64_t{row.feasible}).Bind(row.waited_ms);
    const std::string_view fate = row.group == ComparisonGroup::kAdvice ? "advised" : "placed";
    insert.Bind(fate).Bind(row.detail).Bind(row.cluster);
    if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
    last_number_ = std::max<int64_t>(last_number_, sqlite3_last_insert_rowid(database()));
    if (row.group == ComparisonGroup::kAdvice) continue;
    written->push_back({.number = sqlite3_last_insert_rowid(database()),
                        .written_at = now,
                        .group = row.group,
                        .rules = row.rules,
                        .uid = row.pod.uid,
                        .cluster = row.cluster,
                        .scheduler = row.scheduler,
                        .policy = row.policy,
                        .objective = row.objective,
                        .fate = fate,
                        .is_asked = !row.policy_node.empty(),
                        .is_same_choice = !row.node.empty() && row.node == row.policy_node,
                        .policy_change = row.policy_change,
                        .baseline_change = row.baseline_change});
  }
  Statement end(database(),
                "UPDATE comparisons SET fate = ?, failure = ? WHERE uid = ? AND kind <> 'advice' "
                "AND fate NOT IN ('failed', 'evicted', 'elsewhere')");
  Statement measured(database(),
                     "UPDATE comparisons SET measured_gain = ?, measured_change = ? "
                     "WHERE uid = ? AND kind <> 'advice'");
  for (const PlacementOutcome& outcome : outcomes) {
    if (!outcome.fate.empty()) {
      end.Reset();
      end.Bind(outcome.fate).Bind(outcome.failure).Bind(outcome.uid);
      if (const int code = end.Run(); code != SQLITE_OK) return Failed(code);
    }
    if (!outcome.measured_gain || !outcome.measured_change) continue;
    measured.Reset();
    measured.Bind(*outcome.measured_gain).Bind(*outcome.measured_change).Bind(outcome.uid);
    if (const int code = measured.Run(); code != SQLITE_OK) return Failed(code);
  }
  return {};
}

Result<std::vector<UnendedComparison>> SqliteJournal::UnendedComparisons(std::string_view cluster) {
  if (!is_open()) return std::vector<UnendedComparison>();
  Statement select(database(),
                   "SELECT namespace, pod, uid, kind, coalesce(node, ''), "
                   "coalesce(policy_node, ''), coalesce(baseline_node, ''), written_at, "
                   "fate = 'started', measured_change IS NOT NULL FROM comparisons "
                   "WHERE fate IN ('placed', 'started') AND kind <> 'advice' AND cluster = ? "
                   "ORDER BY number");
  select.Bind(cluster);
  std::vector<UnendedComparison> rows;
  while (select.Step()) {
    rows.push_back({.pod = {select.Text(0), select.Text(1), select.Text(2)},
                    .group = GroupNamed(select.Text(3)),
                    .node = select.Text(4),
                    .policy_node = select.Text(5),
                    .baseline_node = select.Text(6),
                    .written_at = select.Integer(7),
                    .is_started = select.Integer(8) != 0,
                    .is_measured = select.Integer(9) != 0});
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
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
                  .group = GroupNamed(select.Text(5)),
                  .scheduler = select.Text(6),
                  .policy = select.Text(7),
                  .objective = select.Text(8),
                  .node = select.Text(9),
                  .policy_node = select.Text(10),
                  .baseline_node = select.Text(11),
                  .policy_change = select.Real(12),
                  .baseline_change = select.Real(13),
                  .rules = VerdictNamed(select.Text(14)),
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

Result<EvidenceTable> JournalReader::LoadEvidence() const {
  EvidenceTable table;
  Statement select(database_.get(), kEvidenceRows);
  ReadEvidence(&select, &table);
  if (select.code() != SQLITE_OK) return Failed(select.code());
  return table;
}

Result<const EvidenceTable*> SqliteJournal::Evidence() {
  if (evidence_) return &*evidence_;
  if (!is_open()) {
    evidence_.emplace();  // Until it is open.
    return &*evidence_;
  }
  EvidenceTable table;
  Statement select(database(), kEvidenceRows);
  ReadEvidence(&select, &table);
  if (select.code() != SQLITE_OK) return Failed(select.code());
  evidence_ = std::move(table);
  return &*evidence_;
}

Result<std::string> SqliteJournal::DifferenceInWords(int64_t number) {
  TRY(CheckOpen());
  Statement select(database(),
                   "SELECT namespace || '/' || pod || ' on ' || reason FROM comparisons "
                   "WHERE number = ?");
  select.Bind(number);
  if (select.Step()) return select.Text(0);
  if (select.code() != SQLITE_OK) return Failed(select.code());
  return std::string();
}

Result<std::vector<PlanEvidence>> SqliteJournal::Plans(std::string_view policy,
                                                       std::string_view objective, int64_t from) {
  TRY(CheckOpen());
  std::map<std::string, PlanEvidence> by_application;
  Statement plans(database(),
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
  if (plans.code() != SQLITE_OK) return Failed(plans.code());
  // The endpoints of one change are written together: their mean is one error.
  Statement errors(database(),
                   "SELECT application, avg(predicted_change_ms - measured_change_ms) FROM "
                   "(SELECT *, row_number() OVER (PARTITION BY application, change, endpoint "
                   "ORDER BY number) AS time_of_change FROM evidence WHERE term = 'latency_ms') "
                   "GROUP BY application, change, time_of_change ORDER BY min(number)");
  while (errors.Step()) by_application[errors.Text(0)].error.Add(errors.Real(1));
  if (errors.code() != SQLITE_OK) return Failed(errors.code());
  std::vector<PlanEvidence> all;
  for (auto& [application, one] : by_application) {
    one.application = application;
    all.push_back(std::move(one));
  }
  return all;
}

Result<MoveTrial> SqliteJournal::CanaryMoves(std::string_view application, UnixMillis since) {
  TRY(CheckOpen());
  MoveTrial trial{.application = std::string(application)};
  Statement moves(database(),
                  "SELECT fate = 'done', count(*) FROM decisions WHERE kind = 'migration' AND "
                  "application = ? AND written_at >= ? AND mode IN ('canary', 'enforce') AND "
                  "fate IN ('done', 'failed') GROUP BY 1");
  moves.Bind(application).Bind(since);
  while (moves.Step()) (moves.Integer(0) != 0 ? trial.moved : trial.not_moved) = moves.Integer(1);
  if (moves.code() != SQLITE_OK) return Failed(moves.code());
  // The endpoints of one change are written together: their mean is one change.
  Statement changes(database(),
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
  if (changes.code() != SQLITE_OK) return Failed(changes.code());
  return trial;
}

Result<std::vector<EarlierMove>> SqliteJournal::MovesSince(std::string_view application,
                                                           UnixMillis since) {
  TRY(CheckOpen());
  Statement moves(database(),
                  "SELECT written_at, from_node, to_node, (SELECT value ->> '$.workload' FROM "
                  "json_each(detail, '$.considered') WHERE value ->> '$.move.pod' = pod LIMIT 1) "
                  "FROM decisions WHERE kind = 'migration' AND application = ? AND "
                  "written_at >= ? AND mode IN ('canary', 'enforce') AND "
                  "fate IN ('done', 'in flight', 'unknown') ORDER BY number");
  moves.Bind(application).Bind(since);
  std::vector<EarlierMove> made;
  const UnixMillis now = UnixNow();
  while (moves.Step()) {
    made.push_back({.workload = moves.Text(3),
                    .from = moves.Text(1),
                    .to = moves.Text(2),
                    .ago = std::chrono::milliseconds(now - moves.Integer(0))});
  }
  if (moves.code() != SQLITE_OK) return Failed(moves.code());
  return made;
}

// The oldest that is left: those before it are gone.
Result<void> SqliteJournal::FollowRemoval() {
  if (!evidence_) return {};
  Statement select(database(), "SELECT coalesce(min(number), ?) FROM comparisons");
  select.Bind(std::numeric_limits<int64_t>::max());
  if (!select.Step()) return Failed(select.code());
  evidence_->RemoveBelow(select.Integer(0));
  return {};
}

}  // namespace rudderfish
