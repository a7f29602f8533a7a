// SPDX-License-Identifier: Apache-2.0
#include "learn/train_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::SmallOptions;

std::string Written(const TrainOptions& options) {
  YamlWriter out;
  WriteTrainOptions(options, &out);
  return out.Take();
}

TrainOptions ReadBack(const std::string& text) {
  YamlMap map = *ParseYaml(text, "config.yaml")->AsMap();
  const Result<TrainOptions> options = ReadTrainOptions(&map);
  EXPECT_TRUE(options.has_value()) << options.error().message;
  EXPECT_TRUE(map.Finish().has_value());
  return options.value_or(TrainOptions{});
}

TEST(TrainOptions, ReadBackWhatWasWritten) {
  TrainOptions options = SmallOptions(Algorithm::kPpo);
  options.seed = 77;
  options.rounds = 2;
  options.rollout.lambda = 0.123f;
  options.ppo.learning_rate_end = 3e-5f;
  const TrainOptions ppo = ReadBack(Written(options));
  EXPECT_EQ(Written(ppo), Written(options));
  EXPECT_EQ(ppo.seed, 77u);
  EXPECT_EQ(ppo.rollout.lambda, 0.123f);
  EXPECT_EQ(ppo.ppo.learning_rate_end, 3e-5f);

  options = SmallOptions(Algorithm::kA2c);
  options.encoder = nn::Encoder::kDeepSets;
  options.ppo.value_weight = 0.125f;
  options.scaling = {.rows = ScalingRows::kCallGraph};
  const TrainOptions a2c = ReadBack(Written(options));
  EXPECT_EQ(Written(a2c), Written(options));
  EXPECT_EQ(a2c.encoder, nn::Encoder::kDeepSets);
  EXPECT_EQ(a2c.ppo.value_weight, 0.125f);
  EXPECT_EQ(a2c.scaling->rows, ScalingRows::kCallGraph);

  options = SmallOptions(Algorithm::kDqn);
  options.steps = 0;
  options.seconds = 2.5;
  options.dqn.n_step = 2;
  options.dqn.replay.bytes_max = int64_t{1} << 34;
  const TrainOptions dqn = ReadBack(Written(options));
  EXPECT_EQ(Written(dqn), Written(options));
  EXPECT_EQ(dqn.seconds, 2.5);
  EXPECT_FALSE(dqn.by_steps());
  EXPECT_EQ(dqn.dqn.n_step, 2);
  EXPECT_EQ(dqn.dqn.replay.bytes_max, int64_t{1} << 34);

  options = SmallOptions(Algorithm::kEvolution);
  options.es.pairs = 5;
  options.es.deviation = 0.125f;
  const TrainOptions es = ReadBack(Written(options));
  EXPECT_EQ(Written(es), Written(options));
  EXPECT_EQ(es.es.pairs, 5);
  EXPECT_EQ(es.es.deviation, 0.125f);
}

TEST(TrainOptions, UnknownFieldIsRefusedWithItsPlace) {
  YamlMap map = *ParseYaml("algorithm: ppo\nseed: 1\nppo: {epochz: 2}\n", "config.yaml")->AsMap();
  const Result<TrainOptions> options = ReadTrainOptions(&map);
  ASSERT_FALSE(options.has_value());
  EXPECT_NE(options.error().message.find("config.yaml:3"), std::string::npos)
      << options.error().message;
  EXPECT_NE(options.error().message.find("epochs"), std::string::npos) << options.error().message;
}

TEST(TrainOptions, EveryBoundIsNamed) {
  const auto refusal = [](auto&& change, Algorithm algorithm) {
    TrainOptions options = SmallOptions(algorithm);
    change(&options);
    const Result<void> result = CheckTrainOptions(options);
    return result ? std::string() : result.error().message;
  };
  const Algorithm ppo = Algorithm::kPpo, dqn = Algorithm::kDqn, a2c = Algorithm::kA2c;
  EXPECT_EQ(refusal([](TrainOptions*) {}, ppo), "");
  EXPECT_EQ(refusal([](TrainOptions*) {}, dqn), "");
  EXPECT_EQ(refusal([](TrainOptions*) {}, a2c), "");
  EXPECT_EQ(refusal([](TrainOptions* o) { o->rollout.steps = 7; }, a2c),
            "rollout.envs times rollout.steps: expected a multiple of 64, found 112");
  EXPECT_EQ(refusal([](TrainOptions* o) { o->threads = 0; }, ppo),
            "threads: expected 1 to 1024, found 0");
  EXPECT_EQ(refusal([](TrainOptions* o) { o->hidden = 20; }, ppo),
            "network.hidden: expected a multiple of 16, found 20");
  EXPECT_TRUE(
      refusal([](TrainOptions* o) { o->steps = 0, o->seconds = 0; }, ppo).starts_with("time: "));
  EXPECT_TRUE(
      refusal([](TrainOptions* o) { o->rollout.envs = 18; }, ppo).starts_with("rollout.envs: "));
  EXPECT_TRUE(
      refusal([](TrainOptions* o) { o->ppo.minibatch = 256; }, ppo).starts_with("ppo.minibatch: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->ppo.learning_rate_start = NAN; }, ppo)
                  .starts_with("ppo.learning_rate_start: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->dqn.n_step = 9; }, dqn).starts_with("dqn.n_step: "));
  EXPECT_TRUE(
      refusal([](TrainOptions* o) { o->dqn.minibatch = 100; }, dqn).starts_with("dqn.minibatch: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->dqn.target_every = 0; }, dqn)
                  .starts_with("dqn.target_every: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->evaluate_every = 0; }, dqn)
                  .starts_with("evaluation.every: "));
}

TEST(Algorithm, UnknownNameIsRefusedWithTheNearest) {
  EXPECT_EQ(*AlgorithmNamed("dqn"), Algorithm::kDqn);
  const Result<Algorithm> unknown = AlgorithmNamed("pppo");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("did you mean `ppo`"), std::string::npos)
      << unknown.error().message;
}

}  // namespace
}  // namespace rudderfish
