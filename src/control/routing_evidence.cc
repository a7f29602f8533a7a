// SPDX-License-Identifier: Apache-2.0
#include "control/routing_evidence.h"

#include <fmt/format.h>

#include <cmath>

namespace rudderfish {
namespace {

constexpr double kUnitRounding = 1e-12;  // Of a mean.
constexpr double kFailedMax = 0.2;       // Of splits that were to be set.

double Half(const MeanSum& sum) { return sum.half95().value_or(0); }

std::string Percents(const MeanSum& sum) {
  return fmt::format("{:+.1f} \u00b1 {:.1f} %", 100 * sum.mean(), 100 * Half(sum));
}

}  // namespace

std::vector<std::string> WhatIsMissing(const RouteEvidence& evidence) {
  std::vector<std::string> missing;
  const auto add = [&](const std::string& what) {
    missing.push_back(fmt::format("{}: {}", evidence.route, what));
  };
  if (evidence.decisions < kRouteDecisionsNeeded) {
    add(fmt::format("{} of the {} decisions that are needed", evidence.decisions,
                    kRouteDecisionsNeeded));
  }
  if (evidence.gain.count > 0 && evidence.gain.mean() <= kUnitRounding)
    add("splits that are predicted to cost less than those that stood");
  if (evidence.over_baseline.mean() + Half(evidence.over_baseline) < -kUnitRounding) {
    add(
        fmt::format("splits that cost no more than the baseline's: a request costs {:.3g} units "
                    "more",
                    -evidence.over_baseline.mean()));
  }
  const double error_high = std::abs(evidence.error.mean()) + Half(evidence.error);
  if (evidence.error.count == 0) {
    add("a measured response time (a signal latency_s `per: region` in the configuration)");
  } else if (evidence.error.count < kRouteMeasuredNeeded) {
    add(fmt::format("{} measured response times: there {} {}", kRouteMeasuredNeeded,
                    evidence.error.count == 1 ? "is" : "are", evidence.error.count));
  } else if (error_high > kRouteErrorAllowed) {
    add(
        fmt::format("a Model that is right within {:g} %: it predicts response times {} from those "
                    "measured",
                    100 * kRouteErrorAllowed, Percents(evidence.error)));
  }
  return missing;
}

std::optional<std::string> WhyWorse(const RouteTrial& trial) {
  const int64_t tried = trial.done + trial.failed;
  if (tried >= kRouteTrialsNeeded &&
      static_cast<double>(trial.failed) > kFailedMax * static_cast<double>(tried)) {
    return fmt::format("{}: {} of {} splits could not be set", trial.route, trial.failed, tried);
  }
  const MeanSum& beyond = trial.beyond_predicted;
  if (beyond.count >= kRouteTrialsNeeded && beyond.mean() - Half(beyond) > kRouteErrorAllowed) {
    return fmt::format("{}: after {} changes response times were {} from what was predicted",
                       trial.route, beyond.count, Percents(beyond));
  }
  return std::nullopt;
}

std::vector<std::string> WhatIsMissing(const RouteTrial& trial) {
  std::vector<std::string> missing;
  if (trial.done < kRouteTrialsNeeded) {
    missing.push_back(fmt::format("{}: {} of the {} splits set in canary that are needed",
                                  trial.route, trial.done, kRouteTrialsNeeded));
  }
  if (trial.beyond_predicted.count < kRouteTrialsNeeded) {
    missing.push_back(fmt::format(
        "{}: {} measured changes: there {} {}", trial.route, kRouteTrialsNeeded,
        trial.beyond_predicted.count == 1 ? "is" : "are", trial.beyond_predicted.count));
  }
  if (const std::optional<std::string> worse = WhyWorse(trial))
    missing.push_back("splits that do what is predicted: " + *worse);
  return missing;
}

}  // namespace rudderfish
