// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/served_application.h"
#include "sim/chance_ahead.h"

// How long calls of an application compute, each drawn by the law of its workload.

namespace rudderfish {

class CallDurations {
 public:
  explicit CallDurations(const ServedApplication& application);

  void Start(const Rng& rng) { chance_ = ChanceAhead(rng); }
  int64_t DrawNs(CallId call);  // At least 1.

 private:
  struct Plan {
    ServiceLaw::Shape shape = ServiceLaw::Shape::kConstant;
    double mean_ns = 0;
    double a = 0, b = 0;  // Log-normal: mu, sigma; hyperexponential: probability, and both means
    double c = 0;         // over the mean.
  };

  std::vector<Plan> plans_;  // [call]
  ChanceAhead chance_{Rng(0)};
};

}  // namespace rudderfish
