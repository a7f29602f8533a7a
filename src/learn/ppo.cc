// SPDX-License-Identifier: Apache-2.0
#include "learn/ppo.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "nn/softmax.h"

namespace rudderfish {
namespace {

constexpr uint64_t kShuffleStream = uint64_t{2} << 40;

}  // namespace

Ppo::Ppo(const PpoOptions& options, uint64_t seed, nn::CandidateNet* net)
    : options_(options),
      seed_(seed),
      net_(net),
      adam_(net->parameters().size(), {.epsilon = 1e-6f, .max_gradient_norm = options.max_gradient_norm},
            net->kernels()),
      gradient_(net->parameters().size()) {
  CHECK_EQ(options.minibatch % kChunkSamples, 0);
  chunks_.resize(options.minibatch / kChunkSamples);
  for (Chunk& chunk : chunks_) {
    chunk.questions.widths = net->shape().widths;
    chunk.gradient.resize(net->parameters().size());
    chunk.workspace = std::make_unique<nn::Workspace>();
  }
}

void Ppo::Normalise(VectorEnv* envs, PpoMetrics* metrics) {
  advantages_.clear();
  double sum_return = 0, squares_return = 0, squares_error = 0;
  for (int s = 0; s < envs->slice_count(); ++s) {
    const SliceRollout& r = envs->slice(s);
    advantages_.insert(advantages_.end(), r.advantages.begin(), r.advantages.end());
    for (size_t i = 0; i < r.returns.size(); ++i) {
      sum_return += r.returns[i];
      squares_return += 1.0 * r.returns[i] * r.returns[i];
      squares_error += 1.0 * r.advantages[i] * r.advantages[i];
    }
  }
  const double n = static_cast<double>(advantages_.size());
  double sum = 0, squares = 0;
  for (float a : advantages_) sum += a, squares += 1.0 * a * a;
  const double mean = sum / n;
  const double deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
  for (float& a : advantages_) a = static_cast<float>((a - mean) / (deviation + 1e-8));
  const double variance = squares_return / n - sum_return / n * (sum_return / n);
  metrics->explained_variance = variance > 0 ? 1 - squares_error / n / variance : 0;
}

void Ppo::Shuffle(uint64_t iteration, int epoch) {
  order_.resize(advantages_.size());
  std::iota(order_.begin(), order_.end(), 0);
  Rng rng(seed_, kShuffleStream + epoch, iteration);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng.Below(static_cast<uint32_t>(i))]);
}

PpoMetrics Ppo::Update(VectorEnv* envs, uint64_t iteration, double progress, ThreadPool* pool) {
  PpoMetrics metrics;
  Normalise(envs, &metrics);
  const float fall = static_cast<float>(std::clamp(progress, 0.0, 1.0));
  const float learning_rate =
      options_.learning_rate_start + fall * (options_.learning_rate_end - options_.learning_rate_start);
  const Weights weights{.entropy = options_.entropy_start * (1 - fall), .per_sample = 1.0f / options_.minibatch};
  int updates = 0;
  int64_t samples = 0;
  for (int epoch = 0; epoch < options_.epochs; ++epoch) {
    Shuffle(iteration, epoch);
    for (size_t at = 0; at + options_.minibatch <= order_.size(); at += options_.minibatch) {
      pool->ParallelFor(static_cast<int>(chunks_.size()), [&](int c, int) {
        const std::span<const int32_t> part(order_.data() + at + c * kChunkSamples, kChunkSamples);
        Accumulate(envs, part, weights, &chunks_[c]);
      });
      std::fill(gradient_.begin(), gradient_.end(), 0.0f);
      for (const Chunk& chunk : chunks_) {
        for (size_t i = 0; i < gradient_.size(); ++i) gradient_[i] += chunk.gradient[i];
        metrics.policy_loss += chunk.policy_loss;
        metrics.value_loss += chunk.value_loss;
        metrics.entropy += chunk.entropy;
        metrics.approx_kl += chunk.approx_kl;
        metrics.clip_fraction += chunk.clipped;
      }
      metrics.gradient_norm += adam_.Step(net_->parameters(), gradient_, learning_rate);
      ++updates;
      samples += options_.minibatch;
    }
  }
  for (double* sum : {&metrics.policy_loss, &metrics.value_loss, &metrics.entropy, &metrics.approx_kl,
                      &metrics.clip_fraction}) {
    *sum /= std::max<int64_t>(1, samples);
  }
  metrics.gradient_norm /= std::max(1, updates);
  metrics.learning_rate = learning_rate;
  return metrics;
}

// Loss of one sample with its derivatives. With p the policy, A the advantage, r = p(a) / p_old(a):
//   L = -min(r A, clip(r) A) + value_weight (V - R)^2 - entropy_weight H(p)
// dL/dlogit_j = dL/dlog p(a) (1[j = a] - p_j) + entropy_weight p_j (log p_j + H)
void Ppo::Accumulate(VectorEnv* envs, std::span<const int32_t> samples, const Weights& weights, Chunk* chunk) {
  const int per_slice = envs->options().envs_per_slice * envs->options().steps;
  chunk->questions.Clear();
  for (int32_t sample : samples) chunk->questions.Append(envs->slice(sample / per_slice).questions, sample % per_slice);
  std::fill(chunk->gradient.begin(), chunk->gradient.end(), 0.0f);
  chunk->policy_loss = chunk->value_loss = chunk->entropy = chunk->approx_kl = chunk->clipped = 0;
  const auto loss = [&](const nn::CandidateNet::Heads& heads) {
    const std::span<const int32_t> begin(chunk->questions.candidate_begin.data() + heads.first, heads.count + 1);
    const size_t alternatives = nn::AlternativeCount(begin);
    chunk->log_probabilities.resize(std::max(chunk->log_probabilities.size(), alternatives));
    chunk->probabilities.resize(chunk->log_probabilities.size());
    nn::Softmax(begin, heads.logits, heads.stop, {}, std::span(chunk->log_probabilities.data(), alternatives),
                std::span(chunk->probabilities.data(), alternatives), net_->kernels());
    for (int i = 0; i < heads.count; ++i) {
      const int32_t sample = samples[heads.first + i];
      const SliceRollout& r = envs->slice(sample / per_slice);
      const int32_t local = sample % per_slice;
      const int count = begin[i + 1] - begin[i];
      const size_t candidate = begin[i] - begin[0];
      const float* log_p = chunk->log_probabilities.data() + candidate + i;
      const float* p = chunk->probabilities.data() + candidate + i;
      const int choice = r.choices[local];
      const float advantage = advantages_[sample];
      const float log_ratio = log_p[choice] - r.log_probability[local];
      const float ratio = std::exp(std::min(log_ratio, 20.0f));
      const float clipped = std::clamp(ratio, 1 - options_.clip, 1 + options_.clip);
      const bool unclipped = ratio * advantage <= clipped * advantage;
      const float entropy = nn::Entropy(std::span(log_p, count + 1), std::span(p, count + 1));
      const float error = heads.value[i] - r.returns[local];
      chunk->policy_loss -= std::min(ratio * advantage, clipped * advantage);
      chunk->value_loss += error * error;
      chunk->entropy += entropy;
      chunk->approx_kl += ratio - 1 - log_ratio;
      chunk->clipped += std::abs(ratio - 1) > options_.clip;
      const float slope = unclipped ? -ratio * advantage : 0.0f;
      const auto derivative = [&](int j) {
        const float pull = slope * ((j == choice ? 1.0f : 0.0f) - p[j]);
        return (pull + weights.entropy * p[j] * (log_p[j] + entropy)) * weights.per_sample;
      };
      for (int j = 0; j < count; ++j) heads.dlogits[candidate + j] = derivative(j);
      heads.dstop[i] = derivative(count);
      heads.dvalue[i] = 2 * options_.value_weight * error * weights.per_sample;
    }
  };
  net_->AccumulateGradient(chunk->questions, 0, chunk->questions.samples, chunk->workspace.get(), loss,
                           chunk->gradient);
}

void Ppo::Profile() {
  for (Chunk& chunk : chunks_) chunk.workspace->profile.state = nn::DenseProfile::State::kOn;
}

nn::DenseProfile Ppo::profile() const {
  nn::DenseProfile sum;
  for (const Chunk& chunk : chunks_) {
    sum.seconds += chunk.workspace->profile.seconds;
    sum.flops += chunk.workspace->profile.flops;
  }
  return sum;
}

}  // namespace rudderfish
