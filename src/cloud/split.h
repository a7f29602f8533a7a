// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Which share of a service's requests each region serves, and the same as the whole numbers that
// data paths take. Pure values.

namespace rudderfish {

struct RegionShare {
  std::string region;
  double share = 0;  // 0 to 1.

  bool operator==(const RegionShare&) const = default;
};
using Split = std::vector<RegionShare>;  // Each region once; shares sum to 1.

// "eu=60,us=40": percent, which must sum to 100. kInvalidArgument otherwise.
Result<Split> ParseSplit(std::string_view text);

// "eu 60 %, us 40 %".
std::string SplitText(const Split& split);

// Whole numbers that sum to `total` exactly, by largest remainder; of equal remainders the first
// goes first. Each differs from its share of `total` by less than 1.
// REQUIRES: shares are 0 or more and sum to 1; total >= 0.
std::vector<int64_t> Quantise(std::span<const double> shares, int64_t total);

}  // namespace rudderfish
