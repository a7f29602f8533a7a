// SPDX-License-Identifier: Apache-2.0
#include "learn/scaling_env.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "learn/learner.h"
#include "learn/rollout.h"
#include "learn/scaling_choice.h"
#include "learn/trainer.h"
#include "learn/training_worlds.h"
#include "nn/checkpoint.h"
#include "policy/lookahead_scaling.h"
#include "policy/neural.h"
#include "policy/neural_scaling.h"
#include "policy/registry.h"
#include "sim/scaling_evaluation.h"
#include "tests/support/small_shop.h"
#include "tests/support/split_replay.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::SmallShop;
using testing::TestFolder;

ScalingWorld ShopWorld(int threads = 1, const std::string& text = testing::kSmallShop) {
  ThreadPool pool(threads);
  const Result<Scenario> shop = ParseScenario(text, "small-shop.yaml");
  CHECK(shop.has_value());
  Result<ScalingWorld> world =
      ScalingWorld::Make(std::make_shared<const Scenario>(*shop), {0, 1}, 0.01, &pool);
  CHECK(world.has_value());
  return *std::move(world);
}

TrainJob ShopJob(const std::filesystem::path& folder) {
  return {.scenarios = {SmallShop()},
          .options = testing::SmallShopOptions(),
          .folder = folder,
          .provenance = {.version = "0.0.0", .command = "train"}};
}

Result<TrainSummary> TrainShop(const TrainJob& job, int stop_after = 1 << 30) {
  TRY_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::Open(job));
  std::atomic<bool> stop = false;
  int done = 0;
  return trainer->Run(&stop, [&](const TrainProgress&) { stop = ++done >= stop_after; });
}

std::string TextOf(const std::filesystem::path& path) {
  const Result<std::string> content = ReadFile(path);
  EXPECT_TRUE(content.has_value()) << path;
  return content.value_or("");
}

TEST(ScalingWorld, IsTheSameForAnyNumberOfThreads) {
  const ScalingWorld one = ShopWorld(1), three = ShopWorld(3);
  EXPECT_EQ(one.rule, three.rule);
  EXPECT_EQ(one.price_low, three.price_low);
  EXPECT_EQ(one.price_high, three.price_high);
  EXPECT_EQ(one.reward_spread, three.reward_spread);
}

// What the Model advises is late too often at the lowest price, and seldom enough at the highest.
TEST(ScalingWorld, PricesReachFromTooLateToSeldomLate) {
  const ScalingWorld world = ShopWorld();
  EXPECT_GE(world.price_low, ScalingWorld::kLeastPrice);
  EXPECT_LE(world.price_high, 1.001 * ScalingWorld::kMostPrice);
  double late[2] = {};
  for (const int end : {0, 1}) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      ScalingEnv env(world, 3, 6, 1 << 20);
      env.ResetTo({.load = static_cast<int>(seed % 2), .seed = seed, .price = world.PriceAt(end)});
      int steps = 1;
      while (!env.Step(env.AdvisedChoice()).truncated) ++steps;
      late[end] += env.sums().late / steps / 8;
    }
  }
  EXPECT_LT(late[1], 0.01);
  EXPECT_GT(late[0], 2 * late[1]);
}

// What is advised is late in every burst, at any price. Of constant replicas the best ones are late
// too often at the lowest price, and seldom enough at the highest.
TEST(ScalingWorld, PricesOfALoadThatLeapsAreThoseOfConstantReplicas) {
  const std::string text = std::regex_replace(
      testing::kSmallShop, std::regex("ramp: .*"),
      "leap: {bursty: {low: 20, high: 120, every: {exponential: 100s}, lasts: 15s to 40s}}");
  const Result<Scenario> scenario = ParseScenario(text, "leap.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ThreadPool pool(2);
  const auto shared = std::make_shared<const Scenario>(*scenario);
  const Result<ScalingWorld> world = ScalingWorld::Make(shared, {1}, 0.01, &pool);
  ASSERT_TRUE(world.has_value()) << world.error().message;
  EXPECT_GE(world->price_high, 3.9 * world->price_low);
  std::vector<NamedScalingPolicy> constants;
  for (int rate = 30; rate <= 170; rate += 10)
    constants.push_back(
        {fmt::format("{}", rate), {std::make_shared<StaticScalingPolicy>(0.01, rate)}});
  const ScalingEvaluation evaluation = EvaluateScaling(
      *shared, EpisodeUse::kLearning, {1}, constants, 12, 3, &pool, {}, ScalingGround::kModel);
  const double cores_per_s = world->task->ladder().cores(world->task->ladder().RungFor(40));
  for (const double price : {world->price_low, world->price_high}) {
    double least = 1e9, late = 0;
    for (int p = 0; p < static_cast<int>(constants.size()); ++p) {
      const ScalingSums sums = SumsOf(evaluation, p);
      const double total = 6 * sums.core_hours / cores_per_s + price * sums.violation_share;
      if (total < least) late = sums.violation_share;
      least = std::min(least, total);
    }
    EXPECT_EQ(late > 0.01, price == world->price_low) << price << ": " << late;
  }
}

// Another weight of pods that come and go, and late requests by weight instead of a limit.
ScalingWorld WeighedWorld(std::string_view objective) {
  ThreadPool pool(1);
  const Result<Scenario> scenario =
      ParseScenario(std::regex_replace(testing::kSmallShop, std::regex("  pods:"),
                                       fmt::format("  objective: {}\n  pods:", objective)),
                    "weighed.yaml");
  CHECK(scenario.has_value());
  return ScalingWorld::Make(std::make_shared<const Scenario>(*scenario), {1}, 0.01, &pool).value();
}

TEST(ScalingWorld, WeighsWhatTheObjectiveSays) {
  const auto churn = [](const ScalingWorld& world) {
    ScalingEnv env(world, 3, 6, 1 << 20);
    env.ResetTo({.load = 1, .seed = 4});
    while (!env.Step(env.RuleChoice({1.1, 0})).truncated) {
    }
    return env.sums().churn;
  };
  const double usual = churn(WeighedWorld("{cost: 1}"));
  EXPECT_GT(usual, 0);
  EXPECT_DOUBLE_EQ(churn(WeighedWorld("{cost: 2, changes: 2}")), 4 * usual);
  EXPECT_EQ(churn(WeighedWorld("{changes: 0}")), 0);
  const ScalingWorld weighed = WeighedWorld("{cost: 0.5, late: 20}");
  EXPECT_EQ(weighed.price_low, 40);
  EXPECT_EQ(weighed.price_high, 40);
  EXPECT_GT(weighed.reward_spread, 0.001);
}

// The dearer late requests are, the fewer there are; by weight, a limit that all pods there may be
// cannot keep is no obstacle.
TEST(ScalingTraining, LateRequestsByWeightNeedNoLimit) {
  double late[2] = {};
  for (const int dear : {0, 1}) {
    const TestFolder folder;
    TrainJob job = ShopJob(folder / "run");
    const std::string text = std::regex_replace(
        std::regex_replace(testing::kSmallShop, std::regex("qos: 300ms"), "qos: 90ms"),
        std::regex("  pods:"), fmt::format("  objective: {{late: {}}}\n  pods:", dear ? 400 : 0.5));
    const Result<Scenario> scenario = ParseScenario(text, "weighed.yaml");
    ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
    job.scenarios = {{.scenario = std::make_shared<const Scenario>(*scenario), .text = text}};
    ASSERT_TRUE(TrainShop(job).has_value());
    const Result<nn::SafetensorsFile> file =
        nn::SafetensorsFile::Read(RunPaths{folder / "run"}.best());
    ASSERT_TRUE(file.has_value());
    const Result<std::optional<ScalingVerdict>> verdict = StoredVerdict(*file);
    ASSERT_TRUE(verdict.has_value() && verdict->has_value());
    EXPECT_EQ((*verdict)->price, dear ? 400 : 0.5);
    late[dear] = (*verdict)->learned.violation_share;
  }
  EXPECT_LT(late[1], 0.7 * late[0]);
}

// Neither in training nor in validation, which ResetTo draws, nor where prices and rules are
// chosen: they are the same whatever the other half is.
TEST(ScalingEnv, NeverSeesThePartOfATraceThatIsHeldOut) {
  const std::string text =
      std::regex_replace(testing::kSmallShop, std::regex("ramp: .*"),
                         "replay: {replay: {format: azure-llm, file: none.csv}}");
  ThreadPool pool(2);
  const auto make = [&](double held_out_per_s) {
    return ScalingWorld::Make(testing::SplitReplay(text, 20, held_out_per_s), {1}, 0.01, &pool)
        .value();
  };
  const ScalingWorld world = make(150), other = make(30);
  EXPECT_EQ(world.rule, other.rule);
  EXPECT_EQ(world.price_high, other.price_high);
  EXPECT_EQ(world.reward_spread, other.reward_spread);
  ScalingEnv env(world, 3, 0, 1 << 20);
  for (uint64_t episode = 0; episode < 6; ++episode) {
    if (episode % 2 == 0) {
      env.Reset(episode);
    } else {
      env.ResetTo({.load = 1, .seed = episode});
    }
    while (!env.Step(env.RuleChoice()).truncated) {
    }
    EXPECT_LT(env.history().peak_30m_per_s(), 40) << episode;
  }
}

TEST(ScalingEnv, BeginsWithPodsThatFit) {
  const ScalingWorld world = ShopWorld();
  ScalingEnv env(world, 3, 6, 1 << 20);
  env.ResetTo({.load = 0, .seed = 4});
  const CapacityLadder& ladder = world.task->ladder();
  EXPECT_EQ(env.history().rung_ready(), ladder.RungFor(40));
  env.Step(env.space().hold);
  EXPECT_LT(env.sums().late, 0.011);
}

TEST(ScalingWorld, WithoutALoadIsRefused) {
  const auto scenario = testing::TwoNodes().scenario;
  const Result<TrainingWorlds> worlds = TrainingWorlds::Make({{scenario}}, 0, 1, ScalingTraining());
  ASSERT_FALSE(worlds.has_value());
  EXPECT_NE(worlds.error().message.find("has no `load`"), std::string::npos);
  const Result<TrainingWorlds> unknown =
      TrainingWorlds::Make({{SmallShop().scenario}}, 0, 1, ScalingTraining{.loads = {"stedy"}});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("steady"), std::string::npos);
}

// A policy that decides as the rule does earns nothing: both worlds are the same.
TEST(ScalingEnv, TheRuleItselfEarnsNothing) {
  const ScalingWorld world = ShopWorld();
  ScalingEnv env(world, 3, 5, 1 << 20);
  env.Reset(1);
  int steps = 0;
  for (StepResult result; !result.truncated; ++steps) {
    result = env.Step(env.RuleChoice());
    EXPECT_NEAR(result.reward, 0, 1e-9);
    EXPECT_FALSE(result.terminated);
  }
  EXPECT_EQ(steps, world.decisions - 1);  // The first has no samples yet.
  EXPECT_NEAR(env.figures().initial, env.figures().final, 1e-12);
}

TEST(ScalingEnv, FewerPodsCostLessAndMakeRequestsLate) {
  const ScalingWorld world = ShopWorld();
  ScalingInterval least, most;
  for (const bool highest : {false, true}) {
    ScalingEnv env(world, 3, 6, 1 << 20);
    env.ResetTo({.load = 1, .seed = 4});
    while (!env.Step(highest ? env.candidate_count() - 1 : 0).truncated) {
    }
    (highest ? most : least) = env.sums();
  }
  EXPECT_LT(least.cost, 0.9 * most.cost);
  EXPECT_GT(least.late, most.late + 1);
}

TEST(ScalingEnv, EpisodesAreRepeatedFromTheirCursor) {
  const ScalingWorld world = ShopWorld();
  ScalingEnv env(world, 3, 1, 1 << 20), again(world, 3, 1, 1 << 20);
  env.Reset(2);
  Rng rng(1);
  for (int i = 0; i < 12; ++i)
    env.Step(static_cast<int>(rng.Below(static_cast<uint32_t>(env.candidate_count()))));
  ASSERT_TRUE(again.Restore(env.cursor()).has_value());
  GraphBatch first{.widths = ScalingTask::Widths(ScalingRows::kRungs)}, second = first;
  env.Encode(&first);
  again.Encode(&second);
  EXPECT_TRUE(first.candidates == second.candidates);
  EXPECT_TRUE(first.context == second.context);
  EnvCursor broken = env.cursor();
  broken.moves.back().to = 99;
  EXPECT_FALSE(again.Restore(broken).has_value());
}

TEST(ScalingTraining, WritesTheSameBytesForAnyNumberOfThreads) {
  const TestFolder folder;
  for (const int threads : {1, 3}) {
    TrainJob job = ShopJob(folder / std::to_string(threads));
    job.options.threads = threads;
    const Result<TrainSummary> summary = TrainShop(job);
    ASSERT_TRUE(summary.has_value()) << summary.error().message;
  }
  for (const char* file : {"metrics.csv", "last.safetensors", "best.safetensors"})
    EXPECT_TRUE(TextOf(folder / "1" / file) == TextOf(folder / "3" / file)) << file;
}

TEST(ScalingTraining, AStoppedRunGoesOnAsIfItHadNotBeenStopped) {
  const TestFolder folder;
  ASSERT_TRUE(TrainShop(ShopJob(folder / "whole")).has_value());
  TrainJob job = ShopJob(folder / "parts");
  const Result<TrainSummary> part = TrainShop(job, 1);
  ASSERT_TRUE(part.has_value()) << part.error().message;
  EXPECT_EQ(part->ending, TrainEnding::kStopped);
  Result<TrainJob> resumed = TrainJob::ToResume(folder / "parts");
  ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
  EXPECT_EQ(resumed->options.scaling, job.options.scaling);
  ASSERT_TRUE(TrainShop(*resumed).has_value());
  for (const char* file : {"metrics.csv", "last.safetensors", "best.safetensors"})
    EXPECT_TRUE(TextOf(folder / "whole" / file) == TextOf(folder / "parts" / file)) << file;
}

TEST(ScalingTraining, ARunIsAPolicyThatSaysWhetherItStepsBack) {
  const TestFolder folder;
  ASSERT_TRUE(TrainShop(ShopJob(folder / "run")).has_value());
  const Result<std::string> verdict = VerdictOfRun(folder / "run");
  ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
  EXPECT_NE(verdict->find("validation episodes"), std::string::npos) << *verdict;
  const Result<std::unique_ptr<ScalingPolicy>> policy =
      MakeScalingPolicy((folder / "run").string());
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  // Of another task.
  const Result<std::unique_ptr<Policy>> other =
      LoadNeuralPolicy(folder / "run", testing::WorldsOf(testing::TwoNodes().scenario).task());
  EXPECT_FALSE(other.has_value());
}

// A rival that cannot be beaten decides. A dearer rival does not, nor does one that is cheaper by
// being late beyond the limit.
TEST(ScalingTraining, ARunStepsBackToTheRivalItDoesNotBeat) {
  const ScalingRecord free{1e-3, 0}, dear{1e3, 0.3}, late{1e-3, 0.9};
  for (const ScalingRecord& record : {free, dear, late}) {
    const TestFolder folder;
    TrainJob job = ShopJob(folder / "run");
    job.options.steps = 64;
    job.options.scaling->rival =
        ScalingRival{.policy = "hpa:cpu=55,down=60s", .record = record, .episodes = 4, .seed = 3};
    ASSERT_TRUE(TrainShop(job).has_value());
    const Result<std::string> decides =
        DecidingSetting((folder / "run").string(), ApplicationOf(*job.scenarios[0].scenario, 0));
    ASSERT_TRUE(decides.has_value()) << decides.error().message;
    EXPECT_EQ(*decides == "hpa:cpu=55,down=60s", record.violation_share == 0) << *decides;
    const Result<TrainJob> resumed = TrainJob::ToResume(folder / "run");
    ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
    EXPECT_EQ(resumed->options.scaling, job.options.scaling);
  }
}

// One request in a hundred thousand: by chance more are late, however many pods there are.
TEST(ScalingChoice, WhereNeitherKeepsTheLimitTheCheapestWithinWhatTheRuleHasDecides) {
  const ScalingWorld world =
      ShopWorld(1, std::regex_replace(testing::kSmallShop, std::regex("qos: 300ms"), "qos: 200ms"));
  const std::vector<TrainingWorld> worlds = {{.scaling = &world}};
  const auto net = std::make_shared<const nn::CandidateNet>(
      MakeLearner(testing::SmallShopOptions(), worlds)->net());
  ThreadPool pool(1);
  const auto chosen = [&](double core_hours, double share, double allowed) {
    const ScalingRival rival{.policy = "hpa:cpu=55",
                             .record = {core_hours, share},
                             .episodes = 4,
                             .seed = 3,
                             .allowed = allowed};
    return ChooseScaling(world, net, {.violations_max = 1e-7, .rival = rival}, &pool);
  };
  const ScalingVerdict dear = chosen(1e3, 0.05, 0.06);
  EXPECT_EQ(dear.allowed, 0.06);
  EXPECT_LE(dear.learned.violation_share, 0.06);
  EXPECT_FALSE(dear.steps_back);
  // Fewer late requests do not save who is dearer, nor lower cost who is later.
  const ScalingVerdict cheap = chosen(1e-3, 0.05, 0.06);
  EXPECT_LT(cheap.learned.violation_share, cheap.of_rule.violation_share + 0.01);
  EXPECT_TRUE(cheap.steps_back);
  EXPECT_TRUE(chosen(1e3, 2e-7, 3e-7).steps_back);
}

// Nothing is learned; how it does here is found, of each seed by its own network.
TEST(ScalingTraining, ANetworkIsJudgedOnAnApplicationItWasNotTrainedOn) {
  const TestFolder folder;
  TrainJob job = ShopJob(folder / "one");
  job.options.scaling->loads = {"ramp"};  // The shorter to judge.
  ASSERT_TRUE(TrainSeeds(job, 2, nullptr, {}).has_value());
  const std::string text = std::regex_replace(testing::kSmallShop, std::regex("low: 20, high: 120"),
                                              "low: 10, high: 60");
  const Result<Scenario> other = ParseScenario(text, "other-shop.yaml");
  ASSERT_TRUE(other.has_value());
  TrainJob judge = ShopJob(folder / "other");
  judge.options.scaling->loads = {"ramp"};
  judge.scenarios = {{.scenario = std::make_shared<const Scenario>(*other), .text = text}};
  judge.options.from = (folder / "one").string();
  judge.options.steps = 0;
  judge.options.seconds = 0;
  for (const Resume resume : {Resume::kNo, Resume::kYes}) {
    if (resume == Resume::kYes) judge = TrainJob::ToResume(folder / "other").value();
    judge.resume = resume;
    const Result<std::vector<TrainSummary>> judged = TrainSeeds(judge, 2, nullptr, {});
    ASSERT_TRUE(judged.has_value()) << judged.error().message;
    EXPECT_EQ((*judged)[1].env_steps, 0);
    for (const char* seed : {"seed-1", "seed-2"}) {
      const auto file = [&](const char* run) {
        return nn::SafetensorsFile::Read(folder / run / seed / "best.safetensors").value();
      };
      nn::CandidateNet net(nn::StoredNetShape(file("one")).value()), same = net;
      ASSERT_TRUE(nn::LoadNet(file("one"), &net).has_value());
      ASSERT_TRUE(nn::LoadNet(file("other"), &same).has_value());
      EXPECT_TRUE(std::ranges::equal(net.parameters(), same.parameters()));
      const auto verdict = StoredVerdict(file("other"));
      ASSERT_TRUE(verdict.has_value() && verdict->has_value());
      EXPECT_NE((*verdict)->of_rule, (*StoredVerdict(file("one")))->of_rule);
    }
  }
  // Only scaling is judged once it is trained.
  judge.options.scaling.reset();
  EXPECT_FALSE(CheckTrainOptions(judge.options).has_value());
}

TEST(ScalingTraining, ACheckpointOfAnotherTaskIsRefused) {
  const TestFolder folder;
  nn::SafetensorsFile file;
  file.SetMetadata("task", "migration");
  file.SetMetadata("features", "x");
  ASSERT_TRUE(file.Write(folder / "a.safetensors").has_value());
  const Result<std::unique_ptr<ScalingPolicy>> policy =
      MakeScalingPolicy((folder / "a.safetensors").string());
  ASSERT_FALSE(policy.has_value());
  EXPECT_NE(policy.error().message.find("trained for the task migration, not scaling"),
            std::string::npos)
      << policy.error().message;
}

TEST(ScalingVerdict, SurvivesItsCheckpoint) {
  const ScalingVerdict verdict{.price = 6.25,
                               .least_share = 0.815,
                               .size = {120.5, 15},
                               .learned = {1.5, 0.008},
                               .rule = "hpa:cpu=50,down=60s",
                               .of_rule = {1.4, 0.009},
                               .episodes = 16,
                               .steps_back = true};
  nn::SafetensorsFile file;
  DescribeScaling(ScalingRows::kRungs, 0.01, verdict, &file);
  EXPECT_EQ(CheckScaling(file).value_or(0), 0.01);
  const Result<std::optional<ScalingVerdict>> stored = StoredVerdict(file);
  ASSERT_TRUE(stored.has_value() && stored->has_value());
  EXPECT_EQ((*stored)->price, verdict.price);
  EXPECT_EQ((*stored)->least_share, verdict.least_share);
  EXPECT_EQ((*stored)->size, verdict.size);
  EXPECT_EQ((*stored)->rule, verdict.rule);
  EXPECT_EQ((*stored)->of_rule.core_hours, verdict.of_rule.core_hours);
  EXPECT_TRUE((*stored)->steps_back);
  EXPECT_TRUE(verdict.of_rule.IsBetterThan(verdict.learned, 0.01));
  EXPECT_FALSE(verdict.of_rule.IsBetterThan(verdict.learned, 0.0085));
}

// What an earlier version found holds for its application alone, and does not say for which.
TEST(ScalingVerdict, OfAnEarlierVersionIsRefused) {
  nn::SafetensorsFile file;
  DescribeScaling(ScalingRows::kRungs, 0.01, std::nullopt, &file);
  EXPECT_TRUE(StoredVerdict(file).has_value());
  file.SetMetadata("decides", "learned");
  file.SetMetadata("price", "20");
  file.SetMetadata("least_per_s", "90");
  const Result<std::optional<ScalingVerdict>> stored = StoredVerdict(file);
  ASSERT_FALSE(stored.has_value());
  EXPECT_NE(stored.error().message.find("train it again"), std::string::npos);
}

// Twice the slots and bounds, a workload more and four times the requests: hardly trained on the
// one, a net serves the other in time, for hardly more than constant pods that know its peak.
TEST(ScalingTraining, ARunServesAnotherApplicationOfOtherSize) {
  const TestFolder folder;
  TrainJob job = ShopJob(folder / "run");
  ASSERT_TRUE(TrainShop(job).has_value());
  std::string text = std::regex_replace(testing::kSmallShop, std::regex("1 to 10"), "1 to 20");
  text = std::regex_replace(text, std::regex("slots: 2"), "slots: 4");
  text = std::regex_replace(text, std::regex("low: 20, high: 120"), "low: 80, high: 480");
  text = std::regex_replace(text, std::regex("calls: \\[db\\]"), "calls: [db, cache]");
  text = std::regex_replace(text, std::regex("(  db: .requests.*)"),
                            "$1\n  cache: {requests: {cpu: 250m, memory: 64Mi}, replicas: 2, "
                            "execution: 5ms}");
  text = std::regex_replace(text, std::regex("(    db: .replicas: .*)"),
                            "$1\n    cache: {replicas: 1 to 20, slots: 1, start_delay: 5s}");
  const Result<Scenario> large = ParseScenario(text, "large-shop.yaml");
  ASSERT_TRUE(large.has_value()) << large.error().message << text;
  ThreadPool pool(1);
  std::vector<NamedScalingPolicy> policies;
  for (const std::string& name : {std::string("static:violations=1%"), (folder / "run").string()})
    policies.push_back({name, {MakeScalingPolicy(name).value()}});
  const ScalingEvaluation evaluation =
      EvaluateScaling(*large, EpisodeUse::kEvaluation, {1}, policies, 3, 1, &pool, {});
  const ScalingSums constant = SumsOf(evaluation, 0), learned = SumsOf(evaluation, 1);
  EXPECT_LT(learned.core_hours, 1.1 * constant.core_hours);
  EXPECT_LT(learned.violation_share, 0.02);
}

}  // namespace
}  // namespace rudderfish
