// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// How requests are split between regions, as people write it and as data paths take it. Values.

namespace rudderfish {

struct RegionShare {
  std::string region;
  double share = 0;  // From 0 to 1.

  bool operator==(const RegionShare&) const = default;
};

// "eu=60,us=40", in percent: at least one region, each once, 100 in all (within 0.01).
Result<std::vector<RegionShare>> ParseSplit(std::string_view text);

// Whole weights that sum to `total`, by largest remainder (Hamilton's method): each is its share of
// `total`, rounded up or down. The first of equal remainders is rounded up; a share of 0 has weight
// 0. REQUIRES: shares are not negative and sum to 1; total > 0.
std::vector<int> WeightsOf(std::span<const double> shares, int total);

// "60.0 %".
std::string ShareText(double share);

}  // namespace rudderfish
