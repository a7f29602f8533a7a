// SPDX-License-Identifier: Apache-2.0
#include "learn/scaling_preset_env.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "learn/learner.h"
#include "learn/trainer.h"
#include "learn/training_worlds.h"
#include "learn/validation.h"
#include "policy/neural_scaling.h"
#include "policy/neural_scaling_preset.h"
#include "policy/registry.h"
#include "tests/support/count_allocations.h"
#include "tests/support/small_shop.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

ScalingPresetWorld PresetShop(ScalingPreset preset) {
  return ScalingPresetWorld::Make(testing::SmallShop().scenario, {0, 1}, preset).value();
}

// An environment that restarts where an episode ends, with random choices.
class PresetShopPlay {
 public:
  PresetShopPlay(const ScalingPresetWorld& world, uint64_t seed)
      : env_(world, 3, 0, ScalingPresetTask::kEpisodeSteps), rng_(seed) {
    env_.Reset(0);
  }

  int Draw() { return static_cast<int>(rng_.Below(static_cast<uint32_t>(env_.candidate_count()))); }
  StepResult Step(int choice) {
    const StepResult result = env_.Step(choice);
    if (result.truncated) env_.Reset();
    return result;
  }
  ScalingPresetEnv& env() { return env_; }

 private:
  ScalingPresetEnv env_;
  Rng rng_;
};

// What gym-hpa's code would say of what it observes, by its formulas.
double DesiredByHand(const GymHpaReading& reading, double cpu_target, int memory_target) {
  const double by_cpu = std::ceil(reading.cpu_millis / cpu_target);
  const double by_memory = std::ceil(reading.memory_mib / memory_target);
  return std::clamp(std::ceil(0.7 * by_cpu + 0.3 * by_memory), 1.0, 10.0);
}

TEST(ScalingPresetEnv, PaysForDeploymentsThatHaveWhatIsDesired) {
  const ScalingPresetWorld world = PresetShop(ScalingPreset::kGymHpaCost);
  ScalingPresetEnv env(world, 3, 0, 1 << 20);
  env.ResetTo(1, 7);
  Rng rng(1);
  int beyond = 0, right = 0;
  for (StepResult result; !result.truncated;) {
    const auto choice = static_cast<int>(rng.Below(30));
    const GymHpaMove move = GymHpaPairMove(choice / 15, choice % 15);
    const int pods = env.sight().readings[move.deployment].pods + move.delta;
    result = env.Step(choice);
    const auto& after = env.sight().readings;
    if (pods < 1 || pods > 10) {
      EXPECT_EQ(result.reward, -1);
      ++beyond;
      continue;
    }
    EXPECT_EQ(after[move.deployment].pods, pods);
    // web requests 500 m, db 1000 m; both 64 MiB.
    const int expected = (after[0].pods == DesiredByHand(after[0], 375, 48)) +
                         (after[1].pods == DesiredByHand(after[1], 750, 48));
    EXPECT_EQ(result.reward, expected);
    right += expected;
  }
  EXPECT_GT(beyond, 5);
  EXPECT_GT(right, 0);
}

TEST(ScalingPresetEnv, PaysLessTheLatencyOfTheInterval) {
  const ScalingPresetWorld world = PresetShop(ScalingPreset::kGymHpaLatency);
  ScalingPresetEnv env(world, 3, 0, 1 << 20);
  env.ResetTo(1, 7);
  LoadOutcome before = env.model().outcome();
  double fastest = 1e9, slowest = 0;
  for (StepResult result; !result.truncated;) {
    // Pods go as long as there are any: requests wait.
    result = env.Step(15 + 8);
    const LoadOutcome passed = env.model().outcome() - before;
    before = env.model().outcome();
    const double ms = 1000 * passed.response_sum_s / passed.requests;
    EXPECT_DOUBLE_EQ(env.sight().readings[0].latency_ms, ms);
    EXPECT_DOUBLE_EQ(env.sight().readings[1].latency_ms, ms);
    fastest = std::min(fastest, ms);
    slowest = std::max(slowest, ms);
    const bool beyond = result.reward == -3000;
    if (!beyond) {
      EXPECT_DOUBLE_EQ(result.reward, -std::min(ms, 3000.0));
    }
  }
  EXPECT_LT(fastest, 120);
  EXPECT_GT(slowest, 3000);
}

TEST(ScalingPresetEnv, PaysForComingNearerToTheSlo) {
  const ScalingPresetWorld world = PresetShop(ScalingPreset::kGraphGymHpaSlo);
  ScalingPresetEnv env(world, 3, 0, 1 << 20);
  env.ResetTo(1, 7);
  const auto distance = [&] {
    const int pods = env.sight().readings[0].pods + env.sight().readings[1].pods;
    const double p95_ms = 1000 * env.model().response(0).Quantile(0.95);
    EXPECT_NEAR(env.p95_ms(), p95_ms, 1e-3 * p95_ms);
    return 2 * std::clamp((env.p95_ms() - 300) / 300, 0.0, 1.0) + std::min(pods / 44.0, 1.0);
  };
  double before = distance();
  Rng rng(2);
  int worse = 0, better = 0, beyond = 0;
  for (StepResult result; !result.truncated;) {
    const auto choice = static_cast<int>(rng.Below(13));
    const GymHpaMove move = GymHpaFlatMove(choice);
    const int pods = env.model().replicas(move.deployment + 1) + move.delta;  // The client is 0.
    result = env.Step(choice);
    if (pods < 1 || pods > 10) {
      EXPECT_EQ(result.reward, -0.3);  // And what it is compared with stays.
      ++beyond;
      continue;
    }
    const double now = distance();
    EXPECT_DOUBLE_EQ(result.reward, (before - now) / std::max(before, now));
    (now > before ? worse : better) += now != before;
    before = now;
  }
  EXPECT_GT(beyond, 0);
  EXPECT_GT(worse, 3);
  EXPECT_GT(better, 3);
}

// As metrics are in an evaluation: replicas of now, what was used an interval ago.
TEST(ScalingPresetEnv, SeesUseAnIntervalLate) {
  const ScalingPresetWorld world = PresetShop(ScalingPreset::kGymHpaCost);
  ScalingPresetEnv env(world, 3, 0, 1 << 20);
  env.ResetTo(1, 7);
  for (int i = 0; i < 20; ++i) {
    const double busy = env.model().busy_slots(2);  // Of db, in the last five seconds.
    const int pods = env.sight().readings[1].pods;
    env.Step(15 + 1);
    EXPECT_EQ(env.sight().readings[1].pods, std::min(pods + 1, 10));
    // Each of two slots takes half of the pod's core; of the whole interval, so about.
    EXPECT_NEAR(env.sight().readings[1].cpu_millis / (busy * 500), 1, 0.3) << i;
  }
}

TEST(ScalingPresetEnv, AnEpisodeEndsAfterTwentyFiveStepsAndTouchesNothing) {
  const ScalingPresetWorld world = PresetShop(ScalingPreset::kGymHpaCost);
  EXPECT_EQ(world.decisions, 38);  // Ten minutes of 15 s, but for the first and the last.
  PresetShopPlay play(world, 5);
  std::vector<int> lengths;
  int length = 0;
  for (int step = 1; step <= 2 * world.decisions; ++step) {
    const uint64_t episode = play.env().cursor().episode;
    const int pods = play.env().sight().readings[0].pods;
    ++length;
    if (!play.Step(16).truncated) continue;
    lengths.push_back(length);
    length = 0;
    EXPECT_NE(play.env().cursor().episode, episode);
    if (lengths.size() % 2 == 1) {
      EXPECT_EQ(play.env().sight().readings[0].pods, pods);
    }
  }
  EXPECT_THAT(lengths, ::testing::ElementsAre(25, 13, 25, 13));
}

TEST(ScalingPresetEnv, RestoredItGoesOnAlikeThroughEpisodesAndLoads) {
  for (const ScalingPreset preset : {ScalingPreset::kGymHpaCost, ScalingPreset::kGraphGymHpaSlo}) {
    const ScalingPresetWorld world = PresetShop(preset);
    PresetShopPlay play(world, 2);
    for (int i = 0; i < 107; ++i) play.Step(play.Draw());
    ScalingPresetEnv other(world, 3, 0, ScalingPresetTask::kEpisodeSteps);
    ASSERT_TRUE(other.Restore(play.env().cursor()).has_value());
    EXPECT_EQ(other.cursor().episode, play.env().cursor().episode);
    EnvCursor wrong = play.env().cursor();
    wrong.moves.back().to = 99;
    GraphBatch a{.widths = ScalingPresetTask::kWidths}, b = a;
    for (int i = 0; i < 60; ++i) {
      const int choice = play.Draw();
      play.env().Encode(&a);
      other.Encode(&b);
      const StepResult first = play.Step(choice), second = other.Step(choice);
      if (second.truncated) other.Reset();
      EXPECT_EQ(first.reward, second.reward);
      EXPECT_EQ(first.truncated, second.truncated) << i;
    }
    EXPECT_TRUE(a.workloads == b.workloads);
    EXPECT_THAT(other.Restore(wrong).error().message, HasSubstr("cannot be repeated"));
  }
}

// As in an evaluation: pods beyond the quota are left out, and the reward does not punish them.
TEST(ScalingPresetEnv, KeepsTheQuotaOfTheApplication) {
  auto scenario = std::make_shared<Scenario>(*testing::SmallShop().scenario);
  auto load = std::make_shared<Load>(*scenario->load);
  load->limits.pods_max = 9;
  scenario->load = load;
  const ScalingPresetWorld world =
      ScalingPresetWorld::Make(scenario, {0}, ScalingPreset::kGymHpaCost).value();
  ScalingPresetEnv env(world, 3, 0, 1 << 20);
  env.ResetTo(0, 7);
  const auto& readings = env.sight().readings;
  const int before = readings[0].pods;
  ASSERT_LE(before + 7, 10);
  ASSERT_GT(before + readings[1].pods + 7, 9);
  EXPECT_GE(env.Step(7).reward, 0);
  EXPECT_GT(readings[0].pods, before);
  EXPECT_EQ(readings[0].pods + readings[1].pods, 9);
}

TEST(ScalingPresetEnv, StepAllocatesNothing) {
  const ScalingPresetWorld world = PresetShop(ScalingPreset::kGraphGymHpaSlo);
  ScalingPresetEnv env(world, 3, 0, 1 << 20);
  GraphBatch batch{.widths = ScalingPresetTask::kWidths};
  const auto play = [&] {
    int steps = 0;
    for (StepResult result; !result.truncated; ++steps) {
      batch.Clear();
      env.Encode(&batch);
      result = env.Step(steps * 5 % 13);
    }
  };
  env.ResetTo(1, 4);
  play();
  env.ResetTo(1, 4);
  const long before = allocation_count;
  play();
  EXPECT_EQ(allocation_count - before, 0);
}

TEST(ScalingPresetWorld, WithoutALoadOrADecisionIsRefused) {
  const ScalingTraining asked{.preset = ScalingPreset::kGymHpaCost};
  const auto none = TrainingWorlds::Make({{testing::TwoNodes().scenario}}, 0, 1, asked);
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message, HasSubstr("has no `load`"));
  auto scenario = std::make_shared<Scenario>(*testing::SmallShop().scenario);
  auto load = std::make_shared<Load>(*scenario->load);
  load->duration = load->interval * 2;
  scenario->load = load;
  const auto brief = ScalingPresetWorld::Make(scenario, {0}, ScalingPreset::kGymHpaCost);
  ASSERT_FALSE(brief.has_value());
  EXPECT_THAT(brief.error().message, HasSubstr("too few intervals"));
}

TrainJob PresetShopJob(ScalingPreset preset, Algorithm algorithm,
                       const std::filesystem::path& folder) {
  TrainJob job{.scenarios = {testing::SmallShop()},
               .folder = folder,
               .provenance = {.version = "0.0.0", .command = "train"}};
  UseScalingDefaults(&job.options);
  job.options.scaling.emplace();
  UseScalingPreset(preset, algorithm, &job.options);
  job.options.validation_starts = 4;
  job.options.save_every_seconds = 1e6;
  return job;
}

TEST(ScalingPreset, HasTheFiguresOfItsLibrary) {
  TrainOptions options = PresetShopJob(ScalingPreset::kGymHpaLatency, Algorithm::kPpo, "x").options;
  EXPECT_EQ(options.rollout.envs, 1);
  EXPECT_EQ(options.rollout.episode_steps_max, 25);
  EXPECT_EQ(options.ppo.epochs, 10);
  EXPECT_EQ(options.ppo.minibatch, 64);
  EXPECT_EQ(options.ppo.entropy_start, 0);
  EXPECT_EQ(options.ppo.learning_rate_end, 3e-4F);
  EXPECT_EQ(options.encoder, nn::Encoder::kMlp);
  for (const Algorithm algorithm : {Algorithm::kPpo, Algorithm::kA2c, Algorithm::kRecurrentPpo}) {
    for (const ScalingPreset preset :
         {ScalingPreset::kGymHpaCost, ScalingPreset::kGraphGymHpaSlo}) {
      options = PresetShopJob(preset, algorithm, "x").options;
      EXPECT_TRUE(CheckTrainOptions(options).has_value()) << ScalingPresetName(preset);
      EXPECT_EQ(options.algorithm, algorithm);
    }
  }
  EXPECT_EQ(options.encoder, nn::Encoder::kGatv2);
  EXPECT_EQ(options.rounds, 2);
  EXPECT_EQ(options.ppo.epochs, 20);
  YamlWriter out;
  WriteTrainOptions(options, &out);
  const std::string text = out.Take();
  EXPECT_THAT(text, HasSubstr("preset: graph-gym-hpa-slo"));
  YamlMap map = *ParseYaml(text, "config.yaml")->AsMap();
  EXPECT_EQ(ReadTrainOptions(&map)->scaling, options.scaling);
}

TEST(ScalingPresetRun, IsResumedToTheSameBytesAndIsAPolicyThatStepsBackToNothing) {
  const testing::TestFolder folder;
  const auto train = [](const TrainJob& job, int stop_after) -> Result<TrainSummary> {
    TRY_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::Open(job));
    std::atomic<bool> stop = false;
    return trainer->Run(
        &stop, [&](const TrainProgress& report) { stop = report.iteration >= stop_after; });
  };
  const auto job_of = [&](const char* name) {
    TrainJob job =
        PresetShopJob(ScalingPreset::kGraphGymHpaSlo, Algorithm::kRecurrentPpo, folder / name);
    job.options.hidden = 16;
    job.options.steps = 384;
    job.options.evaluate_every = 128;
    job.options.rollout.steps = 128;
    return job;
  };
  ASSERT_TRUE(train(job_of("whole"), 1 << 30).has_value());
  TrainJob cut = job_of("cut");
  cut.options.threads = 3;
  ASSERT_TRUE(train(cut, 2).has_value());
  Result<TrainJob> rest = TrainJob::ToResume(folder / "cut");
  ASSERT_TRUE(rest.has_value()) << rest.error().message;
  ASSERT_TRUE(train(*rest, 1 << 30).has_value());
  for (const char* name : {"metrics.csv", "best.safetensors", "last.safetensors"})
    EXPECT_TRUE(*ReadFile(folder / "whole" / name) == *ReadFile(folder / "cut" / name)) << name;

  const std::string path = (folder / "whole").string();
  EXPECT_THAT(VerdictOfRun(path).value(), HasSubstr("trained as graph-gym-hpa-slo"));
  const ServedApplication application = ApplicationOf(*testing::SmallShop().scenario, 0);
  EXPECT_EQ(DecidingSetting(path, application).value(), path);
  const auto policy = MakeScalingPolicy(path);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  const auto file = nn::SafetensorsFile::Read(folder / "whole" / "best.safetensors");
  EXPECT_THAT(CheckScalingPreset(*file, ScalingPreset::kGymHpaCost).error().message,
              HasSubstr("was not trained as gym-hpa-cost"));
  EXPECT_FALSE(CheckScaling(*file).has_value());
}

// Of the same state both drivers ask the same question, so the same network answers it alike: one
// deployment at most is moved, by what the network finds most likely.
class ScalingPresetDecision : public ::testing::TestWithParam<ScalingPreset> {};

TEST_P(ScalingPresetDecision, IsByWhatTheTaskShows) {
  const ScalingPresetWorld world = PresetShop(GetParam());
  nn::CandidateNet net({.widths = ScalingPresetTask::kWidths, .hidden = 16});
  Rng rng(4);
  net.Initialize(&rng);
  const auto shared = std::make_shared<const nn::CandidateNet>(net);
  const NeuralScalingPreset policy(GetParam(), shared);
  const ServedApplication& application = *world.application;
  const std::unique_ptr<ScalingMemory> memory = policy.NewMemory(application);
  nn::Workspace workspace(nn::Workspace::Keep::kNothing);
  int moved = 0;
  for (int i = 0; i < 40; ++i) {
    const int web = 1 + i % 10, db = 1 + i * 7 % 10;
    std::vector<HpaPod> pods(10, {.ready = true});
    pods[0].ready = false;  // Of both: seen of a workload are its first.
    const double calls = 5.0 * i;
    const WorkloadSight sights[] = {
        {},
        {web, calls, calls * 0.04, std::span(pods).first(static_cast<size_t>(web))},
        {db, calls, calls * 0.025, std::span(pods).first(static_cast<size_t>(db))}};
    std::vector<int> replicas = {0, web, db}, asked = replicas;
    policy.Decide({.has_samples = true, .application = &application, .workloads = sights},
                  memory.get(), replicas);
    const std::vector<double> calls_per_s = {0, calls, calls},
                              busy = {0, calls * 0.04, calls * 0.025};
    ScalingPresetSight sight;
    world.task->Look({asked, std::vector<int>{0, web - 1, db - 1}, calls_per_s, busy}, &sight);
    GraphBatch batch{.widths = ScalingPresetTask::kWidths};
    world.task->Encode(sight, &batch);
    std::vector<float> logits(static_cast<size_t>(world.task->actions()));
    float stop = 0, value = 0;
    net.Forward(batch, 0, 1, &workspace, logits, std::span(&stop, 1), std::span(&value, 1));
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    moved +=
        world.task->Apply(world.task->move(static_cast<int>(best)), asked) == GymHpaBound::kKept &&
        world.task->move(static_cast<int>(best)).delta != 0;
    EXPECT_EQ(replicas, asked) << i;
  }
  EXPECT_GT(moved, 0);
  std::vector<int> replicas = {0, 3, 3};
  policy.Decide({.has_samples = false, .application = &application}, memory.get(), replicas);
  EXPECT_THAT(replicas, ::testing::ElementsAre(0, 3, 3));
}

INSTANTIATE_TEST_SUITE_P(Of, ScalingPresetDecision,
                         ::testing::Values(ScalingPreset::kGymHpaCost,
                                           ScalingPreset::kGraphGymHpaSlo),
                         [](const auto& info) {
                           std::string name(ScalingPresetName(info.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST(ScalingPresetRun, EarnsMoreThanItDidAtTheStart) {
  const testing::TestFolder folder;
  TrainJob job = PresetShopJob(ScalingPreset::kGymHpaCost, Algorithm::kPpo, folder / "run");
  const Result<TrainingWorlds> worlds =
      TrainingWorlds::Make({{job.scenarios[0].scenario}}, 0, 1, job.options.scaling);
  ASSERT_TRUE(worlds.has_value()) << worlds.error().message;
  ThreadPool pool(1);
  Result<Validation> validation = Validation::Draw(worlds->originals(), 1, 4);
  ASSERT_TRUE(validation.has_value());
  const auto learner = MakeLearner(job.options, worlds->list());
  const double before = validation->Run(learner->net(), &pool).mean_return;
  for (uint64_t i = 1; i <= 16; ++i) learner->Iterate(i, static_cast<double>(i) / 16, &pool);
  const double after = validation->Run(learner->net(), &pool).mean_return;
  RecordProperty("mean reward", fmt::format("{:.3f} to {:.3f}", before, after));
  EXPECT_GT(after, before + 0.2);
}

}  // namespace
}  // namespace rudderfish
