// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "learn/learner.h"
#include "learn/rollout.h"
#include "learn/trainer.h"
#include "learn/training_worlds.h"
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
  TrainOptions options = testing::SmallShopOptions();
  options.algorithm = recipe.algorithm;
  options.scaling = {.rows = recipe.rows};
  options.encoder = recipe.encoder;
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
                         ::testing::Values(Recipe{.encoder = nn::Encoder::kGatv2},
                                           Recipe{.encoder = nn::Encoder::kDeepSets},
                                           Recipe{.algorithm = Algorithm::kA2c},
                                           Recipe{.algorithm = Algorithm::kRecurrentPpo}),
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

// A sequence is as long as a rollout or shorter: what is remembered at its beginning was kept.
TEST(RecurrentPpo, LearnsFromWhatItRememberedWhenItActed) {
  const testing::TestFolder folder;
  const Recipe recipe{.algorithm = Algorithm::kRecurrentPpo};
  TrainJob job = JobOf(recipe, folder / "run");
  Result<TrainingWorlds> worlds =
      TrainingWorlds::Make({{testing::SmallShop().scenario}}, 0, 1, job.options.scaling);
  ASSERT_TRUE(worlds.has_value()) << worlds.error().message;
  for (const int sequence : {1, 4, 16}) {
    job.options.ppo.sequence = sequence;
    job.options.ppo.epochs = 1;
    ASSERT_TRUE(CheckTrainOptions(job.options).has_value());
    ThreadPool pool(1);
    const std::unique_ptr<Learner> learner = MakeLearner(job.options, worlds->list());
    for (uint64_t iteration = 1; iteration <= 3; ++iteration) {
      // One minibatch is all: where it learns, nothing has changed since it acted.
      const IterationFigures figures = learner->Iterate(iteration, 0, &pool);
      EXPECT_NEAR(figures.approx_kl, 0, 1e-6) << sequence;
      EXPECT_EQ(figures.clip_fraction, 0) << sequence;
    }
  }
}

TEST(RecurrentPpo, NothingIsRememberedWhereAnEpisodeBegins) {
  const testing::TestFolder folder;
  TrainJob job = JobOf({.algorithm = Algorithm::kRecurrentPpo}, folder / "run");
  Result<TrainingWorlds> worlds =
      TrainingWorlds::Make({{testing::SmallShop().scenario}}, 0, 1, job.options.scaling);
  ASSERT_TRUE(worlds.has_value()) << worlds.error().message;
  job.options.rollout.episode_steps_max = 5;
  const nn::CandidateNet net = MakeNet(job.options, worlds->first().widths());
  VectorEnv envs(worlds->list(), 1, job.options.rollout, net.shape().memory());
  ThreadPool pool(1);
  for (uint64_t iteration = 0; iteration < 2; ++iteration) {
    const std::vector<float> before = envs.Memory();
    envs.Collect(net, iteration, &pool);
    const SliceRollout& r = envs.slice(0);
    int fresh = 0;
    for (int t = 0; t < 16 * 2; ++t) {
      const std::vector<float> row(r.memory.begin() + t * 16, r.memory.begin() + (t + 1) * 16);
      const bool is_empty = std::all_of(row.begin(), row.end(), [](float m) { return m == 0; });
      if (t < 2) {
        EXPECT_EQ(row, std::vector<float>(before.begin() + t * 16, before.begin() + (t + 1) * 16));
      } else {
        EXPECT_EQ(is_empty, r.ended[t - 2] != 0) << t;
        fresh += is_empty;
      }
    }
    EXPECT_GE(fresh, 4);
  }
}

TEST(RecurrentPpo, IsRefusedWhereQuestionsDoNotFollowEachOther) {
  const testing::TestFolder folder;
  TrainJob job = JobOf({.algorithm = Algorithm::kRecurrentPpo}, folder / "run");
  const auto refusal = [&](auto&& change) {
    TrainOptions options = job.options;
    change(&options);
    const Result<void> result = CheckTrainOptions(options);
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(refusal([](TrainOptions*) {}), "");
  EXPECT_NE(refusal([](TrainOptions* o) { o->scaling.reset(); }).find("learns to scale"),
            std::string::npos);
  EXPECT_EQ(refusal([](TrainOptions* o) { o->ppo.sequence = 7; }),
            "recurrent-ppo.sequence: expected a part of 64, found 7");
  EXPECT_EQ(refusal([](TrainOptions* o) { o->ppo.sequence = 32; }),
            "rollout.steps: expected a multiple of 32, found 16");
}

}  // namespace
}  // namespace rudderfish
