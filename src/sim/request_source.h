// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/rng.h"
#include "scenario/rate_curve.h"

// When requests come: a Poisson process whose rate follows a curve, by thinning against the larger
// end of each step of it (P. A. W. Lewis, G. S. Shedler, "Simulation of nonhomogeneous Poisson
// processes by thinning", 1979). Its chance is its own, so that the same seed brings the same
// requests to every policy.

namespace rudderfish {

class RequestSource {
 public:
  static constexpr int64_t kNone = INT64_MAX;

  RequestSource(std::shared_ptr<const RateCurve> curve, uint64_t seed, uint64_t stream);

  // The next one, after the last; kNone if no more will come.
  int64_t NextNs();

 private:
  std::shared_ptr<const RateCurve> curve_;
  Rng rng_;
  double now_s_ = 0;
  size_t step_ = 0;
};

}  // namespace rudderfish
