// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/wall_time.h"
#include "control/placement_comparison.h"
#include "control/placement_evidence.h"

// What every comparison in the journal says, in a few numbers each, in memory: so that evidence is
// summed in less than a millisecond where the disk would hold up pods. Sums go by the comparisons'
// numbers, so that they are the same to the digit whenever the same journal is read. Advice is no
// part of it. Not thread safe.

namespace rudderfish {

class EvidenceTable {
 public:
  EvidenceTable() = default;
  EvidenceTable(EvidenceTable&&) = default;  // Never copied: its rows share their names.
  EvidenceTable& operator=(EvidenceTable&&) = default;

  // As the journal has it. In the order of numbers; what was known of the pod goes.
  struct Row {
    int64_t number = 0;
    UnixMillis written_at = 0;
    ComparisonGroup group = ComparisonGroup::kShadow;
    RulesVerdict rules = RulesVerdict::kEqual;
    std::string_view uid, cluster, scheduler, policy, objective, fate;
    bool is_asked = false;        // What the policy would choose.
    bool is_same_choice = false;  // As was done.
    double policy_change = 0, baseline_change = 0;
    std::optional<double> measured_gain, measured_change;
  };
  void Add(const Row& row);

  // Of a pod that is not known nothing.
  void Note(const PlacementOutcome& outcome);
  bool Knows(const std::string& uid) const { return by_uid_.contains(uid); }

  // Those that the journal has removed.
  void RemoveBelow(int64_t number);
  void RemoveOlder(UnixMillis than);

  // As control/placement_evidence.h has it; of what differs the number alone, without words.
  ShadowEvidence Shadowed(const EvidenceQuestion& question) const;
  // Of all schedulers that have placed pods while that policy looked on, by name.
  std::vector<SchedulerEvidence> ByScheduler(const EvidenceQuestion& question) const;
  TrialEvidence Trial(UnixMillis since, std::string_view cluster) const;

 private:
  enum class Fate : uint8_t { kOpen, kStarted, kEnded, kElsewhere, kFailed, kEvicted };
  struct Entry {
    int64_t number = 0;
    UnixMillis written_at = 0;
    double policy_change = 0, baseline_change = 0, measured_gain = 0, measured_change = 0;
    const std::string *policy = nullptr, *objective = nullptr, *scheduler = nullptr;
    const std::string* cluster = nullptr;
    ComparisonGroup group = ComparisonGroup::kShadow;
    RulesVerdict rules = RulesVerdict::kEqual;
    Fate fate = Fate::kOpen;
    bool is_asked = false, is_same_choice = false, has_gain = false, has_change = false;
    bool is_gone = false;
  };
  static Fate FateOf(std::string_view name);
  // A question in shared names, as those are compared by their addresses; null: no row's.
  struct Asked {
    const std::string *policy = nullptr, *objective = nullptr, *cluster = nullptr;
    std::vector<const std::string*> schedulers;
    bool is_any_scheduler = false;
    int64_t from = 0;
    bool IsAbout(const Entry& entry) const;
  };
  const std::string* Shared(std::string_view name) const;
  Asked Understand(const EvidenceQuestion& question) const;
  template <class Goes>
  void Remove(const Goes& goes);

  std::vector<Entry> entries_;                      // By number.
  std::unordered_map<std::string, size_t> by_uid_;  // Places in entries_.
  std::set<std::string, std::less<>> names_;  // Of policies, objectives, schedulers, clusters.
};

}  // namespace rudderfish
