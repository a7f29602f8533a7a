// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

// Requests per second over time: values `step_s` apart, straight lines between them, the last value
// from there on. Every shape of load becomes one (scenario/traffic.h), so that what runs it knows
// one form only.

namespace rudderfish {

struct RateCurve {
  double step_s = 1;
  std::vector<double> per_s = {0};  // At 0, step_s, 2 step_s ...; at least one, none negative.

  static RateCurve Steady(double rate_per_s) { return {1, {rate_per_s}}; }

  double AtS(double t_s) const;
  double MeanOf(double from_s, double to_s) const;  // REQUIRES: from < to.
  double Peak() const;
  double length_s() const { return step_s * static_cast<double>(per_s.size() - 1); }

  bool operator==(const RateCurve&) const = default;
};

}  // namespace rudderfish
