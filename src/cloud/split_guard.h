// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"

// What a split of requests may become in one step. A pure function: the same for a split that a
// person asks for and one that a policy decides.
//
// 1. Where what is known is older than `stale_after`, or no region is healthy, the split stays.
// 2. A region that is not healthy gets nothing, at once; its share goes to the others as they are
//    wanted, or where none of them is wanted, evenly.
// 3. A healthy region has at least `floor`, so that there is something to learn about it.
// 4. The rest moves towards what is wanted by at most `change_max` in any region.

namespace rudderfish {

enum class RegionState { kHealthy, kUnhealthy, kUnseen };

struct SplitLimits {
  double change_max = 0.1;  // Of all requests, in a step.
  double floor = 0.01;      // Of all requests.
  Duration stale_after = std::chrono::seconds(90);
};

struct GuardedSplit {
  std::vector<double> shares;      // Sum to 1, unless they are those of now.
  std::vector<std::string> notes;  // Why they are not those that were wanted; sentences.
  bool held = false;               // They are those of now.
};

struct SplitQuestion {
  std::span<const std::string> regions;
  std::span<const double> now, wanted;  // Shares that sum to 1.
  std::span<const RegionState> states;
  Duration age{};  // Of the states.
};

// REQUIRES: all of one length, at least 1; floor x length <= 1.
GuardedSplit GuardSplit(const SplitQuestion& question, const SplitLimits& limits);

}  // namespace rudderfish
