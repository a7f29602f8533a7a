// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "cloud/split.h"

// What of a wanted split may be enacted now: how far one step goes, what every region keeps for
// probing, and which regions get nothing. Pure; every deviation from what was wanted has a reason.

namespace rudderfish {

struct SplitLimits {
  double step = 0.10;   // Largest change of a region's share in one step, 0 to 1.
  double floor = 0.01;  // Share that a healthy region keeps, so that it goes on being measured.
  Duration signals_max_age = std::chrono::seconds(180);  // Older: nothing changes.
};

// A region as it is seen now.
struct RegionHealth {
  std::string region;
  bool is_healthy = false;  // False also where it is not seen at all.
  std::string why;          // Why it is not healthy.
};

struct SplitReview {
  Split split;                       // What may be enacted, in the order of what was wanted.
  std::vector<std::string> reasons;  // Empty: all that was wanted.
  bool is_frozen = false;            // The last good split is kept, whatever was wanted.
};

// 1. Signals that are too old, or no healthy region: `standing`, the last good split, is kept.
// 2. Regions that are not healthy get 0 at once; their share goes to the healthy ones as wanted.
// 3. Healthy regions get at least the floor, in as many steps as it takes.
// 4. No other change is larger than a step; all are shortened by one factor, so that shares sum
//    to 1.
// `standing` is empty, or has the regions of `wanted` in their order; empty: no step limit.
// REQUIRES: `health` has the regions of `wanted` in their order; floor x regions <= 1; step > 0.
SplitReview ReviewSplit(const Split& standing, const Split& wanted,
                        const std::vector<RegionHealth>& health, Duration signals_age,
                        const SplitLimits& limits);

}  // namespace rudderfish
