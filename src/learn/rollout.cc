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

void EstimateAdvantages(std::span<const float> gammas, float lambda, SliceRollout* rollout) {
  const int envs = static_cast<int>(gammas.size());
  const int steps = static_cast<int>(rollout->rewards.size()) / envs;
  rollout->advantages.resize(rollout->rewards.size());
  rollout->returns.resize(rollout->rewards.size());
  for (int i = 0; i < envs; ++i) {
    float advantage = 0;
    float next_value = rollout->last_value[i];
    for (int step = steps - 1; step >= 0; --step) {
      const int t = step * envs + i;
      const float continues = rollout->ended[t] ? 0.0f : 1.0f;
      const float gamma =
          rollout->discounts.empty() ? gammas[i] : gammas[i] * rollout->discounts[t];
      const float delta = rollout->rewards[t] + gamma * next_value * continues - rollout->values[t];
      advantage = delta + gamma * lambda * continues * advantage;
      rollout->advantages[t] = advantage;
      rollout->returns[t] = advantage + rollout->values[t];
      next_value = rollout->values[t];
    }
  }
}

VectorEnv::VectorEnv(std::span<const TrainingWorld> worlds, uint64_t seed,
                     const RolloutOptions& options, int memory)
    : options_(options), seed_(seed), memory_(memory), may_stop_(worlds[0].moves()) {
  CHECK_EQ(options.envs % options.envs_per_slice, 0);
  for (int first = 0; first < options.envs; first += options.envs_per_slice) {
    Slice& slice = slices_.emplace_back(worlds, seed, first, options.envs_per_slice,
                                        options.episode_steps_max);
    slice.remembered.resize(static_cast<size_t>(options.envs_per_slice) * memory);
    slice.recalled.resize(memory);
    slice.rollout.questions.widths = slice.beyond.widths = worlds[0].widths();
    for (const auto& env : slice.envs)
      slice.gammas.push_back(options.gamma * static_cast<float>(env->Discount()));
  }
}

void VectorEnv::Collect(const nn::CandidateNet& net, uint64_t iteration, ThreadPool* pool) {
  pool->ParallelFor(slice_count(), [&](int index, int) { CollectSlice(net, iteration, index); });
  totals_ = {};
  for (const Slice& slice : slices_) totals_.Add(slice.totals);
}

// Of the question that environment `i` asks now; what it remembers stays.
float VectorEnv::ValueOf(const nn::CandidateNet& net, int i, Slice* slice) {
  Environment& env = *slice->envs[i];
  slice->beyond.Clear();
  env.Encode(&slice->beyond);
  const auto count = static_cast<size_t>(env.candidate_count());
  std::copy_n(slice->remembered.begin() + static_cast<ptrdiff_t>(i) * memory_, memory_,
              slice->recalled.begin());
  slice->logits.resize(std::max(slice->logits.size(), count));
  float stop = 0, value = 0;
  net.Forward(slice->beyond, 0, 1, slice->workspace.get(), std::span(slice->logits.data(), count),
              std::span(&stop, 1), std::span(&value, 1), slice->recalled);
  return value;
}

void VectorEnv::CollectSlice(const nn::CandidateNet& net, uint64_t iteration, int index) {
  Slice& slice = slices_[index];
  SliceRollout& rollout = slice.rollout;
  const int envs = options_.envs_per_slice;
  const int samples = envs * options_.steps;
  CHECK_EQ(net.shape().memory(), memory_);
  rollout.questions.Clear();
  rollout.choices.resize(samples);
  rollout.log_probability.resize(samples);
  rollout.values.resize(samples);
  rollout.rewards.resize(samples);
  rollout.ended.resize(samples);
  rollout.discounts.resize(samples);
  rollout.memory.resize(static_cast<size_t>(samples) * memory_);
  rollout.last_value.resize(envs);
  slice.totals = {};
  for (int step = 0; step < options_.steps; ++step) {
    const int first = step * envs;
    for (const auto& env : slice.envs) env->Encode(&rollout.questions);
    const std::span<const int32_t> begin(rollout.questions.candidate_begin.data() + first,
                                         envs + 1);
    const size_t candidates = begin.back() - begin.front();
    const size_t alternatives = nn::AlternativeCount(begin);
    slice.logits.resize(std::max(slice.logits.size(), candidates));
    slice.log_probabilities.resize(std::max(slice.log_probabilities.size(), alternatives));
    slice.probabilities.resize(slice.log_probabilities.size());
    std::copy(slice.remembered.begin(), slice.remembered.end(),
              rollout.memory.begin() + static_cast<ptrdiff_t>(first) * memory_);
    net.Forward(rollout.questions, first, envs, slice.workspace.get(),
                std::span(slice.logits.data(), candidates), slice.stop, slice.value,
                slice.remembered);
    if (!may_stop_) std::fill(slice.stop.begin(), slice.stop.end(), nn::kForbidden);
    nn::Softmax(begin, std::span(slice.logits.data(), candidates), slice.stop, {},
                std::span(slice.log_probabilities.data(), alternatives),
                std::span(slice.probabilities.data(), alternatives), net.kernels());
    for (int i = 0; i < envs; ++i) {
      Environment& env = *slice.envs[i];
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
      const auto discount = static_cast<float>(result.discount);
      if (result.truncated) reward += slice.gammas[i] * discount * ValueOf(net, i, &slice);
      rollout.discounts[sample] = discount;
      rollout.rewards[sample] = reward;
      rollout.ended[sample] = result.terminated || result.truncated;
      slice.EndStep(i, result);
      if (rollout.ended[sample] != 0) {
        std::fill_n(slice.remembered.begin() + static_cast<ptrdiff_t>(i) * memory_, memory_, 0.0f);
      }
    }
  }
  for (int i = 0; i < envs; ++i) rollout.last_value[i] = ValueOf(net, i, &slice);
  EstimateAdvantages(slice.gammas, options_.lambda, &rollout);
}

std::vector<EnvCursor> VectorEnv::Cursors() const {
  std::vector<EnvCursor> cursors;
  for (const Slice& slice : slices_) {
    for (const auto& env : slice.envs) cursors.push_back(env->cursor());
  }
  return cursors;
}

Result<void> VectorEnv::Restore(std::span<const EnvCursor> cursors, ThreadPool* pool) {
  CHECK_EQ(cursors.size(), static_cast<size_t>(options_.envs));
  std::vector<Result<void>> results(slices_.size());
  pool->ParallelFor(slice_count(), [&](int index, int) {
    results[index] = slices_[index].Restore(
        cursors.subspan(index * options_.envs_per_slice, options_.envs_per_slice));
  });
  for (Result<void>& result : results) TRY(std::move(result));
  return {};
}

std::vector<float> VectorEnv::Memory() const {
  std::vector<float> all;
  for (const Slice& slice : slices_)
    all.insert(all.end(), slice.remembered.begin(), slice.remembered.end());
  return all;
}

void VectorEnv::RestoreMemory(std::span<const float> memory) {
  CHECK_EQ(memory.size(), static_cast<size_t>(options_.envs) * memory_);
  for (Slice& slice : slices_) {
    std::copy_n(memory.begin(), slice.remembered.size(), slice.remembered.begin());
    memory = memory.subspan(slice.remembered.size());
  }
}

void VectorEnv::AddWorkspaces(std::vector<nn::Workspace*>* all) {
  for (Slice& slice : slices_) all->push_back(slice.workspace.get());
}

}  // namespace rudderfish
