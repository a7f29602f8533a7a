// SPDX-License-Identifier: Apache-2.0
#include "control/sqlite_placements.h"

#include <limits>
#include <unordered_set>
#include <utility>

#include "control/journal_json.h"
#include "control/sqlite_statement.h"

namespace rudderfish {
namespace {

using internal::Statement;

std::optional<std::string> UnlessEmpty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

constexpr const char* kEvidenceRows =
    "SELECT number, written_at, kind, rules, uid, policy, objective, fate, scheduler, "
    "policy_node IS NOT NULL, node IS NOT NULL AND node IS policy_node, policy_change, "
    "baseline_change, measured_gain, measured_change, cluster FROM comparisons "
    "WHERE kind <> 'advice' ORDER BY number";

}  // namespace

namespace internal {

int ReadEvidence(sqlite3* database, EvidenceTable* table) {
  Statement select(database, kEvidenceRows);
  while (select.Step()) {
    const std::string uid = select.Text(4), policy = select.Text(5), objective = select.Text(6),
                      fate = select.Text(7), scheduler = select.Text(8), cluster = select.Text(15);
    EvidenceTable::Row row{.number = select.Integer(0),
                           .written_at = select.Integer(1),
                           .group = ComparisonGroupNamed(select.Text(2)),
                           .rules = RulesVerdictNamed(select.Text(3)),
                           .uid = uid,
                           .cluster = cluster,
                           .scheduler = scheduler,
                           .policy = policy,
                           .objective = objective,
                           .fate = fate,
                           .is_asked = select.Integer(9) != 0,
                           .is_same_choice = select.Integer(10) != 0,
                           .policy_change = select.Real(11),
                           .baseline_change = select.Real(12)};
    if (!select.IsNull(13)) row.measured_gain = select.Real(13);
    if (!select.IsNull(14)) row.measured_change = select.Real(14);
    table->Add(row);
  }
  return select.code();
}

}  // namespace internal

Result<void> SqlitePlacements::AppendPlacements(std::span<PlacementRow> rows,
                                                std::span<const PlacementEnd> ends) {
  return database_->CommitUnawaited([&] { return InsertPlacements(rows, ends); });
}

Result<void> SqlitePlacements::InsertPlacements(std::span<PlacementRow> rows,
                                                std::span<const PlacementEnd> ends) {
  Statement insert(database_->handle(),
                   "INSERT INTO placements (written_at, namespace, pod, uid, node, scheduler, "
                   "policy, priority, attempt, waited_ms, nodes, feasible, best, reason, fate, "
                   "failure, cluster) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  const UnixMillis now = database_->now();
  for (PlacementRow& row : rows) {
    insert.Reset();
    insert.Bind(row.at == 0 ? now : row.at);
    insert.Bind(row.pod.object_namespace).Bind(row.pod.name).Bind(row.pod.uid);
    insert.Bind(row.node.empty() ? std::nullopt : std::optional(row.node));
    insert.Bind(row.scheduler).Bind(row.policy).Bind(row.priority).Bind(int64_t{row.attempt});
    insert.Bind(row.waited_ms).Bind(int64_t{row.nodes}).Bind(int64_t{row.feasible});
    insert.Bind(ToJson(row.best)).Bind(row.reason).Bind(FateName(row.fate)).Bind(row.failure);
    insert.Bind(row.cluster);
    TRY(database_->Check(insert.Run()));
    row.number = database_->NoteNumber();
  }
  Statement update(database_->handle(),
                   "UPDATE placements SET fate = ?, failure = ? WHERE number = ? AND "
                   "fate = 'in flight'");
  for (const PlacementEnd& end : ends) {
    update.Reset();
    update.Bind(FateName(end.fate)).Bind(end.failure).Bind(end.number);
    TRY(database_->Check(update.Run()));
  }
  return {};
}

Result<void> SqlitePlacements::AppendComparisons(std::span<const PlacementComparison> rows,
                                                 std::span<const PlacementOutcome> outcomes) {
  TRY(database_->CheckOpen());  // What is known here is not all then.
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
  TRY(database_->CommitUnawaited([&] { return InsertComparisons(rows, outcomes, &written); }));
  if (!evidence_) return {};
  for (const EvidenceTable::Row& row : written) evidence_->Add(row);
  for (const PlacementOutcome& outcome : outcomes) evidence_->Note(outcome);
  return {};
}

Result<void> SqlitePlacements::InsertComparisons(std::span<const PlacementComparison> rows,
                                                 std::span<const PlacementOutcome> outcomes,
                                                 std::vector<EvidenceTable::Row>* written) {
  Statement insert(database_->handle(),
                   "INSERT INTO comparisons (written_at, namespace, pod, uid, kind, scheduler, "
                   "policy, objective, node, policy_node, baseline_node, policy_change, "
                   "baseline_change, rules, reason, nodes, feasible, waited_ms, fate, failure, "
                   "detail, cluster) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'',?,?)");
  // A retry is no further evidence.
  Statement replace(database_->handle(),
                    "DELETE FROM comparisons WHERE uid = ? AND kind <> 'advice'");
  const UnixMillis now = database_->now();
  for (const PlacementComparison& row : rows) {
    if (row.group != ComparisonGroup::kAdvice) {
      replace.Reset();
      replace.Bind(row.pod.uid);
      TRY(database_->Check(replace.Run()));
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
    TRY(database_->Check(insert.Run()));
    const int64_t number = database_->NoteNumber();
    if (row.group == ComparisonGroup::kAdvice) continue;
    written->push_back({.number = number,
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
  Statement end(database_->handle(),
                "UPDATE comparisons SET fate = ?, failure = ? WHERE uid = ? AND kind <> 'advice' "
                "AND fate NOT IN ('failed', 'evicted', 'elsewhere')");
  Statement measured(database_->handle(),
                     "UPDATE comparisons SET measured_gain = ?, measured_change = ? "
                     "WHERE uid = ? AND kind <> 'advice'");
  for (const PlacementOutcome& outcome : outcomes) {
    if (!outcome.fate.empty()) {
      end.Reset();
      end.Bind(outcome.fate).Bind(outcome.failure).Bind(outcome.uid);
      TRY(database_->Check(end.Run()));
    }
    if (!outcome.measured_gain || !outcome.measured_change) continue;
    measured.Reset();
    measured.Bind(*outcome.measured_gain).Bind(*outcome.measured_change).Bind(outcome.uid);
    TRY(database_->Check(measured.Run()));
  }
  return {};
}

Result<std::vector<UnendedComparison>> SqlitePlacements::UnendedComparisons(
    std::string_view cluster) {
  if (!database_->is_open()) return std::vector<UnendedComparison>();
  Statement select(database_->handle(),
                   "SELECT namespace, pod, uid, kind, coalesce(node, ''), "
                   "coalesce(policy_node, ''), coalesce(baseline_node, ''), written_at, "
                   "fate = 'started', measured_change IS NOT NULL FROM comparisons "
                   "WHERE fate IN ('placed', 'started') AND kind <> 'advice' AND cluster = ? "
                   "ORDER BY number");
  select.Bind(cluster);
  std::vector<UnendedComparison> rows;
  while (select.Step()) {
    rows.push_back({.pod = {select.Text(0), select.Text(1), select.Text(2)},
                    .group = ComparisonGroupNamed(select.Text(3)),
                    .node = select.Text(4),
                    .policy_node = select.Text(5),
                    .baseline_node = select.Text(6),
                    .written_at = select.Integer(7),
                    .is_started = select.Integer(8) != 0,
                    .is_measured = select.Integer(9) != 0});
  }
  TRY(database_->Check(select.code()));
  return rows;
}

Result<const EvidenceTable*> SqlitePlacements::Evidence() {
  if (evidence_) return &*evidence_;
  if (!database_->is_open()) {
    evidence_.emplace();  // Until it is open.
    return &*evidence_;
  }
  EvidenceTable table;
  TRY(database_->Check(internal::ReadEvidence(database_->handle(), &table)));
  evidence_ = std::move(table);
  return &*evidence_;
}

Result<std::string> SqlitePlacements::DifferenceInWords(int64_t number) {
  TRY(database_->CheckOpen());
  Statement select(database_->handle(),
                   "SELECT namespace || '/' || pod || ' on ' || reason FROM comparisons "
                   "WHERE number = ?");
  select.Bind(number);
  if (select.Step()) return select.Text(0);
  TRY(database_->Check(select.code()));
  return std::string();
}

void SqlitePlacements::ForgetOlder(UnixMillis than) {
  if (evidence_) evidence_->RemoveOlder(than);
}

// The oldest that is left: those before it are gone.
Result<void> SqlitePlacements::ForgetRemoved() {
  if (!evidence_) return {};
  Statement select(database_->handle(), "SELECT coalesce(min(number), ?) FROM comparisons");
  select.Bind(std::numeric_limits<int64_t>::max());
  if (!select.Step()) return database_->Check(select.code());
  evidence_->RemoveBelow(select.Integer(0));
  return {};
}

}  // namespace rudderfish
