// SPDX-License-Identifier: Apache-2.0
#include "policy/scaling_record.h"

#include <algorithm>

#include "base/check.h"

namespace rudderfish {
namespace {

// Tolerance where no record keeps the limit: in standard errors, and at most.
constexpr double kErrors = 2, kToleranceMax = 0.0005;

}  // namespace

bool ScalingRecord::IsBetterThan(const ScalingRecord& other, double violations_max) const {
  const bool fits = violation_share <= violations_max;
  if (fits != (other.violation_share <= violations_max)) return fits;
  return fits ? core_hours < other.core_hours : violation_share < other.violation_share;
}

double LimitAmong(std::span<const ScalingRecord> records, double violations_max) {
  const auto fewest = std::min_element(records.begin(), records.end(),
                                       [](const ScalingRecord& one, const ScalingRecord& other) {
                                         return one.violation_share < other.violation_share;
                                       });
  CHECK(fewest != records.end());
  if (fewest->violation_share <= violations_max) return violations_max;
  return fewest->violation_share + std::min(kToleranceMax, kErrors * fewest->violation_error);
}

}  // namespace rudderfish
