// SPDX-License-Identifier: Apache-2.0
#include "learn/training_worlds.h"

#include <gtest/gtest.h>

#include "tests/support/shipped_scenario.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::ShippedScenario;
using testing::TwoNodes;

std::vector<int> NodeCounts(std::span<const TrainingWorld> worlds) {
  std::vector<int> counts;
  for (const TrainingWorld& at : worlds) counts.push_back(at.world->scenario().node_count());
  return counts;
}

TEST(TrainingWorlds, RefusesTasksWithDifferentFeatures) {
  std::string text(testing::kTwoNodes);
  text.replace(text.find("max_steps: 12"), 13, "features: reach-agent");
  Result<Scenario> blind = ParseScenario(text, "blind.yaml");
  ASSERT_TRUE(blind.has_value());
  const std::shared_ptr<const Scenario> scenarios[] = {
      TwoNodes().scenario, std::make_shared<const Scenario>(*std::move(blind))};
  const Result<TrainingWorlds> worlds = TrainingWorlds::Make(scenarios);
  ASSERT_FALSE(worlds.has_value());
  EXPECT_NE(worlds.error().message.find("different features"), std::string::npos)
      << worlds.error().message;
}

TEST(TrainingWorlds, OneInSoManyIsTwiceAsLargeAndOriginalsStay) {
  const std::shared_ptr<const Scenario> scenarios[] = {ShippedScenario("continuum-7x21"),
                                                       ShippedScenario("continuum-12x28")};
  const Result<TrainingWorlds> worlds = TrainingWorlds::Make(scenarios, 3);
  ASSERT_TRUE(worlds.has_value());
  const std::vector<int> originals = NodeCounts(worlds->originals());
  ASSERT_EQ(originals.size(), 2u);
  const std::vector<int> counts = NodeCounts(worlds->list());
  ASSERT_EQ(counts.size(), 6u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(counts[i], originals[i % 2]);
  for (int i = 4; i < 6; ++i) EXPECT_GT(counts[i], 3 * originals[i % 2] / 2);
  EXPECT_EQ(NodeCounts(TrainingWorlds::Make(scenarios)->list()), originals);
}

TEST(TrainingWorlds, EpisodesStartAsTheScenarioSaysUnderItsLaw) {
  const TrainingWorlds worlds = testing::WorldsOf(TwoNodes().scenario);
  const TrainingWorld& at = worlds.list()[0];
  EXPECT_EQ(at.law.name, "reach");
  EXPECT_EQ(at.task->max_steps(), 12);
}

}  // namespace
}  // namespace rudderfish
