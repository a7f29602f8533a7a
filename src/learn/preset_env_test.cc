// SPDX-License-Identifier: Apache-2.0
#include "learn/preset_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "learn/learner.h"
#include "learn/trainer.h"
#include "learn/training_worlds.h"
#include "learn/validation.h"
#include "nn/safetensors.h"
#include "policy/neural_placement.h"
#include "policy/placement_policy.h"
#include "policy/registry.h"
#include "sim/placement_run.h"
#include "tests/support/shipped_scenario.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using testing::ShippedScenario;

// Three workers, 10, 24 and 40 ms from the users; forty pods that stay.
constexpr std::string_view kThreeWorkers = R"(rudderfish: scenario/v1
name: three-workers
objective: energy
layers: {a: {}, b: {}, c: {}, users: {accepts_moves: false}}
latency:
  a: {a: 1ms, b: 1ms, c: 1ms, users: 5ms}
  b: {a: 1ms, b: 1ms, c: 1ms, users: 12ms}
  c: {a: 1ms, b: 1ms, c: 1ms, users: 20ms}
  users: {a: 5ms, b: 12ms, c: 20ms, users: 1ms}
node_types:
  a: {layer: a, cpu_type: any, bandwidth: 1Gbit, power: {idle_watts: 60, busy_watts: 140}}
  b: {layer: b, cpu_type: any, bandwidth: 1Gbit, power: {idle_watts: 60, busy_watts: 140}}
  c: {layer: c, cpu_type: any, bandwidth: 1Gbit, power: {idle_watts: 60, busy_watts: 140}}
nodes:
  - {type: a, count: 1, cpu: 16, memory: 16Gi}
  - {type: b, count: 1, cpu: 16, memory: 16Gi}
  - {type: c, count: 1, cpu: 16, memory: 16Gi}
workloads:
  nginx: {requests: {cpu: 250m, memory: 64Mi}, latency_soft: 20ms, latency_hard: 30ms,
      measured: {connections: 2}}
arrivals:
  users: users
  streams: [{workloads: nginx, interval: 3s, count: 40}]
)";

// Four workers of which each is full, by all that DRS measures, with one pod.
constexpr std::string_view kFourWorkers = R"(rudderfish: scenario/v1
name: four-workers
objective: balance
layers: {site: {}}
latency: {site: {site: 1ms}}
node_types: {worker: {layer: site, cpu_type: any, bandwidth: 1Gbit}}
nodes: [{type: worker, count: 4, cpu: 4, memory: 4Gi}]
workloads:
  full:
    requests: {cpu: 4, memory: 4Gi}
    measured: {received_kb_per_s: 40, sent_kb_per_s: 40, read_kb_per_s: 10240,
        written_kb_per_s: 10240}
arrivals:
  streams: [{workloads: full, interval: 3s, count: 4}]
)";

std::shared_ptr<const Scenario> Parsed(std::string_view text) {
  Result<Scenario> scenario = ParseScenario(text, "preset.yaml");
  if (!scenario) fmt::print("{}\n", scenario.error().message);
  CHECK(scenario.has_value());
  return std::make_shared<const Scenario>(*std::move(scenario));
}

PlacementWorld PresetWorldOf(std::shared_ptr<const Scenario> scenario, PlacementPreset preset) {
  ThreadPool pool(1);
  Result<PlacementWorld> world = PlacementWorld::Make(std::move(scenario), &pool, preset);
  CHECK(world.has_value());
  return *std::move(world);
}

// An environment that restarts where an episode ends, and returns the reward alone.
class PresetPlay {
 public:
  PresetPlay(std::shared_ptr<const Scenario> scenario, PlacementPreset preset)
      : world_(PresetWorldOf(std::move(scenario), preset)),
        env_(world_, 1, 0, EpisodeStepsOf(preset)) {
    env_.Reset(0);
  }

  StepResult Choose(NodeId node) {
    const StepResult result = env_.Step(env_.space().candidate_of[static_cast<size_t>(node)]);
    if (result.terminated || result.truncated) env_.Reset();
    return result;
  }
  double RewardOf(NodeId node) { return Choose(node).reward; }
  // Of the candidates, the first that has least of it.
  template <class Less>
  StepResult ChooseLeast(Less&& less) {
    const auto& list = env_.space().candidates;
    return Choose(std::min_element(list.begin(), list.end(), less)->node);
  }
  auto Pods() {
    return [this](const PlacementCandidate& a, const PlacementCandidate& b) {
      const ClusterTotals& totals = env_.lifecycle().totals();
      return totals.PodsOn(a.node) < totals.PodsOn(b.node);
    };
  }
  PresetEnv& env() { return env_; }

 private:
  PlacementWorld world_;
  PresetEnv env_;
};

TEST(PresetEnv, PaysForUnusedWorkersAsEeAndEndsAtAnotherThanTheFullest) {
  PresetPlay play(Parsed(kThreeWorkers), PlacementPreset::kThesisEe);
  EXPECT_EQ(play.RewardOf(0), 10);  // The cluster is empty: any will do.
  EXPECT_EQ(play.RewardOf(0), 6);
  StepResult wrong = play.Choose(1);
  EXPECT_EQ(wrong.reward, 0);
  EXPECT_TRUE(wrong.terminated);
  EXPECT_EQ(play.RewardOf(0), 3);  // The end of an episode has not touched the cluster.
  EXPECT_TRUE(play.Choose(2).terminated);
  const StepResult right = play.Choose(0);
  EXPECT_EQ(right.reward, 0);
  EXPECT_FALSE(right.terminated);
}

TEST(PresetEnv, PaysForTheEmptiestAsLbAndEndsAtTheFullest) {
  PresetPlay play(Parsed(kThreeWorkers), PlacementPreset::kThesisLb);
  StepResult first = play.Choose(0);  // All are equal: the first is emptiest and fullest.
  EXPECT_EQ(first.reward, 10);
  EXPECT_TRUE(first.terminated);
  EXPECT_EQ(play.RewardOf(1), 10);
  EXPECT_EQ(play.RewardOf(1), 0);  // 1, 1, 0
  EXPECT_EQ(play.RewardOf(2), 10);
  const StepResult fullest = play.Choose(1);
  EXPECT_EQ(fullest.reward, -1);
  EXPECT_TRUE(fullest.terminated);
}

TEST(PresetEnv, PaysForTheSpreadOfConnectionsAsLc) {
  PresetPlay play(Parsed(kThreeWorkers), PlacementPreset::kThesisLc);
  EXPECT_EQ(play.RewardOf(0), 0);
  EXPECT_EQ(play.RewardOf(1), 1);
  EXPECT_EQ(play.RewardOf(2), 1);
  EXPECT_EQ(play.RewardOf(0), 0);
  const StepResult wrong = play.Choose(0);  // 4, 2, 2
  EXPECT_EQ(wrong.reward, 0.5);
  EXPECT_TRUE(wrong.terminated);
}

TEST(PresetEnv, PaysForNodesOffPodsAndLatencyAsElRl) {
  PresetPlay play(Parsed(kThreeWorkers), PlacementPreset::kThesisElRl);
  EXPECT_EQ(play.RewardOf(0), 2);  // An empty cluster: 1 + 0 + 1.
  for (int pods = 1; pods < 30; ++pods)
    EXPECT_DOUBLE_EQ(play.RewardOf(0), 0.75 + pods / 50.0 + 1) << pods;
  EXPECT_DOUBLE_EQ(play.RewardOf(0), 2.35);  // One worker on, 30 pods, within the soft limit.
  const StepResult soft = play.Choose(1);
  EXPECT_DOUBLE_EQ(soft.reward, 0.75 + 31 / 50.0 + 0.5);
  EXPECT_FALSE(soft.terminated);
  const StepResult hard = play.Choose(2);  // No node is left out for its latency.
  EXPECT_DOUBLE_EQ(hard.reward, 0.5 + 32 / 2.0 / 50);
  EXPECT_TRUE(hard.terminated);
}

TEST(PresetEnv, PaysForImbalanceAsDrsWithThePodInPlace) {
  PresetPlay code(Parsed(kFourWorkers), PlacementPreset::kDrsCode);
  EXPECT_NEAR(code.RewardOf(0), -600 * std::sqrt(3.0) / 4, 1e-9);
  const StepResult worst = code.Choose(1);  // Half of the nodes at 100, half at 0.
  EXPECT_DOUBLE_EQ(worst.reward, -300);
  EXPECT_FALSE(worst.terminated);
  code.RewardOf(2);
  EXPECT_DOUBLE_EQ(code.RewardOf(3), 0);
  PresetPlay paper(Parsed(kFourWorkers), PlacementPreset::kDrsPaper);
  paper.RewardOf(0);
  EXPECT_DOUBLE_EQ(paper.RewardOf(1), 0.5 - 6 * 0.5);
}

TEST(PresetEnv, EpisodesOfTheThesisAreCutOffAtTwoHundredOfDrsAtAHundred) {
  PresetPlay thesis(ShippedScenario("thesis-test1"), PlacementPreset::kThesisLc);
  for (int step = 1; step <= 2 * presets::kThesisMaxSteps; ++step) {
    const StepResult result = thesis.ChooseLeast(thesis.Pods());
    EXPECT_FALSE(result.terminated);
    EXPECT_EQ(result.truncated, step % presets::kThesisMaxSteps == 0) << step;
  }
  EXPECT_GT(thesis.env().candidate_count(), 1);
  PresetPlay drs(ShippedScenario("drs-even"), PlacementPreset::kDrsCode);
  for (int step = 1; step <= 250; ++step) {
    const StepResult result = drs.ChooseLeast(drs.Pods());
    EXPECT_FALSE(result.terminated);
    EXPECT_EQ(result.truncated, step % presets::kDrsMaxSteps == 0) << step;
  }
}

// Of the next world, which begins empty: nothing is lost but what would have come.
TEST(PresetEnv, AWorldThatIsOverCutsTheEpisodeOffAndAnotherBegins) {
  PresetPlay play(Parsed(kThreeWorkers), PlacementPreset::kThesisElRl);
  for (int pods = 0; pods < 39; ++pods) EXPECT_FALSE(play.Choose(0).truncated);
  const uint64_t before = play.env().cursor().episode;
  const StepResult last = play.Choose(0);
  EXPECT_TRUE(last.truncated);
  EXPECT_FALSE(last.terminated);
  EXPECT_GT(play.env().cursor().episode, before + 1);
  EXPECT_EQ(play.env().lifecycle().totals().PodsOn(0), 0);
  EXPECT_EQ(play.RewardOf(0), 2);
}

TEST(PresetEnv, RestoredItGoesOnAlikeThroughEpisodesAndWorlds) {
  const PlacementWorld world =
      PresetWorldOf(ShippedScenario("drs-random"), PlacementPreset::kDrsPaper);
  PresetEnv env(world, 3, 8, 30), other(world, 3, 8, 30);
  env.Reset(0);
  Rng rng(2);
  const auto play = [](PresetEnv* one, int choice) {
    const StepResult result = one->Step(choice % one->candidate_count());
    if (result.terminated || result.truncated) one->Reset();
    return result;
  };
  for (int i = 0; i < 250; ++i) play(&env, static_cast<int>(rng.Below(4)));
  ASSERT_TRUE(other.Restore(env.cursor()).has_value());
  EXPECT_EQ(other.cursor().episode, env.cursor().episode);
  for (int i = 0; i < 120; ++i) {
    ASSERT_EQ(env.candidate_count(), other.candidate_count());
    const int choice = static_cast<int>(rng.Below(4));
    const StepResult a = play(&env, choice), b = play(&other, choice);
    EXPECT_EQ(a.reward, b.reward);
    EXPECT_EQ(a.truncated, b.truncated) << i;
  }
  EnvCursor wrong = env.cursor();
  wrong.moves[3].to = 1000;
  EXPECT_THAT(other.Restore(wrong).error().message, HasSubstr("cannot be repeated"));
}

TEST(PresetWorld, IsRefusedWhereItsScenarioDoesNotSuit) {
  ThreadPool pool(1);
  const auto refusal = [&](std::string_view name, PlacementPreset preset) {
    const auto made = PlacementWorld::Make(ShippedScenario(name), &pool, preset);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(refusal("thesis-test2", PlacementPreset::kThesisElRl), "");
  EXPECT_THAT(refusal("drs-even", PlacementPreset::kThesisElRl), HasSubstr("`arrivals.users`"));
  EXPECT_THAT(refusal("drs-even", PlacementPreset::kThesisLc), HasSubstr("connections"));
  EXPECT_THAT(refusal("thesis-test1", PlacementPreset::kDrsCode), HasSubstr("transfer"));
}

TEST(Preset, HasTheDqnThatWasPublished) {
  TrainOptions options;
  UsePreset(PlacementPreset::kThesisLb, &options);
  EXPECT_EQ(options.algorithm, Algorithm::kDqn);
  EXPECT_EQ(options.steps, 2000);
  EXPECT_EQ(options.hidden, 128);  // The nearest to 120.
  EXPECT_EQ(options.dqn.replay.envs, 1);
  EXPECT_EQ(options.dqn.replay.steps * options.dqn.target_every, 500);
  EXPECT_EQ(options.dqn.replay.samples_max, 10'000);
  EXPECT_EQ(options.dqn.replay.episode_steps_max, 200);
  EXPECT_EQ(options.dqn.learning_rate_end, 2.5e-3F);
  EXPECT_EQ(options.dqn.warm_up_samples, 300);
  EXPECT_TRUE(CheckTrainOptions(options).has_value());
  UsePreset(PlacementPreset::kDrsPaper, &options);
  EXPECT_EQ(options.hidden, 48);  // To 50.
  EXPECT_EQ(options.dqn.replay.samples_max, 100);
  EXPECT_EQ(options.dqn.replay.episode_steps_max, 100);
  EXPECT_EQ(options.dqn.minibatch, 32);
  EXPECT_EQ(options.dqn.target_every, 100);
  EXPECT_EQ(options.dqn.epsilon_start, 0.1F);
  EXPECT_EQ(options.dqn.gamma, 0.9F);
  EXPECT_TRUE(CheckTrainOptions(options).has_value());
  YamlWriter out;
  WriteTrainOptions(options, &out);
  const std::string text = out.Take();
  EXPECT_THAT(text, HasSubstr("preset: drs-paper"));
  YamlMap map = *ParseYaml(text, "config.yaml")->AsMap();
  EXPECT_EQ(ReadTrainOptions(&map)->preset, PlacementPreset::kDrsPaper);
  YamlMap wrong = *ParseYaml("algorithm: dqn\nseed: 1\npreset: drs-papr\n", "c.yaml")->AsMap();
  EXPECT_THAT(ReadTrainOptions(&wrong).error().message, HasSubstr("did you mean `drs-paper`?"));
}

// As published; DRS for fewer steps.
class LearningAPreset : public ::testing::TestWithParam<PlacementPreset> {};
INSTANTIATE_TEST_SUITE_P(Presets, LearningAPreset,
                         ::testing::Values(PlacementPreset::kThesisEe, PlacementPreset::kThesisLb,
                                           PlacementPreset::kThesisElRl, PlacementPreset::kDrsCode),
                         [](const auto& info) {
                           std::string name(PlacementPresetName(info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(LearningAPreset, EarnsMoreThanItDidAtTheStart) {
  const PlacementPreset preset = GetParam();
  const bool is_drs = preset == PlacementPreset::kDrsCode;
  const auto scenario = is_drs ? ShippedScenario("drs-even") : Parsed(kThreeWorkers);
  const Result<TrainingWorlds> worlds = TrainingWorlds::Make({{scenario}}, 0, 1, {}, preset);
  ASSERT_TRUE(worlds.has_value());
  double before = 0, after = 0;
  for (const uint64_t seed : {1, 2}) {
    TrainOptions options;
    UsePreset(preset, &options);
    if (is_drs) options.steps = 3000;
    options.seed = seed;
    ThreadPool pool(1);
    Result<Validation> validation = Validation::Draw(worlds->originals(), 1, 1);
    ASSERT_TRUE(validation.has_value());
    const auto learner = MakeLearner(options, worlds->list());
    const double start = validation->Run(learner->net(), &pool).mean_return;
    const int64_t iterations = options.steps / learner->steps_per_iteration();
    double best = start;  // As the best checkpoint is kept.
    for (int64_t i = 1; i <= iterations; ++i) {
      learner->Iterate(static_cast<uint64_t>(i),
                       static_cast<double>(i) / static_cast<double>(iterations), &pool);
      if (i % (iterations / 4) == 0)
        best = std::max(best, validation->Run(learner->net(), &pool).mean_return);
    }
    RecordProperty(fmt::format("seed_{}", seed), fmt::format("{:.3f} to {:.3f}", start, best));
    before += start;
    after += best;
  }
  EXPECT_GT(after, before + 0.05 * std::abs(before));
}

TEST(PresetRun, IsSavedResumedToTheSameBytesAndServesAnyObjective) {
  testing::TestFolder folder;
  const auto path = folder / "world.yaml";
  ASSERT_TRUE(WriteFileAtomically(path, kThreeWorkers).has_value());
  const Result<TrainScenario> scenario = TrainScenario::Open(path);
  ASSERT_TRUE(scenario.has_value());
  const auto train = [&](TrainJob job, int64_t stop_after) {
    std::atomic<bool> stop = false;
    Result<std::unique_ptr<Trainer>> trainer = Trainer::Open(std::move(job));
    ASSERT_TRUE(trainer.has_value()) << trainer.error().message;
    const auto summary = (*trainer)->Run(
        &stop, [&](const TrainProgress& report) { stop = report.iteration >= stop_after; });
    ASSERT_TRUE(summary.has_value()) << summary.error().message;
  };
  TrainJob job{.scenarios = {*scenario}, .folder = folder / "whole"};
  UsePreset(PlacementPreset::kThesisEe, &job.options);
  job.options.steps = 800;
  job.options.evaluate_every = 200;
  train(job, 1'000'000);
  job.folder = folder / "cut";
  train(job, 43);
  const Result<TrainJob> rest = TrainJob::ToResume(folder / "cut");
  ASSERT_TRUE(rest.has_value()) << rest.error().message;
  train(*rest, 1'000'000);
  for (const char* name : {"metrics.csv", "best.safetensors", "last.safetensors"}) {
    EXPECT_EQ(*ReadFile(folder / "whole" / name), *ReadFile(folder / "cut" / name)) << name;
  }
  const auto file = nn::SafetensorsFile::Read(folder / "whole" / "best.safetensors");
  EXPECT_EQ(*file->Metadata("preset"), "thesis-ee");
  const PlacementTask balance(Objective::Of(ObjectiveTerm::kBalance));
  EXPECT_THAT(CheckPlacement(*file, balance).error().message,
              HasSubstr("trained with the preset thesis-ee, not no preset"));
  const auto policy = MakePlacementPolicy((folder / "whole").string(), balance);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(policy->preset, PlacementPreset::kThesisEe);
  Lifecycle lifecycle(job.scenarios[0].scenario);
  const auto metrics = RunPlacement(policy->start(), 1, &lifecycle);
  ASSERT_TRUE(metrics.has_value());
  EXPECT_EQ(metrics->bindings, 40);
  EXPECT_EQ(metrics->hard_misses, 0);  // What it serves keeps to hard limits.
}

}  // namespace
}  // namespace rudderfish
