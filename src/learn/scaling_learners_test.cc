// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "learn/trainer.h"
#include "policy/neural_scaling.h"
#include "tests/support/small_shop.h"
#include "tests/support/toy_training.h"

// Every way to learn to scale keeps the promises of a run: the same bytes for any number of
// threads and after a stop, a checkpoint that says what it is and is a policy.

namespace rudderfish {
namespace {

struct Recipe {
  Algorithm algorithm = Algorithm::kPpo;
  ScalingRows rows = ScalingRows::kCallGraph;
  nn::Encoder encoder = nn::Encoder::kRelational;
};

TrainJob JobOf(const Recipe& recipe, const std::filesystem::path& folder) {
  TrainOptions options{.algorithm = recipe.algorithm};
  UseScalingDefaults(&options);
  options.scaling = {.rows = recipe.rows};
  options.encoder = recipe.encoder;
  options.steps = 32 * 6;
  options.seed = 5;
  options.hidden = 16;
  options.evaluate_every = 64;
  options.validation_starts = 4;
  options.save_every_seconds = 1e6;
  options.rollout.envs = 4;
  options.rollout.steps = 16;
  options.rollout.envs_per_slice = 2;
  options.ppo.minibatch = 64;
  return {.scenarios = {testing::SmallShop()},
          .options = options,
          .folder = folder,
          .provenance = {.version = "0.0.0", .command = "train"}};
}

Result<TrainSummary> RunJob(const TrainJob& job, int stop_after = 1 << 30) {
  TRY_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::Open(job));
  std::atomic<bool> stop = false;
  int done = 0;
  return trainer->Run(&stop, [&](const TrainProgress&) { stop = ++done >= stop_after; });
}

class ScalingLearners : public ::testing::TestWithParam<Recipe> {
 protected:
  void ExpectSameRun(const std::filesystem::path& a, const std::filesystem::path& b) {
    for (const char* file : {"metrics.csv", "last.safetensors", "best.safetensors"}) {
      const Result<std::string> first = ReadFile(a / file), second = ReadFile(b / file);
      ASSERT_TRUE(first.has_value() && second.has_value()) << file;
      EXPECT_TRUE(*first == *second) << file;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Recipes, ScalingLearners,
                         ::testing::Values(Recipe{}, Recipe{.encoder = nn::Encoder::kGcn},
                                           Recipe{.encoder = nn::Encoder::kGatv2},
                                           Recipe{.encoder = nn::Encoder::kDeepSets},
                                           Recipe{.encoder = nn::Encoder::kMlp},
                                           Recipe{.algorithm = Algorithm::kA2c}),
                         [](const auto& info) {
                           std::string name = std::string(AlgorithmName(info.param.algorithm)) +
                                              "_" +
                                              std::string(nn::EncoderName(info.param.encoder));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(ScalingLearners, WriteTheSameBytesForAnyNumberOfThreadsAndAfterAStop) {
  const testing::TestFolder folder;
  ASSERT_TRUE(RunJob(JobOf(GetParam(), folder / "whole")).has_value());
  TrainJob threads = JobOf(GetParam(), folder / "threads");
  threads.options.threads = 3;
  ASSERT_TRUE(RunJob(threads).has_value());
  ExpectSameRun(folder / "whole", folder / "threads");

  const Result<TrainSummary> part = RunJob(JobOf(GetParam(), folder / "parts"), 1);
  ASSERT_TRUE(part.has_value()) << part.error().message;
  EXPECT_EQ(part->ending, TrainEnding::kStopped);
  Result<TrainJob> resumed = TrainJob::ToResume(folder / "parts");
  ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
  EXPECT_EQ(resumed->options.encoder, GetParam().encoder);
  EXPECT_EQ(resumed->options.scaling->rows, GetParam().rows);
  const Result<TrainSummary> rest = RunJob(*resumed);
  ASSERT_TRUE(rest.has_value()) << rest.error().message;
  ExpectSameRun(folder / "whole", folder / "parts");

  const Result<std::unique_ptr<ScalingPolicy>> policy = LoadNeuralScaling(folder / "whole");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const nn::SafetensorsFile file =
      nn::SafetensorsFile::Read(folder / "whole" / "best.safetensors").value();
  EXPECT_EQ(file.Metadata("encoder").value(), nn::EncoderName(GetParam().encoder));
}

}  // namespace
}  // namespace rudderfish
