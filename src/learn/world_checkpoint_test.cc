// SPDX-License-Identifier: Apache-2.0
#include "learn/world_checkpoint.h"

#include <gtest/gtest.h>

#include "learn/learner.h"
#include "nn/checkpoint.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/source_path.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

TrainingWorlds RegionsToLearn(TrainOptions* options) {
  UseRoutingDefaults(options);
  options->validation_starts = 2;
  options->routing = RoutingTraining{.variants = {"spot"},
                                     .regions = {"us-east4", "europe-west3"},
                                     .rule = "mpc",
                                     .rivals = {"mpc", "static:use=95"}};
  auto scenario =
      std::make_shared<const Scenario>(*LoadScenario(SourcePath("scenarios/multicloud-16.yaml")));
  return *TrainingWorlds::Make(std::vector{std::move(scenario)}, 0, 1, {}, {}, options->routing);
}

TEST(WorldCheckpoint, ThatOfRegionsIsReadBackWithItsVerdict) {
  TrainOptions options;
  const TrainingWorlds worlds = RegionsToLearn(&options);
  ASSERT_TRUE(IsJudged(worlds.first()));
  const std::unique_ptr<Learner> learner = MakeLearner(options, worlds.list());
  const auto net = std::make_shared<nn::CandidateNet>(learner->net());
  ThreadPool pool(1);
  const Verdicts verdicts = JudgeWorlds(worlds, options, net, &pool);
  ASSERT_TRUE(verdicts.routing.has_value());
  EXPECT_EQ(verdicts.routing->rule, "mpc");  // What was begun with is what it is.
  EXPECT_TRUE(verdicts.routing->steps_back);
  nn::SafetensorsFile file;
  DescribeWorlds(worlds, options, verdicts, &file);
  nn::AddNet(*net, &file);
  EXPECT_TRUE(CheckIsOfWorld(file, worlds.first()));
  const testing::TestFolder folder;
  const auto path = folder / "a.safetensors";
  ASSERT_TRUE(file.Write(path));
  EXPECT_EQ(VerdictOf(worlds.first(), path)->find("steps back to mpc"), 0u);
}

TEST(WorldCheckpoint, OfAnotherTaskIsRefused) {
  TrainOptions options;
  const TrainingWorlds worlds = RegionsToLearn(&options);
  nn::SafetensorsFile file;
  file.SetMetadata("task", "placement");
  EXPECT_FALSE(CheckIsOfWorld(file, worlds.first()));
}

}  // namespace
}  // namespace rudderfish
