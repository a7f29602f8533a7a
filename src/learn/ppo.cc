// SPDX-License-Identifier: Apache-2.0
#include "learn/ppo.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
      sequence_(net->shape().memory() > 0 ? options.sequence : 1),
      adam_(net->parameters().size(),
            {.epsilon = 1e-6f, .max_gradient_norm = options.max_gradient_norm}, net->kernels()),
      gradient_(net->parameters().size()) {
  CHECK_EQ(options.minibatch % kChunkSamples, 0);
  CHECK_EQ(kChunkSamples % sequence_, 0);
  chunks_.resize(options.minibatch / kChunkSamples);
  for (Chunk& chunk : chunks_) {
    chunk.questions.widths = net->shape().widths;
    chunk.gradient.resize(net->parameters().size());
    chunk.workspace = std::make_unique<nn::Workspace>();
  }
}

PpoOptions Ppo::ActorCritic(PpoOptions options, int samples) {
  options.surrogate = Surrogate::kLogLikelihood;
  options.epochs = 1;
  options.minibatch = samples;
  return options;
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
  const float most =
      options_.advantage_max > 0 ? options_.advantage_max : std::numeric_limits<float>::infinity();
  for (float& a : advantages_)
    a = std::clamp(static_cast<float>((a - mean) / (deviation + 1e-8)), -most, most);
  const double variance = squares_return / n - sum_return / n * (sum_return / n);
  metrics->explained_variance = variance > 0 ? 1 - squares_error / n / variance : 0;
}

void Ppo::Shuffle(uint64_t iteration, int epoch) {
  order_.resize(advantages_.size() / sequence_);
  std::iota(order_.begin(), order_.end(), 0);
  Rng rng(seed_, kShuffleStream + epoch, iteration);
  for (size_t i = order_.size(); i > 1; --i)
    std::swap(order_[i - 1], order_[rng.Below(static_cast<uint32_t>(i))]);
}

PpoMetrics Ppo::Update(VectorEnv* envs, uint64_t iteration, double progress, ThreadPool* pool) {
  PpoMetrics metrics;
  Normalise(envs, &metrics);
  const float fall = static_cast<float>(std::clamp(progress, 0.0, 1.0));
  const float learning_rate = options_.learning_rate_start +
                              fall * (options_.learning_rate_end - options_.learning_rate_start);
  const Weights weights{.entropy = options_.entropy_start * (1 - fall),
                        .per_sample = 1.0f / options_.minibatch};
  int updates = 0;
  int64_t samples = 0;
  for (int epoch = 0; epoch < options_.epochs; ++epoch) {
    Shuffle(iteration, epoch);
    const size_t together = options_.minibatch / sequence_, per_chunk = kChunkSamples / sequence_;
    for (size_t at = 0; at + together <= order_.size(); at += together) {
      pool->ParallelFor(static_cast<int>(chunks_.size()), [&](int c, int) {
        const std::span<const int32_t> part(order_.data() + at + c * per_chunk, per_chunk);
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
  for (double* sum : {&metrics.policy_loss, &metrics.value_loss, &metrics.entropy,
                      &metrics.approx_kl, &metrics.clip_fraction}) {
    *sum /= std::max<int64_t>(1, samples);
  }
  metrics.gradient_norm /= std::max(1, updates);
  metrics.learning_rate = learning_rate;
  return metrics;
}

PpoLoss PpoLoss::Of(const PpoOptions& options, float entropy_weight, std::span<const float> log_p,
                    std::span<const float> p, float value, const PpoSample& sample,
                    std::span<float> dlogits) {
  PpoLoss loss;
  const float log_ratio = log_p[sample.choice] - sample.log_probability;
  const float ratio = std::exp(std::min(log_ratio, 20.0f));
  const float gain = ratio * sample.advantage;
  const float clipped_gain =
      std::clamp(ratio, 1 - options.clip, 1 + options.clip) * sample.advantage;
  const float error = value - sample.target;
  const bool is_clipped = options.surrogate == Surrogate::kClipped;
  loss.policy =
      is_clipped ? -std::min(gain, clipped_gain) : -sample.advantage * log_p[sample.choice];
  loss.value = error * error;
  loss.entropy = nn::Entropy(log_p, p);
  loss.approx_kl = ratio - 1 - log_ratio;
  loss.clipped = is_clipped && std::abs(ratio - 1) > options.clip;
  const float most = options.value_error_max;
  loss.dvalue = 2 * options.value_weight * (most > 0 ? std::clamp(error, -most, most) : error);
  float slope = -sample.advantage;  // dL/dlog p(a)
  if (is_clipped) slope = gain <= clipped_gain ? -gain : 0.0f;
  for (size_t j = 0; j < p.size(); ++j) {
    dlogits[j] = entropy_weight * p[j] * (log_p[j] + loss.entropy) - slope * p[j];
  }
  dlogits[sample.choice] += slope;
  return loss;
}

// The questions of sequences, step by step. Sequence q of a slice is of environment q modulo their
// number.
void Ppo::Gather(VectorEnv* envs, std::span<const int32_t> sequences, Chunk* chunk) const {
  const int lanes = envs->options().envs_per_slice, per_slice = lanes * envs->options().steps;
  const int memory = net_->shape().memory();
  chunk->samples.clear();
  chunk->fresh.clear();
  chunk->before.clear();
  chunk->questions.Clear();
  for (int step = 0; step < sequence_; ++step) {
    for (const int32_t sequence : sequences) {
      const int slice = sequence / (per_slice / sequence_), q = sequence % (per_slice / sequence_);
      const int local = (q / lanes * sequence_ + step) * lanes + q % lanes;
      const SliceRollout& r = envs->slice(slice);
      chunk->samples.push_back(slice * per_slice + local);
      chunk->questions.Append(r.questions, local);
      chunk->fresh.push_back(step > 0 ? r.ended[local - lanes] : 0);
      if (step > 0) continue;
      const auto row = r.memory.begin() + static_cast<ptrdiff_t>(local) * memory;
      chunk->before.insert(chunk->before.end(), row, row + memory);
    }
  }
}

void Ppo::Accumulate(VectorEnv* envs, std::span<const int32_t> sequences, const Weights& weights,
                     Chunk* chunk) {
  const int per_slice = envs->options().envs_per_slice * envs->options().steps;
  Gather(envs, sequences, chunk);
  std::fill(chunk->gradient.begin(), chunk->gradient.end(), 0.0f);
  chunk->policy_loss = chunk->value_loss = chunk->entropy = chunk->approx_kl = chunk->clipped = 0;
  const auto loss = [&](const nn::CandidateNet::Heads& heads) {
    const std::span<const int32_t> begin(chunk->questions.candidate_begin.data() + heads.first,
                                         heads.count + 1);
    const size_t alternatives = nn::AlternativeCount(begin);
    for (auto* buffer : {&chunk->log_probabilities, &chunk->probabilities, &chunk->derivatives}) {
      if (buffer->size() < alternatives) buffer->resize(alternatives);
    }
    if (!envs->may_stop()) chunk->no_stop.resize(heads.count, nn::kForbidden);
    const std::span<const float> stop =
        envs->may_stop() ? heads.stop : std::span<const float>(chunk->no_stop).first(heads.count);
    nn::Softmax(begin, heads.logits, stop, {},
                std::span(chunk->log_probabilities.data(), alternatives),
                std::span(chunk->probabilities.data(), alternatives), net_->kernels());
    for (int i = 0; i < heads.count; ++i) {
      const int32_t sample = chunk->samples[heads.first + i];
      const SliceRollout& r = envs->slice(sample / per_slice);
      const int32_t local = sample % per_slice;
      const size_t count = begin[i + 1] - begin[i], candidate = begin[i] - begin[0],
                   at = candidate + i;
      const std::span<float> derivatives(chunk->derivatives.data() + at, count + 1);
      const PpoLoss one = PpoLoss::Of(
          options_, weights.entropy, std::span(chunk->log_probabilities).subspan(at, count + 1),
          std::span(chunk->probabilities).subspan(at, count + 1), heads.value[i],
          {.choice = r.choices[local],
           .log_probability = r.log_probability[local],
           .advantage = advantages_[sample],
           .target = r.returns[local]},
          derivatives);
      chunk->policy_loss += one.policy;
      chunk->value_loss += one.value;
      chunk->entropy += one.entropy;
      chunk->approx_kl += one.approx_kl;
      chunk->clipped += one.clipped;
      for (size_t j = 0; j < count; ++j)
        heads.dlogits[candidate + j] = derivatives[j] * weights.per_sample;
      heads.dstop[i] = envs->may_stop() ? derivatives[count] * weights.per_sample : 0.0f;
      heads.dvalue[i] = one.dvalue * weights.per_sample;
    }
  };
  if (net_->shape().memory() > 0) {
    net_->AccumulateSequenceGradient(chunk->questions,
                                     {.lanes = static_cast<int>(sequences.size()),
                                      .before = chunk->before,
                                      .fresh = chunk->fresh},
                                     chunk->workspace.get(), loss, chunk->gradient);
    return;
  }
  net_->AccumulateGradient(chunk->questions, 0, chunk->questions.samples, chunk->workspace.get(),
                           loss, chunk->gradient);
}

void Ppo::AddWorkspaces(std::vector<nn::Workspace*>* all) {
  for (Chunk& chunk : chunks_) all->push_back(chunk.workspace.get());
}

}  // namespace rudderfish
