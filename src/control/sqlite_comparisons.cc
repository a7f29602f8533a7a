// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "control/sqlite_journal.h"
#include "control/sqlite_statement.h"

// What control/sqlite_journal.h keeps of comparisons, and of modes.

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
    "baseline_change, measured_gain, measured_change FROM comparisons WHERE kind <> 'advice' "
    "ORDER BY number";

void ReadEvidence(Statement* select, EvidenceTable* table) {
  while (select->Step()) {
    const std::string uid = select->Text(4), policy = select->Text(5), objective = select->Text(6),
                      fate = select->Text(7), scheduler = select->Text(8);
    EvidenceTable::Row row{.number = select->Integer(0),
                           .written_at = select->Integer(1),
                           .group = GroupNamed(select->Text(2)),
                           .rules = VerdictNamed(select->Text(3)),
                           .uid = uid,
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
  Statement insert(database_.get(),
                   "INSERT INTO comparisons (written_at, namespace, pod, uid, kind, scheduler, "
                   "policy, objective, node, policy_node, baseline_node, policy_change, "
                   "baseline_change, rules, reason, nodes, feasible, waited_ms, fate, failure, "
                   "detail) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'',?)");
  // A retry is no further evidence.
  Statement replace(database_.get(), "DELETE FROM comparisons WHERE uid = ? AND kind <> 'advice'");
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
    insert.Bind(fate).Bind(row.detail);
    if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
    if (row.group == ComparisonGroup::kAdvice) continue;
    written->push_back({.number = sqlite3_last_insert_rowid(database_.get()),
                        .written_at = now,
                        .group = row.group,
                        .rules = row.rules,
                        .uid = row.pod.uid,
                        .scheduler = row.scheduler,
                        .policy = row.policy,
                        .objective = row.objective,
                        .fate = fate,
                        .is_asked = !row.policy_node.empty(),
                        .is_same_choice = !row.node.empty() && row.node == row.policy_node,
                        .policy_change = row.policy_change,
                        .baseline_change = row.baseline_change});
  }
  Statement end(database_.get(),
                "UPDATE comparisons SET fate = ?, failure = ? WHERE uid = ? AND kind <> 'advice' "
                "AND fate NOT IN ('failed', 'evicted', 'elsewhere')");
  Statement measured(database_.get(),
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

Result<std::vector<UnendedComparison>> SqliteJournal::UnendedComparisons() {
  Statement select(database_.get(),
                   "SELECT namespace, pod, uid, kind, coalesce(node, ''), "
                   "coalesce(policy_node, ''), coalesce(baseline_node, ''), written_at, "
                   "fate = 'started', measured_change IS NOT NULL FROM comparisons "
                   "WHERE fate IN ('placed', 'started') AND kind <> 'advice' ORDER BY number");
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

Result<void> SqliteJournal::KeepMode(std::string_view kind, const KeptMode& mode) {
  Statement insert(database_.get(),
                   "INSERT OR REPLACE INTO kept_modes (kind, configured, mode, policy, objective, "
                   "since, serves, why) VALUES (?,?,?,?,?,?,?,?)");
  insert.Bind(kind).Bind(ModeName(mode.configured)).Bind(ModeName(mode.mode));
  insert.Bind(mode.policy).Bind(mode.objective).Bind(mode.since);
  insert.Bind(int64_t{mode.serves}).Bind(mode.why);
  if (const int code = insert.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<std::optional<KeptMode>> SqliteJournal::ModeOf(std::string_view kind) {
  Statement select(database_.get(),
                   "SELECT configured, mode, policy, objective, since, serves, why "
                   "FROM kept_modes WHERE kind = ?");
  select.Bind(kind);
  if (!select.Step()) {
    if (select.code() != SQLITE_OK) return Failed(select.code());
    return std::optional<KeptMode>();
  }
  KeptMode kept{.policy = select.Text(2),
                .objective = select.Text(3),
                .since = select.Integer(4),
                .serves = select.Integer(5) != 0,
                .why = select.Text(6)};
  TRY_ASSIGN(kept.configured, ModeNamed(select.Text(0)));
  TRY_ASSIGN(kept.mode, ModeNamed(select.Text(1)));
  return std::optional(std::move(kept));
}

Result<void> SqliteJournal::KeepPause(std::string_view kind, const KeptPause& pause) {
  Statement remove(database_.get(), "DELETE FROM kept_pauses WHERE kind = ?");
  Statement insert(database_.get(),
                   "INSERT OR REPLACE INTO kept_pauses (kind, since, paused_by, shared) "
                   "VALUES (?,?,?,?)");
  Statement& keep = pause.is_on() ? insert : remove;
  keep.Bind(kind);
  if (pause.is_on()) keep.Bind(pause.since).Bind(pause.by).Bind(int64_t{pause.is_shared});
  if (const int code = keep.Run(); code != SQLITE_OK) return Failed(code);
  return {};
}

Result<KeptPause> SqliteJournal::PauseOf(std::string_view kind) {
  Statement select(database_.get(),
                   "SELECT since, paused_by, shared FROM kept_pauses WHERE kind = ?");
  select.Bind(kind);
  KeptPause pause;
  if (select.Step()) {
    pause = {.since = select.Integer(0), .by = select.Text(1), .is_shared = select.Integer(2) != 0};
  }
  if (select.code() != SQLITE_OK) return Failed(select.code());
  return pause;
}

Result<bool> JournalReader::HasComparisons() const {
  Statement select(database_.get(),
                   "SELECT count(*) FROM sqlite_master WHERE name = 'comparisons'");
  if (!select.Step()) return Failed(select.code());
  return select.Integer(0) > 0;
}

Result<std::vector<StoredComparison>> JournalReader::Comparisons(std::string_view pod,
                                                                 int64_t limit) const {
  TRY_ASSIGN(const bool is_there, HasComparisons());
  if (!is_there) return std::vector<StoredComparison>();
  Statement select(
      database_.get(),
      "SELECT number, written_at, namespace, pod, uid, kind, scheduler, policy, objective, "
      "coalesce(node, ''), coalesce(policy_node, ''), coalesce(baseline_node, ''), policy_change, "
      "baseline_change, rules, reason, nodes, feasible, waited_ms, fate, failure, measured_gain, "
      "measured_change, CASE WHEN ? THEN detail ELSE '{}' END FROM comparisons "
      "WHERE ? = '' OR (namespace || '/' || pod) = ? ORDER BY number DESC LIMIT ?");
  select.Bind(int64_t{limit == 1}).Bind(pod).Bind(pod).Bind(limit);
  std::vector<StoredComparison> rows;
  while (select.Step()) {
    StoredComparison& stored = rows.emplace_back();
    stored.number = select.Integer(0);
    stored.written_at = select.Integer(1);
    stored.row = {.pod = {select.Text(2), select.Text(3), select.Text(4)},
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
  TRY_ASSIGN(const bool is_there, HasComparisons());
  if (!is_there) return EvidenceTable();
  EvidenceTable table;
  Statement select(database_.get(), kEvidenceRows);
  ReadEvidence(&select, &table);
  if (select.code() != SQLITE_OK) return Failed(select.code());
  return table;
}

Result<const EvidenceTable*> SqliteJournal::Evidence() {
  if (evidence_) return &*evidence_;
  EvidenceTable table;
  Statement select(database_.get(), kEvidenceRows);
  ReadEvidence(&select, &table);
  if (select.code() != SQLITE_OK) return Failed(select.code());
  evidence_ = std::move(table);
  return &*evidence_;
}

Result<std::string> SqliteJournal::DifferenceInWords(int64_t number) {
  Statement select(database_.get(),
                   "SELECT namespace || '/' || pod || ' on ' || reason FROM comparisons "
                   "WHERE number = ?");
  select.Bind(number);
  if (select.Step()) return select.Text(0);
  if (select.code() != SQLITE_OK) return Failed(select.code());
  return std::string();
}

// The oldest that is left: those before it are gone.
Result<void> SqliteJournal::FollowRemoval() {
  if (!evidence_) return {};
  Statement select(database_.get(), "SELECT coalesce(min(number), ?) FROM comparisons");
  select.Bind(std::numeric_limits<int64_t>::max());
  if (!select.Step()) return Failed(select.code());
  evidence_->RemoveBelow(select.Integer(0));
  return {};
}

}  // namespace rudderfish
