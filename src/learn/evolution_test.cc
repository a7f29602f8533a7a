// SPDX-License-Identifier: Apache-2.0
#include "learn/evolution.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "base/files.h"
#include "learn/trainer.h"
#include "learn/training_worlds.h"
#include "nn/safetensors.h"
#include "policy/neural_placement.h"
#include "policy/registry.h"
#include "sim/held_out.h"
#include "sim/placement_run.h"
#include "tests/support/small_arrivals.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

constexpr std::string_view kCrowded = R"(
  streams:
    - {workloads: {web: 3, batch: 1, learner: 1}, interval: {exponential: 5s},
        lifetime: {exponential: 40s}, count: 120}
  start_delay: 1s
)";

PlacementWorld CrowdedWorld(ObjectiveTerm term) {
  Scenario scenario = *testing::ArrivalsScenario(kCrowded);
  scenario.objective = Objective::Of(term);
  ThreadPool pool(1);
  Result<PlacementWorld> world =
      PlacementWorld::Make(std::make_shared<const Scenario>(std::move(scenario)), &pool);
  CHECK(world.has_value());
  return *std::move(world);
}

PlacementMix Only(PlacementScore score) {
  PlacementMix mix{};
  mix[static_cast<int>(score)] = 1;
  return mix;
}

TrainOptions SmallEvolution() {
  TrainOptions options;
  UsePlacementDefaults(&options);
  UseEvolutionDefaults(&options);
  options.algorithm = Algorithm::kEvolution;
  options.es.pairs = 4;
  options.es.episodes = 3;
  options.hidden = 16;
  return options;
}

nn::CandidateNet NetFor(const PlacementWorld& world) {
  return MakeNet(SmallEvolution(), TrainingWorld{.placement = &world}.widths());
}

double MeanCost(const PlacementWorld& world, const nn::CandidateNet& net) {
  constexpr int kEpisodes = 20, kFirst = 1000;
  NeuralPlacement learned(world.task, std::make_shared<const nn::CandidateNet>(net));
  Lifecycle lifecycle(world.scenario);
  double sum = 0;
  for (int episode = 0; episode < kEpisodes; ++episode) {
    const auto choose = [&](const PlacementQuestion& question) {
      const int choice = learned.Choose(question);
      return choice < 0 ? kNone : learned.space().candidates[choice].node;
    };
    sum += PlacementCost(
        *RunPlacement(choose, TrialSeed(world.scenario->seed, kFirst + episode), &lifecycle),
        world.scenario->node_count());
  }
  return sum / kEpisodes;
}

TEST(Evolution, BeginsAsTheReference) {
  PlacementWorld world = CrowdedWorld(ObjectiveTerm::kCost);
  world.reference = Only(PlacementScore::kGreedy);
  world.reference[static_cast<int>(PlacementScore::kKubeDefault)] = 0.25;
  world.reference[static_cast<int>(PlacementScore::kFragmentation)] = 7;  // Which cost has not.
  nn::CandidateNet net = NetFor(world);
  const TrainingWorld worlds[] = {{.placement = &world}};
  const Evolution evolution({}, worlds, 1, &net);
  const std::span<const float> skip = net.tensor("logit.skip");
  for (int s = 0; s < kPlacementScores; ++s) {
    const bool counts = s != static_cast<int>(PlacementScore::kFragmentation);
    EXPECT_NEAR(skip[s], counts ? world.reference[s] : 0, 1e-6) << kPlacementScoreNames[s];
  }
  for (size_t i = kPlacementScores; i < skip.size(); ++i) EXPECT_EQ(skip[i], 0) << i;
}

// From a beginning that is bad for the objective, on episodes that it has not met.
TEST(Evolution, LearnsWhatServesTheObjective) {
  PlacementWorld world = CrowdedWorld(ObjectiveTerm::kCost);
  world.reference = Only(PlacementScore::kLeastAllocated);
  nn::CandidateNet net = NetFor(world);
  const TrainingWorld worlds[] = {{.placement = &world}};
  Evolution evolution({.pairs = 6, .episodes = 4}, worlds, 1, &net);
  const double before = MeanCost(world, net);
  ThreadPool pool(1);
  constexpr int kIterations = 25;
  for (int i = 1; i <= kIterations; ++i) {
    const EvolutionMetrics metrics = evolution.Iterate(i, 1.0 * i / kIterations, &pool);
    EXPECT_EQ(metrics.episodes, 4);
    EXPECT_GE(metrics.tried, 4 * 13 * 120);
    EXPECT_GT(metrics.cost, 0);
  }
  EXPECT_LT(MeanCost(world, net), 0.9 * before) << before;
}

// A beginning by a score that the objective has not tells no candidates apart.
TEST(Evolution, LearnsFromABeginningThatTellsNothingApart) {
  PlacementWorld world = CrowdedWorld(ObjectiveTerm::kBalance);
  world.reference = Only(PlacementScore::kFragmentation);
  nn::CandidateNet net = NetFor(world);
  const TrainingWorld worlds[] = {{.placement = &world}};
  Evolution evolution({.pairs = 6, .episodes = 4}, worlds, 1, &net);
  const double before = MeanCost(world, net);
  ThreadPool pool(1);
  constexpr int kIterations = 15;
  for (int i = 1; i <= kIterations; ++i)
    EXPECT_GT(evolution.Iterate(i, 1.0 * i / kIterations, &pool).rms, 0);
  EXPECT_LT(MeanCost(world, net), 0.8 * before) << before;
}

TEST(Evolution, IsTheSameForAnyNumberOfThreads) {
  const PlacementWorld world = CrowdedWorld(ObjectiveTerm::kFragmentation);
  const TrainingWorld worlds[] = {{.placement = &world}};
  std::vector<float> weights[2];
  for (const int threads : {1, 3}) {
    nn::CandidateNet net = NetFor(world);
    Evolution evolution({.pairs = 3, .episodes = 4}, worlds, 5, &net);
    ThreadPool pool(threads);
    for (int i = 1; i <= 3; ++i) evolution.Iterate(i, 0, &pool);
    const auto parameters = net.parameters();
    weights[threads == 1 ? 0 : 1].assign(parameters.begin(), parameters.end());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

std::vector<float> WeightsOf(const std::filesystem::path& run) {
  return *nn::SafetensorsFile::Read(RunPaths{run}.last())->Values<float>("es.weights");
}

TEST(Evolution, ARunThatWasResumedGoesOnToTheBitAndPlacesPods) {
  testing::TestFolder folder;
  const std::filesystem::path path = folder / "world.yaml";
  ASSERT_TRUE(WriteFileAtomically(path, testing::ArrivalsText(kCrowded) + "objective: energy\n")
                  .has_value());
  const Result<TrainScenario> opened = TrainScenario::Open(path);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const auto train = [&](TrainJob job, int64_t steps, bool is_stopped = false) {
    job.options.steps = steps;
    Result<std::unique_ptr<Trainer>> trainer = Trainer::Open(std::move(job));
    CHECK(trainer.has_value());
    const std::atomic<bool> stop{is_stopped};
    return *(*trainer)->Run(&stop);
  };
  const auto job = [&](const char* name) {
    return TrainJob{.scenarios = {*opened}, .options = SmallEvolution(), .folder = folder / name};
  };
  constexpr int64_t kOneIteration = 120 * 3 * 9, kThree = 3 * kOneIteration;
  EXPECT_EQ(train(job("whole"), kThree).iterations, 3);
  EXPECT_EQ(train(job("parts"), kOneIteration).iterations, 1);
  Result<TrainJob> more = TrainJob::ToResume(folder / "parts");
  ASSERT_TRUE(more.has_value()) << more.error().message;
  EXPECT_EQ(train(*more, kThree).iterations, 3);
  EXPECT_EQ(WeightsOf(folder / "parts"), WeightsOf(folder / "whole"));
  EXPECT_EQ(train(job("early"), kThree, true).iterations, 0);
  EXPECT_EQ(train(*TrainJob::ToResume(folder / "early"), kThree).iterations, 3);
  EXPECT_EQ(*ReadFile(folder / "early/metrics.csv"), *ReadFile(folder / "whole/metrics.csv"));
  const PlacementTask energy(Objective::Of(ObjectiveTerm::kEnergy));
  const Result<PlacementPolicy> policy = MakePlacementPolicy((folder / "whole").string(), energy);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  Lifecycle lifecycle(opened->scenario);
  EXPECT_EQ(RunPlacement(policy->start(), 1, &lifecycle)->completed, 120);
}

TEST(Evolution, WhatItCannotLearnIsRefused) {
  TrainOptions options = SmallEvolution();
  options.steps = 1;
  EXPECT_TRUE(CheckTrainOptions(options).has_value());
  EXPECT_TRUE(
      CheckCanLearn(options, {.placement = nullptr}).error().message.find("placement scenarios") !=
      std::string::npos);
  options.from = "runs/other";
  EXPECT_NE(CheckTrainOptions(options).error().message.find("begins with a mix of scores"),
            std::string::npos);
  options.from.clear();
  options.preset = PlacementPreset::kThesisEe;
  EXPECT_NE(CheckTrainOptions(options).error().message.find("not by an earlier"),
            std::string::npos);
  options.preset.reset();
  options.scaling.emplace();
  EXPECT_NE(CheckTrainOptions(options).error().message.find("not to scale"), std::string::npos);
  options.scaling.reset();
  options.es.pairs = 0;
  EXPECT_NE(CheckTrainOptions(options).error().message.find("es.pairs"), std::string::npos);
}

}  // namespace
}  // namespace rudderfish
