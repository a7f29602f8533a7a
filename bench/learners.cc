// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "evaluation/comparison.h"
#include "evaluation/statistics.h"
#include "learn/learner.h"
#include "learn/train_options.h"
#include "learn/training_worlds.h"
#include "scenario/scenario.h"

// Every algorithm with every encoder: trained to scale one application under one load, for equally
// many steps from the same seeds, judged on the same held-out episodes of the Model of load. Prints
// the table of docs/results.md; the same bytes for any number of threads.
//
//   learners SCENARIO LOAD STEPS SEEDS EPISODES THREADS

namespace rudderfish {
namespace {

constexpr uint64_t kHeldOut = 0x68656C646F757421;  // Episodes that no learner and no choice sees.
constexpr double kLateMax = 0.01;

struct Bench {
  std::shared_ptr<const Scenario> scenario;
  std::string load;
  int64_t steps = 40960;
  int seeds = 3, episodes = 64;
  ThreadPool* pool = nullptr;
};

struct Recipe {
  Algorithm algorithm = Algorithm::kPpo;
  ScalingRows rows = ScalingRows::kRungs;
  nn::Encoder encoder = nn::Encoder::kRelational;

  std::string Sight() const {
    return rows == ScalingRows::kRungs ? "rungs alone" : std::string(nn::EncoderName(encoder));
  }
};

TrainOptions OptionsOf(const Bench& bench, const Recipe& recipe) {
  TrainOptions options{.algorithm = recipe.algorithm};
  UseScalingDefaults(&options);
  if (recipe.algorithm == Algorithm::kA2c) UseA2cDefaults(&options);
  options.scaling = {.violations_max = kLateMax, .loads = {bench.load}, .rows = recipe.rows};
  options.encoder = recipe.encoder;
  options.steps = bench.steps;
  options.threads = bench.pool->size();
  return options;
}

TrainingWorlds WorldsOf(const Bench& bench, const Recipe& recipe) {
  const TrainOptions options = OptionsOf(bench, recipe);
  Result<TrainingWorlds> worlds =
      TrainingWorlds::Make({{bench.scenario}}, 0, options.threads, options.scaling);
  if (!worlds) {
    fmt::print(stderr, "{}\n", worlds.error().message);
    std::exit(1);
  }
  return *std::move(worlds);
}

// Cost of a decision in units of rewards, late requests at their price included, of each episode.
template <class Choose>
std::vector<double> Play(const Bench& bench, const ScalingWorld& world, const Choose& choose) {
  std::vector<double> costs(static_cast<size_t>(bench.episodes));
  bench.pool->ParallelFor(bench.episodes, [&](int e, int) {
    Rng rng(kHeldOut, 0, static_cast<uint64_t>(e));
    const uint64_t seed = rng.Next64();
    const double price = world.PriceAt(rng.Uniform());
    ScalingEnv env(world, 0, 0, world.decisions);
    env.ResetTo({world.loads[0], seed, price});
    auto next = choose();
    while (!env.Step(next(&env)).truncated) {
    }
    costs[e] = env.figures().final / (1 + price / ScalingWorld::kPriceScale);
  });
  return costs;
}

std::vector<double> PlayNet(const Bench& bench, const ScalingWorld& world,
                            const nn::CandidateNet& net) {
  return Play(bench, world, [&] {
    return [&net, workspace = std::make_shared<nn::Workspace>(nn::Workspace::Keep::kNothing),
            question = GraphBatch{.widths = net.shape().widths},
            memory = std::vector<float>(net.shape().memory())](ScalingEnv* env) mutable {
      question.Clear();
      env->Encode(&question);
      std::vector<float> logits(env->candidate_count()), stop(1), value(1);
      net.Forward(question, 0, 1, workspace.get(), logits, stop, value, memory);
      return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    };
  });
}

RunMatrix Trained(const Bench& bench, const Recipe& recipe, const TrainingWorlds& worlds) {
  RunMatrix runs{.starts = bench.episodes, .seeds = bench.seeds};
  runs.values.resize(static_cast<size_t>(bench.episodes) * bench.seeds);
  TrainOptions options = OptionsOf(bench, recipe);
  for (int seed = 0; seed < bench.seeds; ++seed) {
    options.seed = static_cast<uint64_t>(seed) + 1;
    const std::unique_ptr<Learner> learner = MakeLearner(options, worlds.list());
    int64_t done = 0;
    for (uint64_t iteration = 1; done < bench.steps; ++iteration) {
      const double progress = static_cast<double>(done) / static_cast<double>(bench.steps);
      done += learner->Iterate(iteration, progress, bench.pool).env_steps;
    }
    const std::vector<double> costs = PlayNet(bench, *worlds.first().scaling, learner->net());
    for (int e = 0; e < bench.episodes; ++e) runs.values[e * bench.seeds + seed] = costs[e];
    fmt::print(stderr, "{} {} seed {}: {:.4f}\n", AlgorithmName(recipe.algorithm), recipe.Sight(),
               seed + 1, Mean(costs));
  }
  return runs;
}

void PrintRow(std::string_view algorithm, std::string_view sight, const RunMatrix& runs,
              const RunMatrix& baseline) {
  const BootstrapOptions options{.seed = 1};
  fmt::print("| {} | {} | {:.4f} | {:+.4f} {} |\n", algorithm, sight, Mean(runs.values),
             PairedDifference(runs, baseline),
             IntervalText(BootstrapPairedDifference(runs, baseline, options), 4));
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(stderr, "learners SCENARIO LOAD STEPS SEEDS EPISODES THREADS\n");
    return 2;
  }
  Result<Scenario> scenario = LoadScenario(argv[1]);
  if (!scenario) {
    fmt::print(stderr, "{}\n", scenario.error().message);
    return 1;
  }
  ThreadPool pool(std::max(1, std::atoi(argv[6])));
  const Bench bench{.scenario = std::make_shared<const Scenario>(*std::move(scenario)),
                    .load = argv[2],
                    .steps = std::atoll(argv[3]),
                    .seeds = std::max(1, std::atoi(argv[4])),
                    .episodes = std::max(2, std::atoi(argv[5])),
                    .pool = &pool};
  const TrainingWorlds rungs = WorldsOf(bench, {});
  const TrainingWorlds graph = WorldsOf(bench, {.rows = ScalingRows::kCallGraph});
  const ScalingWorld& world = *rungs.first().scaling;

  fmt::print("| algorithm | sees | cost | against ppo on rungs alone, 95 % |\n|---|---|---|---|\n");
  const RunMatrix baseline = Trained(bench, {}, rungs);
  const auto untrained = [&](const char* name, const std::vector<double>& costs) {
    PrintRow(name, "", {bench.episodes, 1, costs}, baseline);
  };
  untrained("the best simple rule",
            Play(bench, world, [] { return [](ScalingEnv* env) { return env->RuleChoice(); }; }));
  untrained("what the Model advises", Play(bench, world, [] {
              return [](ScalingEnv* env) { return env->AdvisedChoice(); };
            }));
  for (const Algorithm algorithm :
       {Algorithm::kPpo, Algorithm::kRecurrentPpo, Algorithm::kA2c, Algorithm::kDqn}) {
    const std::string_view name = AlgorithmName(algorithm);
    const Recipe first{.algorithm = algorithm};
    PrintRow(name, first.Sight(),
             algorithm == Algorithm::kPpo ? baseline : Trained(bench, first, rungs), baseline);
    for (const std::string_view encoder : nn::kEncoderNames) {
      const Recipe recipe{algorithm, ScalingRows::kCallGraph, *nn::EncoderNamed(encoder)};
      PrintRow(name, recipe.Sight(), Trained(bench, recipe, graph), baseline);
    }
  }
  return 0;
}

}  // namespace
}  // namespace rudderfish

int main(int argc, char** argv) { return rudderfish::Main(argc, argv); }
