// SPDX-License-Identifier: Apache-2.0
#include "learn/trainer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "nn/checkpoint.h"
#include "policy/checkpoint.h"
#include "policy/neural.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::SmallOptions;
using testing::TestFolder;
using testing::TwoNodes;

TrainJob JobIn(const std::filesystem::path& folder, Algorithm algorithm) {
  return {.scenarios = {TwoNodes()},
          .options = SmallOptions(algorithm),
          .folder = folder,
          .provenance = {.version = "0.0.0", .command = "train"}};
}

// Trains; stops once `stop_after` iterations of this process are done.
Result<TrainSummary> Train(const TrainJob& job, int stop_after = 1 << 30) {
  TRY_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::Open(job));
  std::atomic<bool> stop = stop_after == 0;
  int done = 0;
  return trainer->Run(&stop, [&](const TrainProgress&) { stop = ++done >= stop_after; });
}

std::string Content(const std::filesystem::path& path) {
  const Result<std::string> content = ReadFile(path);
  EXPECT_TRUE(content.has_value()) << content.error().message;
  return content.value_or("");
}

void ExpectSameResults(const RunPaths& a, const RunPaths& b) {
  EXPECT_EQ(Content(a.metrics()), Content(b.metrics()));
  EXPECT_TRUE(Content(a.last()) == Content(b.last())) << "last.safetensors differ";
  EXPECT_TRUE(Content(a.best()) == Content(b.best())) << "best.safetensors differ";
}

class TrainerOf : public ::testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, TrainerOf,
                         ::testing::Values(Algorithm::kPpo, Algorithm::kDqn, Algorithm::kA2c),
                         [](const auto& info) { return std::string(AlgorithmName(info.param)); });

TEST_P(TrainerOf, WritesTheSameBytesForAnyNumberOfThreads) {
  const TestFolder folder;
  for (int threads : {1, 2, 3}) {
    TrainJob job = JobIn(folder / std::to_string(threads), GetParam());
    job.options.threads = threads;
    const Result<TrainSummary> summary = Train(job);
    ASSERT_TRUE(summary.has_value()) << summary.error().message;
    EXPECT_EQ(summary->iterations, 12);
    EXPECT_EQ(summary->env_steps, 128 * 12);
  }
  ExpectSameResults({folder / "1"}, {folder / "2"});
  ExpectSameResults({folder / "1"}, {folder / "3"});
}

TEST_P(TrainerOf, StoppedAndResumedWritesTheSameBytesAsNeverStopped) {
  const TestFolder folder;
  ASSERT_TRUE(Train(JobIn(folder / "whole", GetParam())).has_value());
  TrainJob job = JobIn(folder / "parts", GetParam());
  for (const int stop_after : {0, 1, 3, 2, 4}) {
    const Result<TrainSummary> part = Train(job, stop_after);
    ASSERT_TRUE(part.has_value()) << part.error().message;
    EXPECT_EQ(part->ending, TrainEnding::kStopped);
    job.resume = Resume::kYes;
  }
  const Result<TrainSummary> rest = Train(job);
  ASSERT_TRUE(rest.has_value()) << rest.error().message;
  EXPECT_EQ(rest->ending, TrainEnding::kFinished);
  ExpectSameResults({folder / "whole"}, {folder / "parts"});
  EXPECT_EQ(ReadTiming(RunPaths{folder / "parts"}.timing())->size(), 12u);

  const Result<TrainSummary> again = Train(job);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->ending, TrainEnding::kWasFinished);
  ExpectSameResults({folder / "whole"}, {folder / "parts"});
}

// Rows beyond the checkpoint, as they are left where a process dies between two checkpoints.
TEST_P(TrainerOf, RowsAfterTheCheckpointAreRewritten) {
  const TestFolder folder;
  const RunPaths whole{folder / "whole"}, cut{folder / "cut"};
  ASSERT_TRUE(Train(JobIn(whole.folder, GetParam())).has_value());
  TrainJob job = JobIn(cut.folder, GetParam());
  ASSERT_TRUE(Train(job, 5).has_value());
  const std::string checkpoint = Content(cut.last());
  job.resume = Resume::kYes;
  ASSERT_TRUE(Train(job, 4).has_value());
  ASSERT_TRUE(WriteFileAtomically(cut.last(), checkpoint).has_value());
  ASSERT_TRUE(Train(job).has_value());
  ExpectSameResults(whole, cut);
}

// The child trains until it is killed; whatever it leaves must load, and go on to the same end.
TEST_P(TrainerOf, KilledAtAnyMomentLeavesCheckpointsThatLoadAndARunThatGoesOn) {
  const TestFolder folder;
  const RunPaths whole{folder / "whole"}, killed{folder / "killed"};
  TrainJob job = JobIn(whole.folder, GetParam());
  job.options.steps = 128 * 40;
  job.options.save_every_seconds = 0;
  ASSERT_TRUE(Train(job).has_value());
  job.folder = killed.folder;
  TrainingWorlds worlds = testing::WorldsOf(TwoNodes().scenario);
  Rng rng(static_cast<uint64_t>(GetParam()) + 1);
  int kills = 0, loaded = 0;
  for (bool done = false; !done && kills < 200;) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      job.resume = HasRun(job.folder) ? Resume::kYes : Resume::kNo;
      _exit(Train(job).has_value() ? 0 : 1);
    }
    usleep(rng.Below(60'000) + 1000 * kills);  // Slower machines get there too.
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    done = WIFEXITED(status);
    ASSERT_TRUE(!done || WEXITSTATUS(status) == 0);
    kills += !done;
    for (const auto& path : {killed.last(), killed.best()}) {
      if (!std::filesystem::exists(path)) continue;
      const auto policy = LoadNeuralPolicy(path, worlds.task());
      ASSERT_TRUE(policy.has_value()) << policy.error().message;
      ++loaded;
    }
  }
  EXPECT_GT(kills, 0);
  EXPECT_GT(loaded, 1);
  job.resume = HasRun(job.folder) ? Resume::kYes : Resume::kNo;
  ASSERT_TRUE(Train(job).has_value());
  ExpectSameResults(whole, killed);
}

TEST_P(TrainerOf, CheckpointsSayWhatTheyAreAndLoadAsPolicies) {
  const TestFolder folder;
  const RunPaths paths{folder / "run"};
  const Result<TrainSummary> summary = Train(JobIn(paths.folder, GetParam()));
  ASSERT_TRUE(summary.has_value());
  const Result<nn::SafetensorsFile> best = nn::SafetensorsFile::Read(paths.best());
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(*best->Metadata("algorithm"), AlgorithmName(GetParam()));
  EXPECT_EQ(*best->Metadata("seed"), "5");
  EXPECT_EQ(*best->Metadata("scenario"), "two-nodes");
  EXPECT_EQ(*best->Metadata("version"), "0.0.0");
  EXPECT_EQ(*best->Metadata("iteration"), std::to_string(summary->best_iteration));
  EXPECT_EQ(*best->Metadata("scenario_sha256"), TwoNodes().Digest());
  const TrainingWorlds worlds = testing::WorldsOf(TwoNodes().scenario);
  EXPECT_EQ(*CheckpointOf(paths.folder), paths.best());
  EXPECT_TRUE(LoadNeuralPolicy(paths.folder, worlds.task()).has_value());
}

TEST(Trainer, BestIsTheLowestObjectiveEvaluated) {
  const TestFolder folder;
  const RunPaths paths{folder / "run"};
  const Result<TrainSummary> summary = Train(JobIn(paths.folder, Algorithm::kPpo));
  ASSERT_TRUE(summary.has_value());
  const std::vector<MetricsRow> rows = *ReadMetrics(paths.metrics());
  ASSERT_EQ(rows.size(), 12u);
  double highest_return = -INFINITY, final_ms = 0;
  int64_t best = 0;
  for (const MetricsRow& row : rows) {
    EXPECT_EQ(std::isnan(row.eval_return), row.iteration % 3 != 0);
    if (std::isnan(row.eval_return) || row.eval_return <= highest_return) continue;
    highest_return = row.eval_return;
    final_ms = row.eval_final_ms;
    best = row.iteration;
  }
  // The objective is what the return leaves of the start's latency.
  EXPECT_EQ(summary->best_iteration, best);
  EXPECT_NEAR(summary->best_final_ms, final_ms, 1e-6);
}

TEST(Trainer, FolderWithARunIsRefusedUnlessResumed) {
  const TestFolder folder;
  const TrainJob job = JobIn(folder / "run", Algorithm::kPpo);
  ASSERT_TRUE(Train(job, 1).has_value());
  const Result<TrainSummary> again = Train(job);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(again.error().message.find("--resume"), std::string::npos) << again.error().message;

  TrainJob nothing = JobIn(folder / "other", Algorithm::kPpo);
  nothing.resume = Resume::kYes;
  const Result<TrainSummary> none = Train(nothing);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

TEST(Trainer, FolderIsAnothersUntilItsTrainerIsGone) {
  const TestFolder folder;
  TrainJob job = JobIn(folder / "run", Algorithm::kPpo);
  {
    const auto first = Trainer::Open(job);
    ASSERT_TRUE(first.has_value());
    for (const Resume resume : {Resume::kNo, Resume::kYes}) {
      job.resume = resume;
      EXPECT_EQ(Trainer::Open(job).error().code, ErrorCode::kConflict);
    }
    EXPECT_EQ(TrainSeeds(job, 2).error().code, ErrorCode::kConflict);
  }
  EXPECT_TRUE(Trainer::Open(job).has_value());
}

TEST(Trainer, ResumingAnotherRunIsRefusedByTheNameOfWhatDiffers) {
  const TestFolder folder;
  TrainJob job = JobIn(folder / "run", Algorithm::kPpo);
  ASSERT_TRUE(Train(job, 1).has_value());
  job.resume = Resume::kYes;
  const auto refusal = [&](auto&& change) {
    TrainJob other = job;
    change(&other);
    const Result<TrainSummary> result = Train(other);
    return result ? std::string("resumed") : result.error().message;
  };
  EXPECT_NE(refusal([](TrainJob* j) { j->options.seed = 6; }).find("`seed: 5`, not `seed: 6`"),
            std::string::npos);
  EXPECT_NE(refusal([](TrainJob* j) {
              j->options.encoder = nn::Encoder::kGcn;
            }).find("encoder: relational}`, not `network: {hidden: 16, rounds: 1, encoder: gcn}`"),
            std::string::npos);
  EXPECT_NE(
      refusal([](TrainJob* j) { j->options.algorithm = Algorithm::kDqn; }).find("algorithm: ppo"),
      std::string::npos);
  EXPECT_NE(refusal([](TrainJob* j) { j->options.steps = 0; }).find("an end by steps"),
            std::string::npos);
  EXPECT_NE(refusal([](TrainJob* j) { j->options.ppo.clip = 0.3f; }).find("clip: 0.2"),
            std::string::npos);
  EXPECT_NE(refusal([](TrainJob* j) { j->provenance.version = "9"; }).find("version: 0.0.0"),
            std::string::npos);
  std::string text(testing::kTwoNodes);
  text.replace(text.find("count: 1, cpu: 4"), 16, "count: 2, cpu: 4");
  EXPECT_NE(refusal([&](TrainJob* j) {
              j->scenarios = {{std::make_shared<const Scenario>(*ParseScenario(text, "x")), text}};
            }).find("other scenarios"),
            std::string::npos);
  EXPECT_EQ(refusal([](TrainJob* j) { j->options.threads = 2; }), "resumed");
}

TEST(Trainer, FolderAloneIsEnoughToResume) {
  const TestFolder folder;
  ASSERT_TRUE(Train(JobIn(folder / "whole", Algorithm::kPpo)).has_value());
  ASSERT_TRUE(Train(JobIn(folder / "parts", Algorithm::kPpo), 4).has_value());
  const Result<TrainJob> job = TrainJob::ToResume(folder / "parts");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  ASSERT_TRUE(Train(*job).has_value());
  ExpectSameResults({folder / "whole"}, {folder / "parts"});
  EXPECT_FALSE(TrainJob::ToResume(folder / "none").has_value());
}

TEST(Trainer, FinishedRunGoesOnWhenGivenMoreSteps) {
  const TestFolder folder;
  TrainJob job = JobIn(folder / "run", Algorithm::kPpo);
  ASSERT_TRUE(Train(job).has_value());
  job.resume = Resume::kYes;
  job.options.steps = 128 * 15;
  const Result<TrainSummary> more = Train(job);
  ASSERT_TRUE(more.has_value()) << more.error().message;
  EXPECT_EQ(more->ending, TrainEnding::kFinished);
  EXPECT_EQ(more->iterations, 15);
  EXPECT_EQ(ReadRunConfig({folder / "run"})->options.steps, 128 * 15);
}

// The clock stands still but for a second after each iteration.
TEST(Trainer, RunByTheClockEndsInTimeAndCountsEarlierProcesses) {
  const TestFolder folder;
  TrainJob job = JobIn(folder / "run", Algorithm::kPpo);
  job.options.steps = 0;
  job.options.seconds = 10;
  const auto train = [&](int iterations) {
    ManualClock clock;
    job.clock = &clock;
    job.start = clock.Now();
    clock.Advance(std::chrono::seconds(1));  // Spent before training.
    const auto trainer = Trainer::Open(job);
    EXPECT_TRUE(trainer.has_value());
    std::atomic<bool> stop = false;
    int done = 0;
    const Result<TrainSummary> summary = (*trainer)->Run(&stop, [&](const TrainProgress&) {
      clock.Advance(std::chrono::seconds(1));
      stop = ++done == iterations;
    });
    EXPECT_TRUE(summary.has_value());
    return *summary;
  };
  const TrainSummary first = train(4);
  EXPECT_EQ(first.ending, TrainEnding::kStopped);
  EXPECT_DOUBLE_EQ(first.seconds, 5);
  job.resume = Resume::kYes;
  const TrainSummary second = train(100);
  EXPECT_EQ(second.ending, TrainEnding::kFinished);
  const double last_iteration_at = ReadTiming(RunPaths{folder / "run"}.timing())->back().seconds;
  EXPECT_GT(last_iteration_at, 9);
  EXPECT_LE(last_iteration_at, 10);
  EXPECT_EQ(train(100).ending, TrainEnding::kWasFinished);
  const std::vector<MetricsRow> rows = *ReadMetrics(RunPaths{folder / "run"}.metrics());
  EXPECT_FALSE(std::isnan(rows.back().eval_final_ms));
  EXPECT_LT(rows.back().learning_rate, rows.front().learning_rate);
}

TEST(Trainer, WeightsThatAreNoNumbersEndTheRunAndKeepTheCheckpoint) {
  const TestFolder folder;
  const RunPaths paths{folder / "run"};
  TrainJob job = JobIn(paths.folder, Algorithm::kPpo);
  ASSERT_TRUE(Train(job, 3).has_value());
  nn::SafetensorsFile changed;
  const nn::SafetensorsFile file = *nn::SafetensorsFile::Read(paths.last());
  for (const auto& [key, value] : file.metadata()) changed.SetMetadata(key, value);
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.type == nn::ElementType::kF32) {
      std::vector<float> values = *file.Values<float>(name);
      if (name.starts_with("net.")) std::fill(values.begin(), values.end(), 1e30f);
      changed.Add(name, tensor.shape, std::span<const float>(values));
    } else if (tensor.type == nn::ElementType::kI32) {
      changed.Add(name, tensor.shape, std::span<const int32_t>(*file.Values<int32_t>(name)));
    } else if (tensor.type == nn::ElementType::kI64) {
      changed.Add(name, tensor.shape, std::span<const int64_t>(*file.Values<int64_t>(name)));
    } else if (tensor.type == nn::ElementType::kU64) {
      changed.Add(name, tensor.shape, std::span<const uint64_t>(*file.Values<uint64_t>(name)));
    } else {
      changed.Add(name, tensor.shape, std::span<const double>(*file.Values<double>(name)));
    }
  }
  ASSERT_TRUE(changed.Write(paths.last()).has_value());
  const std::string before = Content(paths.last());
  job.resume = Resume::kYes;
  const Result<TrainSummary> result = Train(job);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("went astray in iteration 4"), std::string::npos)
      << result.error().message;
  EXPECT_TRUE(Content(paths.last()) == before);
  EXPECT_NE(Content(paths.log()).find("went astray"), std::string::npos);
}

// A limit on the size of files stands in for a full disk.
TEST(Trainer, FullDiskIsAnErrorAndKeepsTheCheckpoint) {
  const TestFolder folder;
  const RunPaths paths{folder / "run"};
  TrainJob job = JobIn(paths.folder, Algorithm::kPpo);
  ASSERT_TRUE(Train(job, 3).has_value());
  const std::string before = Content(paths.last());
  job.resume = Resume::kYes;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8000, 8000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Result<TrainSummary> result = Train(job);
    _exit(!result && result.error().code == ErrorCode::kUnavailable ? 17 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
  EXPECT_TRUE(Content(paths.last()) == before);
  for (const auto& entry : std::filesystem::directory_iterator(paths.folder)) {
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  }
  ASSERT_TRUE(Train(job).has_value());
}

TEST(Trainer, DamagedCheckpointIsRefusedByName) {
  const TestFolder folder;
  const RunPaths paths{folder / "run"};
  TrainJob job = JobIn(paths.folder, Algorithm::kPpo);
  ASSERT_TRUE(Train(job, 3).has_value());
  const std::string content = Content(paths.last());
  ASSERT_TRUE(WriteFileAtomically(paths.last(), content.substr(0, content.size() / 2)).has_value());
  job.resume = Resume::kYes;
  const Result<TrainSummary> result = Train(job);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("last.safetensors"), std::string::npos)
      << result.error().message;
}

TEST(Trainer, WritesACurveForTensorBoard) {
  const TestFolder folder;
  ASSERT_TRUE(Train(JobIn(folder / "run", Algorithm::kPpo)).has_value());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run")) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    ++files;
    const std::string content = Content(entry.path());
    for (const char* tag :
         {"charts/episodic_return", "charts/SPS", "losses/policy_loss", "losses/value_loss",
          "losses/entropy", "losses/approx_kl", "losses/clipfrac", "losses/explained_variance"}) {
      EXPECT_NE(content.find(tag), std::string::npos) << tag;
    }
  }
  EXPECT_EQ(files, 1);
}

TEST(TrainSeeds, EverySeedHasAFolderOfItsOwnAndGoesOnAlone) {
  const TestFolder folder;
  TrainJob job = JobIn(folder / "seeds", Algorithm::kPpo);
  std::atomic<bool> stop = false;
  const auto stop_in_second = [&](const TrainProgress& report) {
    EXPECT_EQ(report.seed_count, 3);
    stop = report.seed_number == 2 && report.iteration == 4;
  };
  const auto part = TrainSeeds(job, 3, &stop, stop_in_second);
  ASSERT_TRUE(part.has_value()) << part.error().message;
  ASSERT_EQ(part->size(), 2u);
  EXPECT_EQ((*part)[1].ending, TrainEnding::kStopped);
  EXPECT_FALSE(TrainSeeds(job, 3).has_value());

  job.resume = Resume::kYes;
  const auto rest = TrainSeeds(job, 3);
  ASSERT_TRUE(rest.has_value()) << rest.error().message;
  ASSERT_EQ(rest->size(), 3u);
  EXPECT_EQ((*rest)[0].ending, TrainEnding::kWasFinished);
  EXPECT_EQ((*rest)[1].iterations, 12);
  EXPECT_EQ((*rest)[2].seed, 7u);
  EXPECT_EQ(SeedFolders(folder / "seeds"), 3);

  TrainJob more = JobIn(folder / "more", Algorithm::kPpo);
  more.options.from = (folder / "seeds").string();
  EXPECT_NE(TrainSeeds(more, 4).error().message.find("has 3 seeds, too few for --seeds 4"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "more"));

  TrainJob alone = JobIn(folder / "alone", Algorithm::kPpo);
  alone.options.seed = 6;
  ASSERT_TRUE(Train(alone).has_value());
  ExpectSameResults(RunPaths{folder / "seeds"}.seed(2), {folder / "alone"});
  EXPECT_EQ(ReadLearningCurves(folder / "seeds")->size(), 3u);
  const std::string summary = Content(RunPaths{folder / "seeds"}.summary());
  EXPECT_EQ(std::count(summary.begin(), summary.end(), '\n'), 4);
  EXPECT_NE(summary.find("\n7,seed-3,12,1536,"), std::string::npos) << summary;
}

TEST(Trainer, MixtureOfScenariosTrainsOneNetwork) {
  const TestFolder folder;
  TrainJob job = JobIn(folder / "run", Algorithm::kPpo);
  std::string text(testing::kTwoNodes);
  text.replace(text.find("count: 1, cpu: 4"), 16, "count: 2, cpu: 4");
  job.scenarios.push_back({std::make_shared<const Scenario>(*ParseScenario(text, "x")), text});
  ASSERT_TRUE(Train(job, 2).has_value());
  const Result<TrainJob> resumed = TrainJob::ToResume(job.folder);
  ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
  EXPECT_EQ(resumed->scenarios.size(), 2u);
  ASSERT_TRUE(Train(*resumed).has_value());
  EXPECT_EQ(*nn::SafetensorsFile::Read(RunPaths{job.folder}.last())->Metadata("scenario"),
            "two-nodes,two-nodes");
}

}  // namespace
}  // namespace rudderfish
