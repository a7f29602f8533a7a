// SPDX-License-Identifier: Apache-2.0
#include "policy/neural_routing.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "nn/checkpoint.h"
#include "policy/registry.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

constexpr const char* kBegun = "mpc:use=70";

nn::SafetensorsFile FileOf(const std::optional<RoutingVerdict>& verdict) {
  nn::CandidateNet net({.widths = RegionScalingTask::kWidths, .hidden = 16});
  Rng rng(1);
  net.Initialize(&rng);
  nn::SafetensorsFile file;
  DescribeRouting(kBegun, verdict, &file);
  nn::AddNet(net, &file);
  return file;
}

TEST(NeuralRouting, ACheckpointDecidesByItsWeights) {
  const testing::TestFolder folder;
  const auto path = folder / "a.safetensors";
  ASSERT_TRUE(FileOf({}).Write(path));
  EXPECT_TRUE(LoadNeuralRouting(path).has_value());
  EXPECT_EQ(*RoutingVerdictOf(path), "");
}

TEST(NeuralRouting, SaysWhatItWasComparedWithAndStepsBack) {
  const testing::TestFolder folder;
  const auto path = folder / "a.safetensors";
  RoutingVerdict verdict{.rule = "lp:use=70", .objective = 0.9, .of_rule = 1, .difference = -10};
  ASSERT_TRUE(FileOf(verdict).Write(path));
  EXPECT_EQ(RoutingVerdictOf(path)->find("decides; compared with lp:use=70: objective 0.9000"), 0u);
  verdict.steps_back = true;
  ASSERT_TRUE(FileOf(verdict).Write(path));
  EXPECT_EQ(RoutingVerdictOf(path)->find("steps back to lp:use=70"), 0u);
  EXPECT_TRUE(LoadNeuralRouting(path).has_value());
}

TEST(NeuralRouting, RefusesACheckpointOfOtherFeaturesOrAnotherTask) {
  const testing::TestFolder folder;
  const auto path = folder / "a.safetensors";
  nn::SafetensorsFile file = FileOf({});
  file.SetMetadata("features", "0123");
  ASSERT_TRUE(file.Write(path));
  EXPECT_NE(LoadNeuralRouting(path).error().message.find("trained on other features"),
            std::string::npos);
  file.SetMetadata("task", "placement");
  ASSERT_TRUE(file.Write(path));
  EXPECT_FALSE(LoadNeuralRouting(path).has_value());
}

TEST(NeuralRouting, RefusesARuleThatIsNone) {
  const testing::TestFolder folder;
  const auto path = folder / "a.safetensors";
  nn::SafetensorsFile file = FileOf({});
  file.SetMetadata("rule", "mpc:use=700");
  ASSERT_TRUE(file.Write(path));
  EXPECT_NE(LoadNeuralRouting(path).error().message.find("a.safetensors: rule: "),
            std::string::npos);
  file.SetMetadata("steps_back_to", path.string());  // It would never end.
  ASSERT_TRUE(file.Write(path));
  EXPECT_NE(LoadNeuralRouting(path).error().message.find("and not a path"), std::string::npos);
}

TEST(NeuralRouting, BeginsOnlyWithTheRuleThatItsWeightsAreOf) {
  EXPECT_TRUE(ReadPlannedRouting("mpc:use=70,hold=2min").has_value());
  EXPECT_EQ(ReadPlannedRouting("lp").error().message, "lp: expected mpc with its options");
  EXPECT_FALSE(ReadPlannedRouting("mpc:nothing=1").has_value());
}

}  // namespace
}  // namespace rudderfish
