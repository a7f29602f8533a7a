// SPDX-License-Identifier: Apache-2.0
#include "sim/request_source.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kLastRequestS = 9e9;  // Of what int64 nanoseconds hold.

}  // namespace

RequestSource::RequestSource(std::shared_ptr<const RateCurve> curve, uint64_t seed, uint64_t stream)
    : curve_(std::move(curve)), rng_(seed, stream) {
  CHECK(!curve_->per_s.empty() && curve_->step_s > 0);
}

int64_t RequestSource::NextNs() {
  const std::vector<double>& rates = curve_->per_s;
  for (;;) {
    const bool last = step_ + 1 >= rates.size();
    const double begin = rates[step_], end = last ? begin : rates[step_ + 1];
    const double most = std::max(begin, end);
    const double step_end_s =
        last ? kLastRequestS : curve_->step_s * static_cast<double>(step_ + 1);
    const double at_s = most > 0 ? now_s_ - std::log(1 - rng_.Uniform()) / most : kLastRequestS;
    if (at_s >= step_end_s) {
      if (last) return kNone;
      // The rest of an exponential time is exponential: it is redrawn beyond the step.
      now_s_ = step_end_s;
      ++step_;
      continue;
    }
    now_s_ = at_s;
    if (begin != end) {
      const double share = (at_s - curve_->step_s * static_cast<double>(step_)) / curve_->step_s;
      if (rng_.Uniform() * most >= begin + share * (end - begin)) continue;
    }
    return static_cast<int64_t>(at_s * 1e9);
  }
}

}  // namespace rudderfish
