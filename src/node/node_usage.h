// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "base/clock.h"
#include "node/node_counters.h"

// How busy a node is: rates between two readings of its counters, and their mean over the newest
// few, so that one busy half second does not decide. One thread.

namespace rudderfish {

struct NodeUsage {
  double cpu_percent = 0;     // Of all cores together.
  double memory_percent = 0;  // What is not available.
  double received_kib_per_s = 0, transmitted_kib_per_s = 0;
  double read_kib_per_s = 0, written_kib_per_s = 0;
};

class UsageWindow {
 public:
  static constexpr size_t kKept = 10;

  // Readings in order of time. A counter that went back, as after a device was replaced, counts
  // from nothing.
  void Add(Instant at, const NodeCounters& counters);

  // The mean of the newest `samples`, or of those that there are; nothing: there is none yet.
  std::optional<NodeUsage> Mean(size_t samples) const;

  size_t size() const { return samples_.size(); }
  const std::optional<NodeCounters>& newest() const { return last_; }
  Instant newest_at() const { return last_at_; }

 private:
  std::optional<NodeCounters> last_;
  Instant last_at_;
  std::deque<NodeUsage> samples_;
};

}  // namespace rudderfish
