// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/rng.h"

// How long to wait before the next attempt: doubling, up to a limit, each drawn from the upper half
// of its interval, so that clients that lost their server together do not come back together. The
// limit is low, because a controller should see again within seconds of the server's return, and
// what it asks then is little. Owned by one thread.

namespace rudderfish::kube {

class BackOff {
 public:
  struct Limits {
    Duration first = std::chrono::milliseconds(200);
    Duration last = std::chrono::seconds(3);
  };

  BackOff(Limits limits, Rng rng) : limits_(limits), next_(limits.first), rng_(rng) {}

  Duration Next() {
    const auto wait = std::chrono::duration_cast<Duration>(next_ * rng_.Uniform(0.5, 1.0));
    next_ = std::min(next_ * 2, limits_.last);
    return wait;
  }

  void Reset() { next_ = limits_.first; }  // It worked.

 private:
  Limits limits_;
  Duration next_;
  Rng rng_;
};

}  // namespace rudderfish::kube
