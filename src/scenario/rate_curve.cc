// SPDX-License-Identifier: Apache-2.0
#include "scenario/rate_curve.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {

double RateCurve::AtS(double t_s) const {
  const double position = std::max(0.0, t_s / step_s);
  const auto last = static_cast<double>(per_s.size() - 1);
  if (position >= last) return per_s.back();
  const auto before = static_cast<size_t>(position);
  const double share = position - static_cast<double>(before);
  return per_s[before] + share * (per_s[before + 1] - per_s[before]);
}

double RateCurve::MeanOf(double from_s, double to_s) const {
  CHECK_LT(from_s, to_s);
  double sum = 0, at = from_s, rate = AtS(from_s);
  while (at < to_s) {
    const double next =
        at >= length_s() ? to_s : std::min(to_s, (std::floor(at / step_s + 1e-12) + 1) * step_s);
    const double next_rate = AtS(next);
    sum += (rate + next_rate) / 2 * (next - at);
    at = next;
    rate = next_rate;
  }
  return sum / (to_s - from_s);
}

double RateCurve::Peak() const { return *std::max_element(per_s.begin(), per_s.end()); }

}  // namespace rudderfish
