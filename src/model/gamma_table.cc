// SPDX-License-Identifier: Apache-2.0
#include "model/gamma_table.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kNegligible = 1e-7;

}  // namespace

const GammaTable& GammaTable::Shared() {
  static const GammaTable table;
  return table;
}

GammaTable::GammaTable()
    : below_((kRows + 1) * kOffsets),  // Of the row after the last one, none is ever taken.
      within_(kRows * kOffsets),
      ranges_(kRows),
      rows_per_log_((kRows - 1) / std::log(kMostScv / kLeastScv)) {
  for (int row = 0; row < kRows; ++row) {
    const GammaLaw law{1, kLeastScv * std::exp(row / rows_per_log_)};
    const double spread = std::sqrt(law.variance);
    double before = 0;
    ranges_[row] = {kOffsets, 0};
    for (int i = 0; i < kOffsets; ++i) {
      const double x = std::pow(ResponseBuckets::kRatio, kLow + i);
      double below = x < 1 - 8 * spread ? 0 : x > 1 + 40 * spread ? 1 : law.Below(x);
      if (i == kOffsets - 1) below = 1;
      below_[row * kOffsets + i] = static_cast<float>(below);
      within_[row * kOffsets + i] = static_cast<float>(below - before);
      if (below - before > kNegligible) ranges_[row] = {std::min(ranges_[row].first, i), i + 1};
      before = below;
    }
  }
}

GammaTable::Place GammaTable::Find(const GammaLaw& law) const {
  if (!(law.mean > 0)) return {.constant = true};
  const double scv = std::clamp(law.variance / (law.mean * law.mean), kLeastScv, kMostScv);
  const double at = std::log(scv / kLeastScv) * rows_per_log_;
  const int row = static_cast<int>(at);
  return {.row = row, .share = static_cast<float>(at - row), .log_mean = std::log(law.mean)};
}

void GammaTable::Spread(const Place& place, double count, std::span<double> buckets) const {
  CHECK_EQ(buckets.size(), static_cast<size_t>(ResponseBuckets::kCount));
  if (place.constant) {
    buckets[0] += count;
    return;
  }
  static const double log_least = std::log(ResponseBuckets::kLeastS);
  const double position = (place.log_mean - log_least) * kPerLog + kLow;
  const double whole = std::floor(position);
  const double part = position - whole;
  const int shift = static_cast<int>(whole);
  const int row = place.share > .5F ? std::min(place.row + 1, kRows - 1) : place.row;
  const float* within = &within_[static_cast<size_t>(row) * kOffsets];
  const Range range = ranges_[row];
  // Offset k of the row lies between buckets k + shift and k + shift + 1.
  const int first = std::max(range.first, -shift);
  const int last = std::min(range.last, ResponseBuckets::kCount - 1 - shift);
  const double here = count * (1 - part), next = count * part;
  for (int k = range.first; k < std::min(first, range.last); ++k) buckets[0] += count * within[k];
  double carried = 0;
  for (int k = first; k < last; ++k) {
    buckets[k + shift] += here * within[k] + carried;
    carried = next * within[k];
  }
  if (first < last) buckets[last + shift] += carried;
  for (int k = std::max(last, range.first); k < range.last; ++k)
    buckets[ResponseBuckets::kCount - 1] += count * within[k];
}

}  // namespace rudderfish
