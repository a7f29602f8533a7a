// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

// Response times, counted in buckets of 1/64 of their size: percentiles to 0.8 %, in a few
// nanoseconds each. Allocates once.

namespace rudderfish {

class ResponseHistogram {
 public:
  ResponseHistogram() : in_(kBuckets) {}

  void Clear() {
    std::fill(in_.begin(), in_.end(), 0);
    count_ = 0;
  }

  void Add(int64_t ns) {
    ++in_[BucketOf(ns)];
    ++count_;
  }

  void Add(const ResponseHistogram& other) {
    for (int i = 0; i < kBuckets; ++i) in_[i] += other.in_[i];
    count_ += other.count_;
  }

  // REQUIRES: `other` is what this one was at an earlier time.
  void Subtract(const ResponseHistogram& other) {
    for (int i = 0; i < kBuckets; ++i) in_[i] -= other.in_[i];
    count_ -= other.count_;
  }

  int64_t count() const { return count_; }

  // The time that a share of them does not pass, in s; within its bucket by proportion. 0 without
  // any. `unanswered` requests more have no answer and count as slower than all: infinite where the
  // share reaches into them.
  double QuantileS(double share, int64_t unanswered = 0) const;

 private:
  static constexpr int kBitsWithin = 6;
  static constexpr int kBuckets = (64 - kBitsWithin) << kBitsWithin;

  static int BucketOf(int64_t ns) {
    const uint64_t value = ns > 0 ? static_cast<uint64_t>(ns) : 0;
    const int above = std::max(0, static_cast<int>(std::bit_width(value)) - kBitsWithin - 1);
    return (above << kBitsWithin) + static_cast<int>(value >> above);
  }

  // The least value of a bucket.
  static double LeastOf(int bucket);

  std::vector<uint32_t> in_;
  int64_t count_ = 0;
};

}  // namespace rudderfish
