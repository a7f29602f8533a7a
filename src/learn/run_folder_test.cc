// SPDX-License-Identifier: Apache-2.0
#include "learn/run_folder.h"

#include <gtest/gtest.h>

#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::SmallOptions;
using testing::TestFolder;
using testing::TwoNodes;

std::string Written(const TrainOptions& options) {
  YamlWriter out;
  WriteTrainOptions(options, &out);
  return out.Take();
}

TEST(RunFolder, ConfigurationAndScenariosReadBack) {
  const TestFolder folder;
  const RunPaths paths{folder / "run"};
  EXPECT_FALSE(HasRun(paths.folder));
  const TrainOptions options = SmallOptions(Algorithm::kDqn);
  const std::vector<TrainScenario> scenarios{TwoNodes(), TwoNodes()};
  ASSERT_TRUE(
      WriteRunFolder(paths, options, {.version = "1.2", .command = "train \"a b\""}, scenarios)
          .has_value());
  EXPECT_TRUE(HasRun(paths.folder));
  EXPECT_EQ(SeedFolders(paths.folder), 0);
  const Result<RunConfig> config = ReadRunConfig(paths);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(Written(config->options), Written(options));
  EXPECT_EQ(config->provenance.version, "1.2");
  EXPECT_EQ(config->provenance.command, "train \"a b\"");
  const Result<std::vector<TrainScenario>> read = ReadRunScenarios(paths);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[1].text, testing::kTwoNodes);
  EXPECT_EQ((*read)[1].Digest(), config->scenario_digests[1]);
}

TEST(RunFolder, DigestIgnoresCommentsAndSeesNumbers) {
  TrainScenario same = TwoNodes(), other = same;
  const auto parsed = [](const std::string& text) {
    return std::make_shared<const Scenario>(*ParseScenario(text, "x.yaml"));
  };
  same.scenario = parsed("# A comment.\n" + same.text);
  std::string text = other.text;
  text.replace(text.find("10ms to 90ms"), 12, "10ms to 91ms");
  other.scenario = parsed(text);
  EXPECT_EQ(same.Digest(), TwoNodes().Digest());
  EXPECT_NE(other.Digest(), TwoNodes().Digest());
}

}  // namespace
}  // namespace rudderfish
