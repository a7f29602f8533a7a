// SPDX-License-Identifier: Apache-2.0
#include "learn/train_bench.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace rudderfish {
namespace {

constexpr int kLanes = 16;  // Environments side by side, as in a slice of training.
constexpr double kWarmUpShare = 0.1;
constexpr int kStepsMax = 1 << 20;  // Of an episode: it ends before.

// Environments that decide by lot.
class RandomPlay {
 public:
  RandomPlay(std::span<const TrainingWorld> worlds, uint64_t seed)
      : rng_(seed), may_stop_(worlds[0].moves()) {
    questions_.widths = worlds[0].widths();
    for (int i = 0; i < kLanes; ++i) {
      envs_.push_back(worlds[i % worlds.size()].MakeEnv(seed, i, kStepsMax));
      envs_.back()->Reset(0);
    }
  }

  // One step of every environment; returns how many.
  int Step() {
    questions_.Clear();
    for (const auto& env : envs_) env->Encode(&questions_);
    for (const auto& env : envs_) {
      const int count = env->candidate_count();
      const auto choice =
          static_cast<int>(rng_.Below(static_cast<uint32_t>(count + (may_stop_ ? 1 : 0))));
      const StepResult result = env->Step(choice == count ? kStop : choice);
      if (result.terminated || result.truncated) env->Reset();
    }
    return kLanes;
  }

  const GraphBatch& questions() const { return questions_; }

 private:
  Rng rng_;
  bool may_stop_;
  std::vector<std::unique_ptr<Environment>> envs_;
  GraphBatch questions_;
};

// Calls `work`, which says how much it did, until the time is over; returns the rate.
template <class Work>
double RatePerSecond(double seconds, Work&& work) {
  const SystemClock clock;
  const Instant start = clock.Now();
  double done = 0, elapsed = 0;
  do {
    done += static_cast<double>(work());
    elapsed = Seconds(clock.Now() - start);
  } while (elapsed < seconds);
  return done / elapsed;
}

}  // namespace

double MeasureEnvStepsPerSecond(std::span<const TrainingWorld> worlds, uint64_t seed,
                                double seconds) {
  CHECK(!worlds.empty());
  RandomPlay play(worlds, seed);
  const auto steps = [&] {
    int done = 0;
    for (int i = 0; i < 16; ++i) done += play.Step();
    return done;
  };
  RatePerSecond(seconds * kWarmUpShare, steps);
  return RatePerSecond(seconds, steps);
}

double MeasureScalingStepsPerSecond(const ScalingWorld& world, uint64_t seed, double seconds) {
  std::vector<std::unique_ptr<ScalingEnv>> envs;
  for (int i = 0; i < kLanes; ++i) {
    envs.push_back(std::make_unique<ScalingEnv>(world, seed, i, kStepsMax));
    envs.back()->Reset(0);
  }
  GraphBatch questions{.widths = ScalingTask::Widths(ScalingRows::kRungs)};
  const auto step = [&] {
    questions.Clear();
    for (const auto& env : envs) env->Encode(&questions);
    for (const auto& env : envs) {
      if (env->Step(env->AdvisedChoice()).truncated) env->Reset(env->cursor().episode + 1);
    }
    return kLanes;
  };
  RatePerSecond(seconds * kWarmUpShare, step);
  return RatePerSecond(seconds, step);
}

TrainBench MeasureTraining(const TrainOptions& options, std::span<const TrainingWorld> worlds,
                           double seconds) {
  CHECK(!worlds.empty());
  TrainBench bench{.threads = options.threads,
                   .epochs = options.algorithm == Algorithm::kPpo ? options.ppo.epochs : 1};
  ThreadPool pool(options.threads);
  const std::unique_ptr<Learner> learner = MakeLearner(options, worlds);
  uint64_t iteration = 0;
  const auto iterate = [&] { return learner->Iterate(++iteration, 0.5, &pool).env_steps; };
  RatePerSecond(seconds * kWarmUpShare, iterate);
  bench.env_steps_per_second = RatePerSecond(seconds, iterate);

  const std::vector<nn::Workspace*> workspaces = learner->Workspaces();
  for (nn::Workspace* workspace : workspaces) {
    workspace->profile = {.state = nn::DenseProfile::State::kOn};
  }
  const SystemClock clock;
  const Instant start = clock.Now();
  double steps = 0;
  RatePerSecond(seconds / 2, [&] {
    const int64_t done = iterate();
    steps += static_cast<double>(done);
    return done;
  });
  const double wall = Seconds(clock.Now() - start);
  double dense = 0, flops = 0;
  for (const nn::Workspace* workspace : workspaces) {
    dense += workspace->profile.seconds;
    flops += workspace->profile.flops;
  }
  bench.mflop_per_step = flops / steps / 1e6;
  bench.dense_share = dense / (wall * options.threads);
  bench.dense_gflops = dense > 0 ? flops / dense / 1e9 : 0;

  RandomPlay play(worlds, options.seed);
  double forward = 0, samples = 0;
  for (int i = 0; i < 64; ++i) {
    samples += play.Step();
    forward += learner->net().ForwardFlops(play.questions());
  }
  bench.mflop_per_sample = forward / samples / 1e6;
  return bench;
}

}  // namespace rudderfish
