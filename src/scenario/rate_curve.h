// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

// Requests per second over time: values `step_s` apart, straight lines between them, the last value
// from there on. Every shape of load becomes one (scenario/traffic.h), so that what runs it knows
// one form only.

namespace rudderfish {

// Users who ask again: after an answer, or a request that failed for good, another one follows with
// probability `again`, an exponential time later.
struct ReturningUsers {
  double again = 0;                  // 0: no user, and the rest is unused; 1: no user leaves.
  double think_s = 0;                // The mean of that time.
  double thinking = 0;               // Of those who came before time 0; the mean of a Poisson law.
  std::vector<double> starts_per_s;  // Users who come, at the times of RateCurve::per_s.

  bool operator==(const ReturningUsers&) const = default;
};

struct RateCurve {
  double step_s = 1;
  std::vector<double> per_s = {0};  // At 0, step_s, 2 step_s ...; at least one, none negative.
  // Where users return, per_s is what is to be expected of them all if answers take no time.
  ReturningUsers users = {};

  static RateCurve Steady(double rate_per_s) { return {1, {rate_per_s}, {}}; }

  double AtS(double t_s) const;
  double MeanOf(double from_s, double to_s) const;  // REQUIRES: from < to.
  double Peak() const;
  double length_s() const { return step_s * static_cast<double>(per_s.size() - 1); }

  bool operator==(const RateCurve&) const = default;
};

}  // namespace rudderfish
