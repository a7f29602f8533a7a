// SPDX-License-Identifier: Apache-2.0
#include "sim/ratio_tally.h"

#include <algorithm>
#include <cmath>

namespace rudderfish {

void RatioTally::Add(double hits, double of) {
  ++trials_;
  hits_ += hits;
  of_ += of;
  hits_squared_ += hits * hits;
  hits_by_of_ += hits * of;
  of_squared_ += of * of;
}

double RatioTally::standard_error() const {
  if (trials_ < 2 || of_ <= 0) return 0;
  const double squares =
      hits_squared_ - 2 * ratio() * hits_by_of_ + ratio() * ratio() * of_squared_;
  return std::sqrt(std::max(0.0, squares) * trials_ / (trials_ - 1)) / of_;
}

}  // namespace rudderfish
