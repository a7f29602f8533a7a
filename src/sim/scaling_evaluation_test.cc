// SPDX-License-Identifier: Apache-2.0
#include "sim/scaling_evaluation.h"

#include <gtest/gtest.h>

#include "policy/registry.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

TEST(ScalingEvaluation, HoldingChangesNothingOnTheModel) {
  const Scenario scenario = LoadScenario(SourcePath("scenarios/redis.yaml")).value();
  const std::vector<NamedScalingPolicy> policies = {{"hold", {MakeScalingPolicy("hold").value()}}};
  ThreadPool pool(1);
  const ScalingEvaluation evaluation = EvaluateScaling(
      scenario, EpisodeUse::kEvaluation, {0}, policies, 2, 1, &pool, {}, ScalingGround::kModel);
  ASSERT_EQ(evaluation.figures.size(), 2u);
  for (const ScalingFigures& one : evaluation.figures) {
    EXPECT_EQ(one.changes, 0);
    EXPECT_GT(one.requests, 0);
    EXPECT_GT(one.core_hours, 0);
  }
}

}  // namespace
}  // namespace rudderfish
