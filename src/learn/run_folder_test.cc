// SPDX-License-Identifier: Apache-2.0
#include "learn/run_folder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "learn/run_tables.h"
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
}

TEST(TrainOptions, UnknownFieldIsRefusedWithItsPlace) {
  YamlMap map = *ParseYaml("algorithm: ppo\nseed: 1\nppo: {epochz: 2}\n", "config.yaml")->AsMap();
  const Result<TrainOptions> options = ReadTrainOptions(&map);
  ASSERT_FALSE(options.has_value());
  EXPECT_NE(options.error().message.find("config.yaml:3"), std::string::npos) << options.error().message;
  EXPECT_NE(options.error().message.find("epochs"), std::string::npos) << options.error().message;
}

TEST(TrainOptions, EveryBoundIsNamed) {
  const auto refusal = [](auto&& change, Algorithm algorithm) {
    TrainOptions options = SmallOptions(algorithm);
    change(&options);
    const Result<void> result = CheckTrainOptions(options);
    return result ? std::string() : result.error().message;
  };
  const Algorithm ppo = Algorithm::kPpo, dqn = Algorithm::kDqn;
  EXPECT_EQ(refusal([](TrainOptions*) {}, ppo), "");
  EXPECT_EQ(refusal([](TrainOptions*) {}, dqn), "");
  EXPECT_EQ(refusal([](TrainOptions* o) { o->threads = 0; }, ppo), "threads: expected 1 to 1024, found 0");
  EXPECT_EQ(refusal([](TrainOptions* o) { o->hidden = 20; }, ppo), "network.hidden: expected a multiple of 16, found 20");
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->steps = 0, o->seconds = 0; }, ppo).starts_with("time: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->rollout.envs = 18; }, ppo).starts_with("rollout.envs: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->ppo.minibatch = 256; }, ppo).starts_with("ppo.minibatch: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->ppo.learning_rate_start = NAN; }, ppo)
                  .starts_with("ppo.learning_rate_start: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->dqn.n_step = 9; }, dqn).starts_with("dqn.n_step: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->dqn.minibatch = 100; }, dqn).starts_with("dqn.minibatch: "));
  EXPECT_TRUE(refusal([](TrainOptions* o) { o->evaluate_every = 0; }, dqn).starts_with("evaluation.every: "));
}

TEST(Algorithm, UnknownNameIsRefusedWithTheNearest) {
  EXPECT_EQ(*AlgorithmNamed("dqn"), Algorithm::kDqn);
  const Result<Algorithm> unknown = AlgorithmNamed("pppo");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("did you mean `ppo`"), std::string::npos) << unknown.error().message;
}

TEST(RunFolder, ConfigurationAndScenariosReadBack) {
  const TestFolder folder;
  const RunPaths paths{folder / "run"};
  EXPECT_FALSE(HasRun(paths.folder));
  const TrainOptions options = SmallOptions(Algorithm::kDqn);
  const std::vector<TrainScenario> scenarios{TwoNodes(), TwoNodes()};
  ASSERT_TRUE(WriteRunFolder(paths, options, {.version = "1.2", .command = "train \"a b\""}, scenarios).has_value());
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

TEST(MetricsTable, RowsReadBackAndEmptyCellsStayEmpty) {
  const TestFolder folder;
  const auto path = folder / "metrics.csv";
  Result<MetricsTable> table = MetricsTable::Open(path, 0);
  ASSERT_TRUE(table.has_value());
  ASSERT_TRUE(table->Append({.iteration = 1, .env_steps = 128, .return_mean = 0.25, .grad_norm = 1e-9}).has_value());
  ASSERT_TRUE(table->Append({.iteration = 2, .env_steps = 256, .eval_final_ms = 222.5, .eval_moves = 3}).has_value());
  ASSERT_TRUE(table->Flush().has_value());
  EXPECT_EQ(ReadFile(path)->substr(0, 76),
            "iteration,env_steps,episodes,return_mean,final_ms_mean,moves_mean,policy_los");
  const Result<std::vector<MetricsRow>> rows = ReadMetrics(path);
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].return_mean, 0.25);
  EXPECT_EQ((*rows)[0].grad_norm, 1e-9);
  EXPECT_TRUE(std::isnan((*rows)[0].eval_final_ms));
  EXPECT_EQ((*rows)[1].env_steps, 256);
  EXPECT_EQ((*rows)[1].eval_final_ms, 222.5);
  EXPECT_EQ((*rows)[1].eval_moves, 3);
}

TEST(MetricsTable, ReopenedAtALengthForgetsWhatCameAfter) {
  const TestFolder folder;
  const auto path = folder / "metrics.csv";
  int64_t length = 0;
  {
    Result<MetricsTable> table = MetricsTable::Open(path, 0);
    ASSERT_TRUE(table->Append({.iteration = 1}).has_value());
    length = table->size();
    ASSERT_TRUE(table->Append({.iteration = 2}).has_value());
  }
  Result<MetricsTable> table = MetricsTable::Open(path, length);
  ASSERT_TRUE(table->Append({.iteration = 3}).has_value());
  ASSERT_TRUE(table->Flush().has_value());
  const Result<std::vector<MetricsRow>> rows = ReadMetrics(path);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[1].iteration, 3);
}

TEST(TimingTable, TornLastLineIsPassedOverAndOthersAreRefused) {
  const TestFolder folder;
  const auto path = folder / "timing.csv";
  {
    Result<TimingTable> table = TimingTable::Open(path, 0);
    ASSERT_TRUE(table->Append({.iteration = 1, .seconds = 0.5}).has_value());
    ASSERT_TRUE(table->Append({.iteration = 2, .seconds = 1.5}).has_value());
  }
  const std::string whole = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(path, whole + "3,99,0.").has_value());
  const Result<std::vector<TimingRow>> rows = ReadTiming(path);
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->size(), 2u);
  EXPECT_EQ(*TimingBytesUpTo(path, 2), static_cast<int64_t>(whole.size()));
  EXPECT_EQ(*TimingBytesUpTo(path, 1), static_cast<int64_t>(whole.find("\n2,")) + 1);
  EXPECT_EQ(*TimingBytesUpTo(folder / "none.csv", 1), 0);

  ASSERT_TRUE(WriteFileAtomically(path, whole + "3,x,0.1,1,1,1,1\n").has_value());
  const Result<std::vector<TimingRow>> damaged = ReadTiming(path);
  ASSERT_FALSE(damaged.has_value());
  EXPECT_NE(damaged.error().message.find("timing.csv:4"), std::string::npos) << damaged.error().message;
}

TEST(LearningCurve, JoinsEvaluationsWithTheirTimes) {
  const TestFolder folder;
  const RunPaths paths{folder / ""};
  {
    Result<MetricsTable> metrics = MetricsTable::Open(paths.metrics(), 0);
    Result<TimingTable> timing = TimingTable::Open(paths.timing(), 0);
    ASSERT_TRUE(metrics->Append({.iteration = 1, .env_steps = 10}).has_value());
    ASSERT_TRUE(metrics->Append({.iteration = 2, .env_steps = 20, .eval_final_ms = 300, .eval_return = 1, .eval_moves = 4})
                    .has_value());
    ASSERT_TRUE(metrics->Append({.iteration = 3, .env_steps = 30, .eval_final_ms = 200}).has_value());
    ASSERT_TRUE(timing->Append({.iteration = 2, .seconds = 0.75}).has_value());
  }
  const Result<std::vector<std::vector<CurvePoint>>> curves = ReadLearningCurves(paths.folder);
  ASSERT_TRUE(curves.has_value()) << curves.error().message;
  ASSERT_EQ(curves->size(), 1u);
  const std::vector<CurvePoint>& curve = (*curves)[0];
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0].env_steps, 20);
  EXPECT_EQ(curve[0].seconds, 0.75);
  EXPECT_EQ(curve[0].final_ms, 300);
  EXPECT_EQ(curve[0].moves, 4);
  EXPECT_TRUE(std::isnan(curve[1].seconds));
}

}  // namespace
}  // namespace rudderfish
