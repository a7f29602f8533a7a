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
constexpr int64_t kBadNeeded = 5;             // Fewer say nothing of a share.
constexpr double kNormalQuantile = 1.959964;  // Two-sided, 95 %.

double ShareOf(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Half the 95 % interval of a difference of means (Welch), its freedom bounded from below by the
// smaller group's.
double HalfOfDifference(const MeanSum& a, const MeanSum& b) {
  const double variance =
      a.variance() / static_cast<double>(a.count) + b.variance() / static_cast<double>(b.count);
  return StudentQuantile(std::min(a.count, b.count) - 1) * std::sqrt(variance);
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
    missing.push_back(fmt::format("rules that are equal in all of them: {} differ, the newest: {}",
                                  shadow.different, shadow.difference));
  }
  const double gain_low = shadow.gain.mean() - shadow.gain.half95().value_or(0);
  const double error_high = std::abs(shadow.error.mean()) + shadow.error.half95().value_or(0);
  if (shadow.error.count < 2) {
    missing.emplace_back(
        "a measured error of the Model: nothing was measured after a decision yet");
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
  if (canary.bad >= kBadNeeded && control.pods > 0) {
    const double bad = ShareOf(canary.bad, canary.pods), usual = ShareOf(control.bad, control.pods);
    const double variance = bad * (1 - bad) / static_cast<double>(canary.pods) +
                            usual * (1 - usual) / static_cast<double>(control.pods);
    if (bad - usual > kNormalQuantile * std::sqrt(variance)) {
      return fmt::format(
          "{} of its {} pods failed or were evicted, of the control group's {} of {}", canary.bad,
          canary.pods, control.bad, control.pods);
    }
  }
  if (std::min(canary.change.count, control.change.count) < kTrialNeeded) return std::nullopt;
  const double difference = canary.change.mean() - control.change.mean();
  if (difference <= HalfOfDifference(canary.change, control.change)) return std::nullopt;
  return fmt::format("a pod changes the objective by {}, in the control group by {}",
                     InMillionths(canary.change), InMillionths(control.change));
}

}  // namespace rudderfish
