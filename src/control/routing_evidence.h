// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/placement_evidence.h"

// What the journal says of decisions about one route, and what a promotion of routing still lacks.
// Pure functions of sums.

namespace rudderfish {

struct RouteEvidence {
  std::string route;
  int64_t decisions = 0;
  MeanSum gain;           // Predicted, in units, of decisions that would change the split.
  MeanSum over_baseline;  // By how much they gain more than the baseline's.
  // Of the Model, on what stood: predicted less measured response time, relative to the measured.
  MeanSum error;
};

// Of one route, since its canary began.
struct RouteTrial {
  std::string route;
  int64_t done = 0, failed = 0;  // Splits that were set, and that could not be.
  // Response time after a split was set: measured less predicted, relative to the predicted.
  MeanSum beyond_predicted;
};

// An hour at the usual interval has 120 decisions.
inline constexpr int64_t kRouteDecisionsNeeded = 100;
inline constexpr int64_t kRouteMeasuredNeeded = 30;
inline constexpr double kRouteErrorAllowed = 0.2;  // Of the Model, in the mean.
inline constexpr int64_t kRouteTrialsNeeded = 10;
// Of a route, the newest rows that count: what is older says little of a service that changes.
inline constexpr int64_t kRouteRows = 2000;

// What one route lacks for a promotion above shadow, one line each.
std::vector<std::string> WhatIsMissing(const RouteEvidence& evidence);

// What one route lacks for a promotion above canary, one line each.
std::vector<std::string> WhatIsMissing(const RouteTrial& trial);

// Why a route does worse than it should; nothing: it does not, or there is too little to say.
std::optional<std::string> WhyWorse(const RouteTrial& trial);

}  // namespace rudderfish
