// SPDX-License-Identifier: Apache-2.0
#include "learn/rollout.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"
#include "nn/softmax.h"

namespace rudderfish {
namespace {

// Streams of the training seed, so that no two uses of chance meet.
constexpr uint64_t kChoiceStream = uint64_t{1} << 40;

}  // namespace

void EpisodeTotals::Add(const EpisodeTotals& other) {
  episodes += other.episodes;
  steps += other.steps;
  rewards += other.rewards;
  initial_ms += other.initial_ms;
  final_ms += other.final_ms;
  moves += other.moves;
  truncated += other.truncated;
}

void EstimateAdvantages(std::span<const float> gammas, float lambda, SliceRollout* rollout) {
  const int envs = static_cast<int>(gammas.size());
  const int steps = static_cast<int>(rollout->rewards.size()) / envs;
  rollout->advantages.resize(rollout->rewards.size());
  rollout->returns.resize(rollout->rewards.size());
  for (int i = 0; i < envs; ++i) {
    const float gamma = gammas[i];
    float advantage = 0;
    float next_value = rollout->last_value[i];
    for (int step = steps - 1; step >= 0; --step) {
      const int t = step * envs + i;
      const float continues = rollout->ended[t] ? 0.0f : 1.0f;
      const float delta = rollout->rewards[t] + gamma * next_value * continues - rollout->values[t];
      advantage = delta + gamma * lambda * continues * advantage;
      rollout->advantages[t] = advantage;
      rollout->returns[t] = advantage + rollout->values[t];
      next_value = rollout->values[t];
    }
  }
}

VectorEnv::VectorEnv(std::span<const TrainingWorld> worlds, uint64_t seed,
                     const RolloutOptions& options)
    : options_(options), seed_(seed) {
  CHECK(!worlds.empty());
  CHECK_EQ(options.envs % options.envs_per_slice, 0);
  slices_.resize(options.envs / options.envs_per_slice);
  uint64_t id = 0;
  for (Slice& slice : slices_) {
    slice.workspace = std::make_unique<nn::Workspace>(nn::Workspace::Keep::kNothing);
    slice.rollout.questions.widths = slice.beyond.widths = worlds[0].task->widths();
    slice.envs.reserve(
        options.envs_per_slice);  // Their evaluators point at their states: they must not move.
    for (int i = 0; i < options.envs_per_slice; ++i) {
      const TrainingWorld& at = worlds[id % worlds.size()];
      slice.envs.emplace_back(*at.world, *at.task, at.law, seed, id++,
                              std::min(options.episode_steps_max, at.task->max_steps()));
      slice.envs.back().Reset(0);
      slice.gammas.push_back(options.gamma * static_cast<float>(at.task->Discount()));
    }
  }
}

void VectorEnv::Collect(const nn::CandidateNet& net, uint64_t iteration, ThreadPool* pool) {
  pool->ParallelFor(slice_count(), [&](int index, int) { CollectSlice(net, iteration, index); });
  totals_ = {};
  for (const Slice& slice : slices_) totals_.Add(slice.totals);
}

float VectorEnv::ValueOf(const nn::CandidateNet& net, Env* env, Slice* slice) {
  slice->beyond.Clear();
  env->Encode(&slice->beyond);
  slice->logits.resize(std::max<size_t>(slice->logits.size(), env->space().count()));
  float stop = 0, value = 0;
  net.Forward(slice->beyond, 0, 1, slice->workspace.get(),
              std::span(slice->logits.data(), env->space().count()), std::span(&stop, 1),
              std::span(&value, 1));
  return value;
}

void VectorEnv::CollectSlice(const nn::CandidateNet& net, uint64_t iteration, int index) {
  Slice& slice = slices_[index];
  SliceRollout& rollout = slice.rollout;
  const int envs = options_.envs_per_slice;
  const int samples = envs * options_.steps;
  rollout.questions.Clear();
  rollout.choices.resize(samples);
  rollout.log_probability.resize(samples);
  rollout.values.resize(samples);
  rollout.rewards.resize(samples);
  rollout.ended.resize(samples);
  rollout.last_value.resize(envs);
  slice.stop.resize(envs);
  slice.value.resize(envs);
  slice.totals = {};
  for (int step = 0; step < options_.steps; ++step) {
    const int first = step * envs;
    for (Env& env : slice.envs) env.Encode(&rollout.questions);
    const std::span<const int32_t> begin(rollout.questions.candidate_begin.data() + first,
                                         envs + 1);
    const size_t candidates = begin.back() - begin.front();
    const size_t alternatives = nn::AlternativeCount(begin);
    slice.logits.resize(std::max(slice.logits.size(), candidates));
    slice.log_probabilities.resize(std::max(slice.log_probabilities.size(), alternatives));
    slice.probabilities.resize(slice.log_probabilities.size());
    net.Forward(rollout.questions, first, envs, slice.workspace.get(),
                std::span(slice.logits.data(), candidates), slice.stop, slice.value);
    nn::Softmax(begin, std::span(slice.logits.data(), candidates), slice.stop, {},
                std::span(slice.log_probabilities.data(), alternatives),
                std::span(slice.probabilities.data(), alternatives), net.kernels());
    for (int i = 0; i < envs; ++i) {
      Env& env = slice.envs[i];
      const int count = begin[i + 1] - begin[i];
      const size_t at = static_cast<size_t>(begin[i] - begin[0]) + i;
      Rng rng(seed_, kChoiceStream + index * envs + i, iteration * options_.steps + step);
      const int choice = nn::SampleAlternative(
          std::span(slice.probabilities.data() + at, count + 1), rng.Uniform());
      const int sample = first + i;
      rollout.choices[sample] = choice;
      rollout.log_probability[sample] = slice.log_probabilities[at + choice];
      rollout.values[sample] = slice.value[i];
      const StepResult result = env.Step(choice == count ? kStop : choice);
      float reward = static_cast<float>(result.reward);
      slice.totals.rewards += result.reward;
      if (result.truncated) reward += slice.gammas[i] * ValueOf(net, &env, &slice);
      rollout.rewards[sample] = reward;
      rollout.ended[sample] = result.terminated || result.truncated;
      ++slice.totals.steps;
      if (rollout.ended[sample]) {
        ++slice.totals.episodes;
        slice.totals.truncated += result.truncated;
        slice.totals.initial_ms += env.initial_latency_ms();
        slice.totals.final_ms += env.model().Now().latency_ms;
        slice.totals.moves += env.question().step;
        env.Reset();
      }
    }
  }
  for (int i = 0; i < envs; ++i) rollout.last_value[i] = ValueOf(net, &slice.envs[i], &slice);
  EstimateAdvantages(slice.gammas, options_.lambda, &rollout);
}

std::vector<EnvCursor> VectorEnv::Cursors() const {
  std::vector<EnvCursor> cursors;
  for (const Slice& slice : slices_) {
    for (const Env& env : slice.envs) cursors.push_back(env.cursor());
  }
  return cursors;
}

Result<void> VectorEnv::Restore(std::span<const EnvCursor> cursors, ThreadPool* pool) {
  CHECK_EQ(cursors.size(), static_cast<size_t>(options_.envs));
  std::vector<Result<void>> results(slices_.size());
  pool->ParallelFor(slice_count(), [&](int index, int) {
    for (int i = 0; i < options_.envs_per_slice && results[index]; ++i) {
      results[index] = slices_[index].envs[i].Restore(cursors[index * options_.envs_per_slice + i]);
    }
  });
  for (Result<void>& result : results) TRY(std::move(result));
  return {};
}

void VectorEnv::Profile() {
  for (Slice& slice : slices_) slice.workspace->profile.state = nn::DenseProfile::State::kOn;
}

nn::DenseProfile VectorEnv::profile() const {
  nn::DenseProfile sum;
  for (const Slice& slice : slices_) {
    sum.seconds += slice.workspace->profile.seconds;
    sum.flops += slice.workspace->profile.flops;
  }
  return sum;
}

}  // namespace rudderfish
