// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

// Moves of the last hour, and how many of them there may be. One ledger serves all applications of
// a process, so that nodes and the cluster are counted over all of them. Not thread safe.

namespace rudderfish {

// Moves within any hour; without a value they are not counted.
struct HourlyMoves {
  std::optional<int> application, workload;
  std::optional<int> name_space;
  std::optional<int> node;  // Moves away from a node, and moves to it.
  std::optional<int> cluster;

  bool operator==(const HourlyMoves&) const = default;
};

class MoveLedger {
 public:
  struct Entry {
    std::string application, workload, from, to;
    std::string name_space;  // Of the workload; empty: it has none.
    std::chrono::nanoseconds at{0};
  };

  void Note(Entry entry) { entries_.push_back(std::move(entry)); }
  void Clear() { entries_.clear(); }

  // Removes what is an hour old. Entries are in no order: an application may recall its own late.
  void Trim(std::chrono::nanoseconds now);

  int OfCluster() const { return static_cast<int>(entries_.size()); }
  int OfApplication(std::string_view application) const;
  int OfWorkload(std::string_view application, std::string_view workload) const;
  int OfNamespace(std::string_view name_space) const;
  int OfNode(std::string_view node) const;

 private:
  std::deque<Entry> entries_;
};

}  // namespace rudderfish
