// SPDX-License-Identifier: Apache-2.0
#include "learn/train_options.h"

// What suits each task, and what earlier systems published.

namespace rudderfish {

void UsePlacementDefaults(TrainOptions* options) {
  options->enlarge_every = 0;
  options->evaluate_every = 32768;
  options->validation_starts = 16;
  options->rollout = {.envs = 32, .steps = 128, .envs_per_slice = 16, .episode_steps_max = 1 << 20};
  options->rollout.lambda = 0.95F;
  options->ppo.learning_rate_start = 1e-3F;
  options->ppo.learning_rate_end = 1e-4F;
  options->ppo.entropy_start = 0.002F;
  options->ppo.gain_prior = 6;
  options->dqn.replay.envs = 32;
  options->dqn.replay.steps = 16;
  options->dqn.replay.episode_steps_max = 1 << 20;
}

void UsePreset(PlacementPreset preset, TrainOptions* options) {
  constexpr int64_t kStepsOfNone = 10'000;
  constexpr int kWidthUnit = 16;
  const presets::DqnSettings published = DqnSettingsOf(preset);
  const auto as_float = [](double value) { return static_cast<float>(value); };
  UsePlacementDefaults(options);
  options->preset = preset;
  options->algorithm = Algorithm::kDqn;
  options->steps = published.total_steps > 0 ? published.total_steps : kStepsOfNone;
  options->hidden = (published.hidden[0] + kWidthUnit / 2) / kWidthUnit * kWidthUnit;
  options->evaluate_every = options->steps / 4;
  options->validation_starts = 4;
  // One update each time that it has acted for so many steps.
  DqnOptions& dqn = options->dqn;
  dqn.replay = {.envs = 1,
                .envs_per_slice = 1,
                .steps = published.train_frequency,
                .episode_steps_max = EpisodeStepsOf(preset),
                .samples_max = published.buffer};
  dqn.updates = 1;
  dqn.warm_up_samples = published.learning_starts;
  dqn.minibatch = published.batch;
  dqn.n_step = 1;
  dqn.gamma = as_float(published.gamma);
  dqn.target_rate = 1;
  dqn.target_every = published.target_copy_steps / published.train_frequency;
  dqn.epsilon_start = as_float(published.epsilon_start);
  dqn.epsilon_end = as_float(published.epsilon_end);
  dqn.epsilon_fall =
      published.exploration_fraction > 0 ? as_float(published.exploration_fraction) : 1;
  dqn.learning_rate_start = dqn.learning_rate_end = as_float(published.learning_rate);
  // Where another algorithm is named in its place.
  options->rollout.gamma = dqn.gamma;
  options->rollout.episode_steps_max = dqn.replay.episode_steps_max;
  options->ppo.gain_prior = 0;
}

void UseScalingDefaults(TrainOptions* options) {
  UsePlacementDefaults(options);
  options->evaluate_every = 32768;
  options->rollout.envs = 64;
  options->rollout.steps = 64;
  options->ppo.gain_prior = 0.7F;  // More, and what the Model has no fear of is never tried.
  options->ppo.entropy_start = 0.003F;
  options->ppo.learning_rate_start = 2e-3F;
  options->ppo.advantage_max = 4;
  options->ppo.value_error_max = 2;
  options->ppo.value_weight = 0.25F;
  options->ppo.max_gradient_norm = 5;
}

void UseScalingPreset(ScalingPreset preset, Algorithm algorithm, TrainOptions* options) {
  options->algorithm = algorithm;
  options->scaling->preset = preset;
  options->steps = 5000;
  options->evaluate_every = options->steps / 4;
  options->hidden = 64;
  options->encoder = SeesGraph(preset) ? nn::Encoder::kGatv2 : nn::Encoder::kMlp;
  options->rounds = SeesGraph(preset) ? 2 : 1;
  const bool is_a2c = algorithm == Algorithm::kA2c;
  const bool is_short = algorithm == Algorithm::kRecurrentPpo && !SeesGraph(preset);
  // 512 steps are 500 there: minibatches of 64 part them evenly. A2C's 64 are 5.
  options->rollout = {.envs = 1,
                      .steps = is_a2c     ? 64
                               : is_short ? 128
                                          : 512,
                      .envs_per_slice = 1,
                      .episode_steps_max = ScalingPresetTask::kEpisodeSteps,
                      .gamma = 0.99F,
                      .lambda = is_a2c ? 1.0F : 0.95F};
  options->ppo = {.epochs = SeesGraph(preset) ? 20 : 10,
                  .minibatch = is_short ? 128 : 64,
                  .entropy_start = SeesGraph(preset) ? 0.01F : 0.0F,
                  .learning_rate_start = is_a2c ? 7e-4F : 3e-4F,
                  .learning_rate_end = is_a2c ? 7e-4F : 3e-4F,
                  .gain_prior = 0};
  options->dqn.replay.episode_steps_max = ScalingPresetTask::kEpisodeSteps;
}

void UseEvolutionDefaults(TrainOptions* options) { options->evaluate_every = 1 << 20; }

void UseRoutingDefaults(TrainOptions* options) {
  options->algorithm = Algorithm::kEvolution;
  options->evaluate_every = 1 << 18;
  options->validation_starts = 64;
  options->hidden = 16;  // Its network is linear.
}

void UseA2cDefaults(TrainOptions* options) { options->rollout.steps = 8; }

}  // namespace rudderfish
