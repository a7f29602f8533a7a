// SPDX-License-Identifier: Apache-2.0
#include "control/evidence_table.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace rudderfish {

EvidenceTable::Fate EvidenceTable::FateOf(std::string_view name) {
  if (name == "started") return Fate::kStarted;
  if (name == "ended") return Fate::kEnded;
  if (name == "elsewhere") return Fate::kElsewhere;
  if (name == "failed") return Fate::kFailed;
  if (name == "evicted") return Fate::kEvicted;
  return Fate::kOpen;
}

void EvidenceTable::Add(const Row& row) {
  const auto [at, is_new] = by_uid_.try_emplace(std::string(row.uid), entries_.size());
  if (!is_new) entries_[std::exchange(at->second, entries_.size())].is_gone = true;
  const auto shared = [this](std::string_view name) { return &*names_.emplace(name).first; };
  entries_.push_back({.number = row.number,
                      .written_at = row.written_at,
                      .policy_change = row.policy_change,
                      .baseline_change = row.baseline_change,
                      .measured_gain = row.measured_gain.value_or(0),
                      .measured_change = row.measured_change.value_or(0),
                      .policy = shared(row.policy),
                      .objective = shared(row.objective),
                      .scheduler = shared(row.scheduler),
                      .cluster = shared(row.cluster),
                      .group = row.group,
                      .rules = row.rules,
                      .fate = FateOf(row.fate),
                      .is_asked = row.is_asked,
                      .is_same_choice = row.is_same_choice,
                      .has_gain = row.measured_gain.has_value(),
                      .has_change = row.measured_change.has_value()});
}

void EvidenceTable::Note(const PlacementOutcome& outcome) {
  const auto at = by_uid_.find(outcome.uid);
  if (at == by_uid_.end()) return;
  Entry& entry = entries_[at->second];
  const bool is_last_word = entry.fate >= Fate::kElsewhere;
  if (!outcome.fate.empty() && !is_last_word) entry.fate = FateOf(outcome.fate);
  if (!outcome.measured_gain || !outcome.measured_change) return;
  entry.measured_gain = *outcome.measured_gain;
  entry.measured_change = *outcome.measured_change;
  entry.has_gain = entry.has_change = true;
}

template <class Goes>
void EvidenceTable::Remove(const Goes& goes) {
  std::vector<size_t> places(entries_.size());  // Where each entry has gone to.
  size_t kept = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    places[i] = kept;
    entries_[i].is_gone = entries_[i].is_gone || goes(entries_[i]);
    if (!entries_[i].is_gone) ++kept;
  }
  std::erase_if(by_uid_, [&](const auto& of_pod) { return entries_[of_pod.second].is_gone; });
  for (auto& [uid, place] : by_uid_) place = places[place];
  std::erase_if(entries_, [](const Entry& entry) { return entry.is_gone; });
  std::unordered_set<const std::string*> used;
  for (const Entry& entry : entries_)
    used.insert({entry.policy, entry.objective, entry.scheduler, entry.cluster});
  std::erase_if(names_, [&](const std::string& name) { return !used.contains(&name); });
}

void EvidenceTable::RemoveBelow(int64_t number) {
  Remove([number](const Entry& entry) { return entry.number < number; });
}

void EvidenceTable::RemoveOlder(UnixMillis than) {
  Remove([than](const Entry& entry) { return entry.written_at < than; });
}

const std::string* EvidenceTable::Shared(std::string_view name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? nullptr : &*at;
}

EvidenceTable::Asked EvidenceTable::Understand(const EvidenceQuestion& question) const {
  Asked asked{.policy = Shared(question.policy),
              .objective = Shared(question.objective),
              .cluster = Shared(question.cluster),
              .is_any_scheduler = question.schedulers.empty(),
              .from = question.from};
  for (const std::string& name : question.schedulers) asked.schedulers.push_back(Shared(name));
  return asked;
}

bool EvidenceTable::Asked::IsAbout(const Entry& entry) const {
  return !entry.is_gone && entry.group == ComparisonGroup::kShadow && entry.number >= from &&
         entry.policy == policy && entry.objective == objective && entry.cluster == cluster &&
         (is_any_scheduler ||
          std::find(schedulers.begin(), schedulers.end(), entry.scheduler) != schedulers.end());
}

std::vector<SchedulerEvidence> EvidenceTable::ByScheduler(const EvidenceQuestion& question) const {
  const Asked asked = Understand(question);
  std::unordered_map<const std::string*, SchedulerEvidence> by_scheduler;
  for (const Entry& entry : entries_) {
    if (!asked.IsAbout(entry)) continue;
    SchedulerEvidence& one = by_scheduler[entry.scheduler];
    ++(entry.rules == RulesVerdict::kEqual       ? one.equal
       : entry.rules == RulesVerdict::kDifferent ? one.different
       : entry.rules == RulesVerdict::kUnclear   ? one.unclear
                                                 : one.unmodelled);
  }
  std::vector<SchedulerEvidence> all;
  for (auto& [scheduler, one] : by_scheduler) {
    one.scheduler = *scheduler;
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.scheduler < b.scheduler; });
  return all;
}

ShadowEvidence EvidenceTable::Shadowed(const EvidenceQuestion& question) const {
  const Asked asked = Understand(question);
  ShadowEvidence evidence;
  for (const Entry& entry : entries_) {
    if (!asked.IsAbout(entry)) continue;
    switch (entry.rules) {
      case RulesVerdict::kEqual:
        ++evidence.equal;
        evidence.same_choice += entry.is_same_choice ? 1 : 0;
        break;
      case RulesVerdict::kDifferent:
        ++evidence.different;
        evidence.differences.insert(evidence.differences.begin(), entry.number);
        if (evidence.differences.size() > kDifferencesNamed) evidence.differences.pop_back();
        break;
      case RulesVerdict::kUnclear:
        ++evidence.unclear;
        break;
      case RulesVerdict::kUnmodelled:
        ++evidence.unmodelled;
        break;
    }
    const double gain = entry.baseline_change - entry.policy_change;
    if (entry.is_asked) evidence.gain.Add(gain);
    if (entry.has_gain) evidence.error.Add(gain - entry.measured_gain);
    evidence.started += entry.fate == Fate::kStarted || entry.fate == Fate::kEnded ? 1 : 0;
    evidence.failed += entry.fate == Fate::kFailed ? 1 : 0;
    evidence.evicted += entry.fate == Fate::kEvicted ? 1 : 0;
  }
  return evidence;
}

TrialEvidence EvidenceTable::Trial(UnixMillis since, std::string_view cluster) const {
  TrialEvidence trial;
  const std::string* const asked = Shared(cluster);
  for (const Entry& entry : entries_) {
    const bool is_canary = entry.group == ComparisonGroup::kCanary;
    const bool counts = !entry.is_gone && entry.written_at >= since && entry.cluster == asked &&
                        (is_canary || entry.group == ComparisonGroup::kControl) &&
                        entry.fate != Fate::kElsewhere;
    if (!counts) continue;
    GroupEvidence& group = is_canary ? trial.canary : trial.control;
    ++group.pods;
    group.bad += entry.fate == Fate::kFailed || entry.fate == Fate::kEvicted ? 1 : 0;
    if (entry.has_change) group.change.Add(entry.measured_change);
  }
  return trial;
}

}  // namespace rudderfish
