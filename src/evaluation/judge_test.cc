// SPDX-License-Identifier: Apache-2.0
#include "evaluation/judge.h"

#include <gtest/gtest.h>

#include "evaluation/comparison.h"
#include "evaluation/placement_comparison.h"
#include "evaluation/scaling_comparison.h"
#include "tests/support/small_evaluation.h"

namespace rudderfish {
namespace {

// How much lower the candidate is than the baseline in every episode, and what follows. Violations
// are in points above the baseline's; only an application under load has them.
struct Case {
  double lower;
  double violations;
  Finding others, scaling;
};

constexpr Case kCases[] = {
    {1, 0, Finding::kBetter, Finding::kBetter},
    {1, .05, Finding::kBetter, Finding::kBetter},
    {1, 5, Finding::kBetter, Finding::kBreaksLimit},
    {0, 0, Finding::kUndecided, Finding::kUndecided},
    {0, 5, Finding::kUndecided, Finding::kBreaksLimit},
    {-1, 0, Finding::kWorse, Finding::kWorse},
    {-1, -5, Finding::kWorse, Finding::kWorse},
};

Outcomes Moved(int episodes, const Case& one) {
  const std::vector<double> baseline(episodes, 50), candidate(episodes, 50 - one.lower);
  return OutcomesOf(testing::MadeUpEvaluation({{"greedy", {baseline}}, {"learned", {candidate}}}));
}

Outcomes Placed(int episodes, const Case& one) {
  PlacementEvaluation evaluation{.seed = 1, .nodes = 1, .episodes = episodes};
  for (const double objective : {50.0, 50 - one.lower}) {
    LifecycleMetrics metrics;
    metrics.seconds = 1;
    metrics.objective_s = objective;
    evaluation.policies.push_back({.name = objective < 50 ? "a" : "b",
                                   .episodes = std::vector<LifecycleMetrics>(episodes, metrics)});
  }
  return OutcomesOf(evaluation);
}

Outcomes Scaled(int episodes, const Case& one) {
  ScalingEvaluation evaluation{.scenario = "shop", .episodes = episodes, .loads = {"ramp"}};
  for (int p = 0; p < 2; ++p) {
    evaluation.policies.push_back({.name = p == 0 ? "hpa" : "learned", .first = p});
    for (int i = 0; i < episodes; ++i) {
      const double points = 10 + (p == 0 ? 0 : one.violations);
      evaluation.figures.push_back({.requests = 10'000,
                                    .violations = static_cast<int64_t>(100 * points),
                                    .core_hours = 50 - (p == 0 ? 0 : one.lower)});
    }
  }
  return OutcomesOf(evaluation, 0);
}

TEST(Judge, EveryWorldNeedsTheSameEvidence) {
  for (const int episodes : {1, 2, 5, 6, 20}) {
    for (const Case& one : kCases) {
      const bool enough = episodes >= 6;
      const Finding others = enough ? one.others : Finding::kUndecided;
      EXPECT_EQ(Judge(Moved(episodes, one), {}, 0), others) << episodes << " " << one.lower;
      EXPECT_EQ(Judge(Placed(episodes, one), {}, 0), others) << episodes << " " << one.lower;
      EXPECT_EQ(Judge(Scaled(episodes, one), ScalingRule(), 0),
                enough ? one.scaling : Finding::kUndecided)
          << episodes << " " << one.lower << " " << one.violations;
    }
  }
}

TEST(Judge, WhatMayBeEitherIsUndecided) {
  const JudgeRule rule{.constraints = {{.metric = 1, .tolerance = .001}}};
  const auto finding = [&](ConfidenceInterval primary, ConfidenceInterval limit) {
    return FindingOf(rule, 6, primary, std::span(&limit, 1));
  };
  EXPECT_EQ(finding({-2, -1}, {-.1, .0009}), Finding::kBetter);
  EXPECT_EQ(finding({-2, 1}, {-.1, .0009}), Finding::kUndecided);
  EXPECT_EQ(finding({-2, -1}, {-.1, .002}), Finding::kUndecided);
  EXPECT_EQ(finding({-2, 1}, {.002, .003}), Finding::kBreaksLimit);
  EXPECT_EQ(finding({1, 2}, {.002, .003}), Finding::kWorse);
}

TEST(Judge, TheBaselineIsTheCheapestThatKeepsTheLimits) {
  const std::vector<BaselineCandidate> some = {{.beyond = 1, .cost = 1}, {.cost = 3}, {.cost = 2}};
  EXPECT_EQ(ChooseBaseline(some), 2);
  const std::vector<BaselineCandidate> none = {{.beyond = 2, .cost = 1}, {.beyond = 1, .cost = 3}};
  EXPECT_EQ(ChooseBaseline(none), 1);
  EXPECT_EQ(ChooseBaseline({}), -1);
}

TEST(Judge, WhatHoldsTheCandidatesNetworkIsNoBaselineWhereThereIsAnother) {
  const std::vector<BaselineCandidate> some = {{.cost = 1, .shares_network = true},
                                               {.beyond = 1, .cost = 3}};
  EXPECT_EQ(ChooseBaseline(some), 1);
  EXPECT_EQ(ChooseBaseline({some.data(), 1}), 0);
}

}  // namespace
}  // namespace rudderfish
