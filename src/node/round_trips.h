// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"

// Round trips to one target by one protocol: sums since the start, and the newest for the mean and
// quantiles. One thread.

namespace rudderfish {

class RoundTrips {
 public:
  static constexpr size_t kKept = 128;
  // Older ones say nothing of now. Probes of one target are at most half a minute apart.
  static constexpr Duration kRecent = std::chrono::minutes(5);

  void Add(Instant at, double seconds);
  void NoteFailure() { ++failures_; }

  struct Summary {
    double mean = 0, p50 = 0, p99 = 0;  // Seconds; quantiles are the nearest rank.
    size_t count = 0;
  };
  // Of the newest `limit` that are recent; nothing: none is.
  std::optional<Summary> Recent(Instant now, size_t limit = kKept) const;

  uint64_t count() const { return count_; }
  double sum_seconds() const { return sum_seconds_; }
  uint64_t failures() const { return failures_; }

 private:
  struct Sample {
    Instant at;
    double seconds;
  };

  std::deque<Sample> samples_;
  uint64_t count_ = 0, failures_ = 0;
  double sum_seconds_ = 0;
};

}  // namespace rudderfish
