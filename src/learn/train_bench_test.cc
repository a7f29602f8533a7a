// SPDX-License-Identifier: Apache-2.0
#include "learn/train_bench.h"

#include <gtest/gtest.h>

#include "tests/support/small_shop.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

TEST(TrainBench, FiguresFitTogether) {
  const TrainingWorlds worlds = testing::WorldsOf(testing::TwoNodes().scenario);
  for (const Algorithm algorithm : {Algorithm::kPpo, Algorithm::kDqn}) {
    TrainOptions options = testing::SmallOptions(algorithm);
    options.threads = 2;
    const TrainBench bench = MeasureTraining(options, worlds.list(), 0.05);
    EXPECT_GT(bench.env_steps_per_second, 0);
    EXPECT_EQ(bench.threads, 2);
    EXPECT_GT(bench.mflop_per_sample, 0);
    EXPECT_GT(bench.mflop_per_step, bench.mflop_per_sample);  // Acting and learning.
    EXPECT_GT(bench.dense_share, 0);
    EXPECT_LE(bench.dense_share, 1);
  }
  EXPECT_GT(MeasureEnvStepsPerSecond(worlds.list(), 1, 0.05), 0);
}

TEST(TrainBench, MeasuresScalingToo) {
  const std::shared_ptr<const Scenario> scenarios[] = {testing::SmallShop().scenario};
  const Result<TrainingWorlds> worlds = TrainingWorlds::Make(scenarios, 0, 1, ScalingTraining());
  ASSERT_TRUE(worlds.has_value()) << worlds.error().message;
  EXPECT_GT(MeasureEnvStepsPerSecond(worlds->list(), 1, 0.05), 0);
  EXPECT_GT(MeasureScalingStepsPerSecond(*worlds->first().scaling, 1, 0.05), 0);
}

}  // namespace
}  // namespace rudderfish
