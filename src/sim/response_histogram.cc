// SPDX-License-Identifier: Apache-2.0
#include "sim/response_histogram.h"

#include <cmath>
#include <limits>

namespace rudderfish {

// Values below 2^7 have buckets of their own; from there on 64 buckets an octave, of which bucket
// (above, v) holds v 2^above with 64 <= v < 128.
double ResponseHistogram::LeastOf(int bucket) {
  constexpr int kWithin = 1 << kBitsWithin;
  if (bucket < 2 * kWithin) return bucket;
  const int above = (bucket >> kBitsWithin) - 1;
  return std::ldexp(static_cast<double>(bucket - (above << kBitsWithin)), above);
}

double ResponseHistogram::QuantileS(double share, int64_t unanswered) const {
  const double wanted = share * static_cast<double>(count_ + unanswered);
  if (unanswered > 0 && wanted > static_cast<double>(count_))
    return std::numeric_limits<double>::infinity();
  if (count_ == 0) return 0;
  double below = 0;
  for (int i = 0; i < kBuckets; ++i) {
    if (in_[i] == 0) continue;
    if (below + in_[i] >= wanted) {
      const double low = LeastOf(i), high = LeastOf(i + 1);
      return (low + (high - low) * (wanted - below) / in_[i]) / 1e9;
    }
    below += in_[i];
  }
  return LeastOf(kBuckets) / 1e9;
}

}  // namespace rudderfish
