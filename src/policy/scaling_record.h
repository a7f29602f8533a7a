// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

// How scaling policies are compared under a limit on late requests.

namespace rudderfish {

// What a policy came to on some episodes.
struct ScalingRecord {
  double core_hours = 0;  // Of an episode, summed over loads.
  double violation_share = 0;
  double violation_error = 0;  // Standard error of that; 0 where it is not known.

  // Within the limit, or nearer to it; of two within, the cheaper.
  bool IsBetterThan(const ScalingRecord& other, double violations_max) const;
  bool operator==(const ScalingRecord&) const = default;
};

// The limit, if any of these keeps it. Else a hundredth of a point would decide, at whatever cost,
// between policies that all exceed it: what is allowed then is what the one with the fewest
// violations has, and so much more as chance may add to that, two standard errors, 0.05 points at
// most. REQUIRES: at least one.
double LimitAmong(std::span<const ScalingRecord> records, double violations_max);

}  // namespace rudderfish
