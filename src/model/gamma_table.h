// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/gamma_law.h"

// Gamma laws by table: for who asks millions of times. A law has a place in it, found once (two
// logarithms); what lies below a time is then four look-ups, and a histogram of it some dozens of
// additions. Errors: 0.003 of a probability where the scv is above 0.01; laws narrower than scv
// 0.001 are taken as that wide, wider than 10 as 10. Immutable; any thread may read it.

namespace rudderfish {

// Times in buckets of equal ratio, the bounds of bucket i being kLeastS kRatio^(i-1) and
// kLeastS kRatio^i; the first has all that is shorter, the last all that is longer.
struct ResponseBuckets {
  static constexpr double kLeastS = 1e-4, kRatio = 1.04;
  static constexpr int kCount = 400;  // Up to some ten minutes.
};

class GammaTable {
 public:
  // Made on first use, in some 30 ms.
  static const GammaTable& Shared();

  struct Place {
    int row = 0;
    float share = 0;  // Of the next row.
    double log_mean = 0;
    bool constant = false;  // The law is of a time of 0.
  };

  // The place of a law; its mean may be 0.
  Place Find(const GammaLaw& law) const;

  // P(X <= e^log_x).
  double Below(const Place& place, double log_x) const {
    if (place.constant) return 1;
    const double offset = (log_x - place.log_mean) * kPerLog - kLow;
    if (offset <= 0) return 0;
    if (offset >= kOffsets - 1) return 1;
    const auto at = static_cast<int>(offset);
    const auto part = static_cast<float>(offset - at);
    const float* low = &below_[place.row * kOffsets + at];
    const float* high = low + kOffsets;
    const float first = low[0] + part * (low[1] - low[0]);
    const float second = high[0] + part * (high[1] - high[0]);
    return first + place.share * (second - first);
  }

  // Adds `count` times of this law to buckets as ResponseBuckets says. Of the nearer row alone.
  // REQUIRES: kCount buckets.
  void Spread(const Place& place, double count, std::span<double> buckets) const;

 private:
  GammaTable();

  // Times over the mean: kRatio^kLow to kRatio^(kLow + kOffsets - 1).
  static constexpr int kLow = -180, kOffsets = 270;
  static constexpr int kRows = 128;
  static constexpr double kPerLog = 25.496699;  // 1 / ln kRatio.
  static constexpr double kLeastScv = 1e-3, kMostScv = 10;

  struct Range {
    int first = 0, last = 0;  // Offsets with any mass: [first, last).
  };

  std::vector<float> below_;   // [row][offset] Up to that time.
  std::vector<float> within_;  // [row][offset] Between the time before and that one.
  std::vector<Range> ranges_;  // [row]
  double rows_per_log_ = 1;
};

}  // namespace rudderfish
