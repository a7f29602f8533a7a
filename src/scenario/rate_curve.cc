// SPDX-License-Identifier: Apache-2.0
#include "scenario/rate_curve.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace rudderfish {
namespace {

// As std::floor, without a call.
double WholeSteps(double position) {
  const auto whole = static_cast<int64_t>(position);
  return static_cast<double>(static_cast<double>(whole) > position ? whole - 1 : whole);
}

// `position` steps from the begin.
[[gnu::always_inline]] inline double At(const std::vector<double>& per_s, double position) {
  const auto last = static_cast<double>(per_s.size() - 1);
  if (position >= last) return per_s.back();
  const auto before = static_cast<size_t>(position);
  const double share = position - static_cast<double>(before);
  return per_s[before] + share * (per_s[before + 1] - per_s[before]);
}

}  // namespace

double RateCurve::AtS(double t_s) const { return At(per_s, std::max(0.0, t_s / step_s)); }

double RateCurve::MeanOf(double from_s, double to_s) const {
  CHECK_LT(from_s, to_s);
  double sum = 0, at = from_s, position = from_s / step_s;
  double rate = At(per_s, std::max(0.0, position));
  while (at < to_s) {
    const double next =
        at >= length_s() ? to_s : std::min(to_s, (WholeSteps(position + 1e-12) + 1) * step_s);
    position = next / step_s;
    const double next_rate = At(per_s, std::max(0.0, position));
    sum += (rate + next_rate) / 2 * (next - at);
    at = next;
    rate = next_rate;
  }
  return sum / (to_s - from_s);
}

double RateCurve::Peak() const { return *std::max_element(per_s.begin(), per_s.end()); }

}  // namespace rudderfish
