// SPDX-License-Identifier: Apache-2.0
#include "node/round_trips.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rudderfish {

void RoundTrips::Add(Instant at, double seconds) {
  samples_.push_back({at, seconds});
  if (samples_.size() > kKept) samples_.pop_front();
  ++count_;
  sum_seconds_ += seconds;
}

std::optional<RoundTrips::Summary> RoundTrips::Recent(Instant now, size_t limit) const {
  std::vector<double> values;
  double sum = 0;
  for (auto at = samples_.rbegin(); at != samples_.rend() && values.size() < limit; ++at) {
    if (now - at->at > kRecent) break;
    values.push_back(at->seconds);
    sum += at->seconds;
  }
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const auto quantile = [&](double q) {
    const double rank = std::ceil(q * static_cast<double>(values.size()));
    return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  return Summary{.mean = sum / static_cast<double>(values.size()),
                 .p50 = quantile(0.5),
                 .p99 = quantile(0.99),
                 .count = values.size()};
}

}  // namespace rudderfish
