// SPDX-License-Identifier: Apache-2.0
#include "evaluation/judge.h"

#include <fmt/format.h>

#include <tuple>

#include "base/check.h"

namespace rudderfish {
namespace {

// Equal outcomes may be summed in another order: what is within kTie of 0 is 0.
double WithoutRounding(double value) { return value > -kTie && value < kTie ? 0 : value; }

}  // namespace

Difference DifferenceIn(const Outcomes& outcomes, int metric, int baseline) {
  const RunMatrix &own = outcomes.of(outcomes.candidate(), metric),
                  &other = outcomes.of(baseline, metric);
  const ConfidenceInterval interval = BootstrapPairedDifference(own, other, outcomes.resampling);
  return {.mean = WithoutRounding(PairedDifference(own, other)),
          .ci95 = {WithoutRounding(interval.low), WithoutRounding(interval.high)}};
}

Finding FindingOf(const JudgeRule& rule, int episodes, const ConfidenceInterval& primary,
                  std::span<const ConfidenceInterval> constraints) {
  CHECK_EQ(constraints.size(), rule.constraints.size());
  if (episodes < rule.episodes_min) return Finding::kUndecided;
  if (primary.low > kTie) return Finding::kWorse;
  bool kept = true;
  for (size_t i = 0; i < constraints.size(); ++i) {
    if (constraints[i].low > rule.constraints[i].tolerance) return Finding::kBreaksLimit;
    kept = kept && constraints[i].high <= rule.constraints[i].tolerance;
  }
  return kept && primary.high < -kTie ? Finding::kBetter : Finding::kUndecided;
}

Finding Judge(const Outcomes& outcomes, const JudgeRule& rule, int baseline) {
  // As if less were better in all of them.
  const auto interval = [&](int metric) {
    const ConfidenceInterval ci95 = DifferenceIn(outcomes, metric, baseline).ci95;
    if (outcomes.metrics[metric].better == Metric::Better::kLess) return ci95;
    return ConfidenceInterval{-ci95.high, -ci95.low};
  };
  std::vector<ConfidenceInterval> constraints;
  for (const Constraint& one : rule.constraints) {
    if (!one.most) {
      constraints.push_back(interval(one.metric));
      continue;
    }
    const ConfidenceInterval own =
        BootstrapMean(outcomes.of(outcomes.candidate(), one.metric), outcomes.resampling);
    constraints.push_back({own.low - *one.most, own.high - *one.most});
  }
  return FindingOf(rule, outcomes.episodes, interval(rule.primary), constraints);
}

int ChooseBaseline(std::span<const BaselineCandidate> policies) {
  const auto rank = [](const BaselineCandidate& one) {
    return std::tuple(one.shares_network, one.beyond, one.beyond > 0 ? 0 : one.cost);
  };
  int best = -1;
  for (int p = 0; p < static_cast<int>(policies.size()); ++p) {
    if (best < 0 || rank(policies[p]) < rank(policies[best])) best = p;
  }
  return best;
}

std::string TooFewText(int64_t count, std::string_view noun) {
  if (count >= kEpisodesForFinding) return "";
  return fmt::format("Nothing can be shown on {}: at least {} are needed.\n",
                     CountText(count, noun), kEpisodesForFinding);
}

std::string CountText(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string_view FindingName(Finding finding) {
  switch (finding) {
    case Finding::kBetter:
      return "better";
    case Finding::kWorse:
      return "worse";
    case Finding::kBreaksLimit:
      return "breaks-limit";
    case Finding::kUndecided:
      break;
  }
  return "undecided";
}

}  // namespace rudderfish
