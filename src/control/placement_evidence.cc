// SPDX-License-Identifier: Apache-2.0
#include "control/placement_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/evidence.h"
#include "control/placement_comparison.h"

namespace rudderfish {
namespace {

constexpr double kPartsPerMillion = 1e6;
constexpr int64_t kBadNeeded = 5;    // Fewer say nothing of a share.
constexpr double kLevel = 0.05;      // Of all looks, two-sided.
constexpr double kMixed = 2;         // Pods; the bound is narrowest at eight times as many.
constexpr double kRounding = 1e-12;  // Of a mean.

double ShareOf(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// How many standard errors a difference of groups of these sizes may lie from 0 by chance, whenever
// it is looked at: u(v) / sqrt(v) of the mixture, with v / rho = `ratio`.
double QuantileOfAnyLook(int64_t a, int64_t b) {
  // What a difference is known by, in pods: half of either of two groups of one size.
  const double pods = 1 / (1 / static_cast<double>(a) + 1 / static_cast<double>(b));
  const double ratio = pods / kMixed;
  return std::sqrt((1 + 1 / ratio) * std::log((1 + ratio) / (kLevel * kLevel)));
}

// By the wider of Welch's and the pooled standard error: a small group of skewed values often
// shows less variance than there is.
bool IsMeanWorse(const MeanSum& a, const MeanSum& b) {
  if (std::min(a.count, b.count) < kTrialNeeded) return false;
  const auto n = static_cast<double>(a.count), m = static_cast<double>(b.count);
  const double welch = a.variance() / n + b.variance() / m;
  const double pooled =
      ((n - 1) * a.variance() + (m - 1) * b.variance()) / (n + m - 2) * (1 / n + 1 / m);
  const double half = QuantileOfAnyLook(a.count, b.count) * std::sqrt(std::max(welch, pooled));
  return a.mean() - b.mean() > half + kRounding;
}

struct Interval {
  double low = 0, high = 0;
};

// Of a share, by Wilson's score.
Interval WilsonInterval(double share, int64_t count, double quantile) {
  const auto n = static_cast<double>(count);
  const double square = quantile * quantile;
  const double middle = share + square / (2 * n);
  const double half = quantile * std::sqrt(share * (1 - share) / n + square / (4 * n * n));
  return {(middle - half) / (1 + square / n), (middle + half) / (1 + square / n)};
}

bool IsShareWorse(const GroupEvidence& a, const GroupEvidence& b) {
  if (a.bad < kBadNeeded || std::min(a.pods, b.pods) < kTrialNeeded) return false;
  const double quantile = QuantileOfAnyLook(a.pods, b.pods);
  const double bad = ShareOf(a.bad, a.pods), usual = ShareOf(b.bad, b.pods);
  const double below = bad - WilsonInterval(bad, a.pods, quantile).low;
  const double above = WilsonInterval(usual, b.pods, quantile).high - usual;
  return bad - usual > std::hypot(below, above);
}

}  // namespace

std::string_view NameOf(ComparisonGroup group) {
  switch (group) {
    case ComparisonGroup::kShadow:
      return "shadow";
    case ComparisonGroup::kAdvice:
      return "advice";
    case ComparisonGroup::kCanary:
      return "canary";
    case ComparisonGroup::kEnforced:
      return "enforced";
    case ComparisonGroup::kControl:
      break;
  }
  return "control";
}

std::string_view NameOf(RulesVerdict verdict) {
  switch (verdict) {
    case RulesVerdict::kEqual:
      return "equal";
    case RulesVerdict::kDifferent:
      return "different";
    case RulesVerdict::kUnclear:
      return "unclear";
    case RulesVerdict::kUnmodelled:
      break;
  }
  return "unmodelled";
}

ComparisonGroup ComparisonGroupNamed(std::string_view name) {
  for (const auto group : {ComparisonGroup::kShadow, ComparisonGroup::kAdvice,
                           ComparisonGroup::kCanary, ComparisonGroup::kEnforced}) {
    if (NameOf(group) == name) return group;
  }
  return ComparisonGroup::kControl;
}

RulesVerdict RulesVerdictNamed(std::string_view name) {
  for (const auto verdict :
       {RulesVerdict::kEqual, RulesVerdict::kDifferent, RulesVerdict::kUnclear}) {
    if (NameOf(verdict) == name) return verdict;
  }
  return RulesVerdict::kUnmodelled;
}

void MeanSum::Add(double value) {
  ++count;
  sum += value;
  squares += value * value;
}

double MeanSum::variance() const {
  if (count < 2) return 0;
  const auto n = static_cast<double>(count);
  return std::max(0.0, (squares - sum * sum / n) / (n - 1));
}

std::optional<double> MeanSum::half95() const {
  if (count < 2) return std::nullopt;
  return StudentQuantile(count - 1) * std::sqrt(variance() / static_cast<double>(count));
}

std::string InMillionths(const MeanSum& sum) {
  if (sum.count == 0) return "none";
  const std::optional<double> half = sum.half95();
  return fmt::format("{:+.5g} \u00b1 {} ppm", sum.mean() * kPartsPerMillion,
                     half ? fmt::format("{:.2g}", *half * kPartsPerMillion) : "?");
}

std::vector<std::string> WhatIsMissing(Mode to, const ShadowEvidence& shadow,
                                       const TrialEvidence& trial) {
  std::vector<std::string> missing;
  if (to <= Mode::kShadow) return missing;
  if (shadow.decisions() < kShadowedNeeded) {
    missing.push_back(fmt::format("{} of the {} shadowed decisions that are needed",
                                  shadow.decisions(), kShadowedNeeded));
  }
  if (shadow.different > 0) {
    const auto named = static_cast<int64_t>(shadow.differences.size());
    missing.push_back(fmt::format(
        "rules that are equal in all of them: {} differ (comparison{} {}{}), the newest: {}",
        shadow.different, shadow.different == 1 ? "" : "s", fmt::join(shadow.differences, ", "),
        shadow.different > named ? ", ..." : "", shadow.difference));
  }
  const double gain_low = shadow.gain.mean() - shadow.gain.half95().value_or(0);
  const double error_high = std::abs(shadow.error.mean()) + shadow.error.half95().value_or(0);
  if (shadow.error.count == 0) {
    missing.emplace_back(
        "a measured error of the Model: nothing was measured after a decision yet");
  } else if (shadow.error.count < kErrorsNeeded) {
    missing.push_back(fmt::format("{} measured errors of the Model: there {} {}", kErrorsNeeded,
                                  shadow.error.count == 1 ? "is" : "are", shadow.error.count));
  } else if (gain_low <= error_high) {
    missing.push_back(
        fmt::format("a predicted gain beyond the Model's measured error: {} a pod, against an "
                    "error of {}",
                    InMillionths(shadow.gain), InMillionths(shadow.error)));
  }
  if (to < Mode::kEnforce) return missing;
  const int64_t tried = std::min(trial.canary.change.count, trial.control.change.count);
  if (tried < kTrialNeeded) {
    missing.push_back(
        fmt::format("{} pods measured in the canary and in its control group: there are {} and {}",
                    kTrialNeeded, trial.canary.change.count, trial.control.change.count));
  } else if (const auto worse = WhyWorse(trial)) {
    missing.push_back("a canary that does no worse than its control group: " + *worse);
  }
  return missing;
}

std::optional<std::string> WhyWorse(const TrialEvidence& trial) {
  const GroupEvidence& canary = trial.canary;
  const GroupEvidence& control = trial.control;
  if (IsShareWorse(canary, control)) {
    return fmt::format("{} of its {} pods failed or were evicted, of the control group's {} of {}",
                       canary.bad, canary.pods, control.bad, control.pods);
  }
  if (!IsMeanWorse(canary.change, control.change)) return std::nullopt;
  return fmt::format("a pod changes the objective by {}, in the control group by {}",
                     InMillionths(canary.change), InMillionths(control.change));
}

}  // namespace rudderfish
