// SPDX-License-Identifier: Apache-2.0
#include "sim/scaling_story.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "policy/registry.h"
#include "sim/scaling_evaluation.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

constexpr int kRamp = 2;  // Of the loads of the scenario.

Scenario Ramping() {
  Scenario scenario = LoadScenario(SourcePath("scenarios/redis.yaml")).value();
  auto load = std::make_shared<Load>(*scenario.load);
  load->duration = std::chrono::minutes(20);
  scenario.load = std::move(load);
  return scenario;
}

TEST(ScalingStory, TellsTheEpisodeThatIsJudged) {
  const Scenario scenario = Ramping();
  const auto policy = MakeScalingPolicy("hpa:cpu=30").value();
  const ScalingStory story = TellScaling(*policy, scenario, kRamp, 5, 1, 4);
  const std::vector<NamedScalingPolicy> policies = {
      {"hpa", {MakeScalingPolicy("hpa:cpu=30").value()}}};
  ThreadPool pool(1);
  const ScalingEvaluation judged =
      EvaluateScaling(scenario, EpisodeUse::kEvaluation, {kRamp}, policies, 2, 5, &pool, {});
  EXPECT_EQ(story.figures.requests, judged.figures[1].requests);
  EXPECT_EQ(story.figures.core_hours, judged.figures[1].core_hours);
  EXPECT_EQ(story.figures.node_hours, judged.figures[1].node_hours);
  EXPECT_EQ(story.figures.changes, judged.figures[1].changes);
  ASSERT_EQ(story.steps.size(), 20u * 4 - 1);  // Every 15 s, but at the end.
  int changes = 0;
  for (const ScalingStep& step : story.steps) changes += static_cast<int>(step.changes.size());
  EXPECT_EQ(changes, story.figures.changes);
  EXPECT_GT(changes, 0);
}

TEST(ScalingStory, SaysWhatTheModelExpectsOfOtherNumbers) {
  const auto policy = MakeScalingPolicy("hpa:cpu=30").value();
  const ScalingStory story = TellScaling(*policy, Ramping(), kRamp, 5, 1, 4);
  for (const ScalingStep& step : story.steps) {
    for (const ScaledWorkload& change : step.changes) {
      EXPECT_NE(change.before, change.after);
      EXPECT_EQ(change.allowed, change.after);
      ASSERT_EQ(change.alternatives.size(), 4u);
      EXPECT_GT(change.busy_share, 0.2);
      EXPECT_TRUE(std::ranges::is_sorted(change.alternatives, {}, &ScalingAlternative::replicas));
      // More pods, fewer late requests.
      EXPECT_TRUE(std::ranges::is_sorted(change.alternatives, std::greater<>(),
                                         &ScalingAlternative::late_share));
      for (const int count : {change.before, change.after}) {
        EXPECT_NE(std::ranges::find(change.alternatives, count, &ScalingAlternative::replicas),
                  change.alternatives.end());
      }
      // What metrics show is one interval old: about what came.
      EXPECT_NEAR(step.requests_per_s / step.moment.requests_per_s, 1, 0.3);
    }
  }
}

TEST(ScalingStory, QuotasAreWhatIsAllowed) {
  Scenario scenario = Ramping();
  auto load = std::make_shared<Load>(*scenario.load);
  load->limits.pods_max = 3;
  scenario.load = std::move(load);
  const ScalingStory story =
      TellScaling(*MakeScalingPolicy("hpa:cpu=10").value(), scenario, kRamp, 5, 1, 2);
  bool held = false;
  for (const ScalingStep& step : story.steps) {
    for (const ScaledWorkload& change : step.changes) held |= change.allowed < change.after;
  }
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace rudderfish
