// SPDX-License-Identifier: Apache-2.0
#include "learn/dqn.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "nn/softmax.h"

namespace rudderfish {
namespace {

constexpr uint64_t kReplayStream = uint64_t{5}
                                   << 40;  // Of the seed; see kChoiceStream in rollout.cc.

template <class T>
std::span<T> First(std::vector<T>* buffer, size_t n) {
  if (buffer->size() < n) buffer->resize(n);
  return std::span(buffer->data(), n);
}

float Mix(float from, float to, double share) {
  return from + static_cast<float>(std::clamp(share, 0.0, 1.0)) * (to - from);
}

// Of the alternatives' scores; `stop` is one of them unless it is kForbidden.
float Mean(std::span<const float> candidates, float stop) {
  const bool may_stop = stop != nn::kForbidden;
  return std::accumulate(candidates.begin(), candidates.end(), may_stop ? stop : 0.0f) /
         static_cast<float>(candidates.size() + may_stop);
}

}  // namespace

DuelingLoss HuberLoss(std::span<const float> scores, float value, int choice, float target) {
  const float mean =
      std::accumulate(scores.begin(), scores.end(), 0.0f) / static_cast<float>(scores.size());
  DuelingLoss out;
  out.q = value + scores[choice] - mean;
  const float error = out.q - target;
  const float size = std::abs(error);
  out.loss = size <= 1 ? 0.5f * error * error : size - 0.5f;
  out.slope = std::clamp(error, -1.0f, 1.0f);
  return out;
}

Dqn::Dqn(const DqnOptions& options, std::span<const TrainingWorld> worlds, uint64_t seed,
         nn::CandidateNet* net)
    : options_(options),
      seed_(seed),
      net_(net),
      target_(*net),
      adam_(net->parameters().size(),
            {.epsilon = 1e-6f, .max_gradient_norm = options.max_gradient_norm}, net->kernels()),
      replay_(worlds, seed, options.replay),
      gradient_(net->parameters().size()) {
  CHECK_EQ(options.minibatch % (kChunkSamples / 2), 0);
  batch_.resize(options.minibatch);
  chunks_.resize((options.minibatch + kChunkSamples - 1) / kChunkSamples);
  for (Chunk& chunk : chunks_) {
    chunk.questions.widths = chunk.next.widths = net->shape().widths;
    chunk.gradient.resize(net->parameters().size());
    chunk.next_of.resize(kChunkSamples);
    chunk.targets.resize(kChunkSamples);
    chunk.learning = std::make_unique<nn::Workspace>();
    chunk.looking = std::make_unique<nn::Workspace>(nn::Workspace::Keep::kNothing);
  }
}

float Dqn::Epsilon(double progress) const {
  return Mix(options_.epsilon_start, options_.epsilon_end, progress / options_.epsilon_fall);
}

void Dqn::Collect(uint64_t iteration, double progress, ThreadPool* pool) {
  replay_.Collect(*net_, iteration, Epsilon(progress), pool);
}

// Samples uniformly among those whose n steps are over.
void Dqn::Draw(uint64_t iteration, int update) {
  Rng rng(seed_, kReplayStream, iteration * options_.updates + update);
  for (Transition& transition : batch_) {
    while (!replay_.Find(rng.Below(static_cast<uint32_t>(replay_.samples())), options_.n_step,
                         options_.gamma, &transition)) {
    }
  }
}

DqnMetrics Dqn::Update(uint64_t iteration, double progress, ThreadPool* pool) {
  DqnMetrics metrics;
  metrics.epsilon = Epsilon(progress);
  const float learning_rate =
      Mix(options_.learning_rate_start, options_.learning_rate_end, progress);
  metrics.learning_rate = learning_rate;
  const int64_t room = replay_.pages_max() * replay_.page_samples();
  if (replay_.samples() < std::min<int64_t>(options_.warm_up_samples, room)) return metrics;
  for (int update = 0; update < options_.updates; ++update) {
    Draw(iteration, update);
    pool->ParallelFor(static_cast<int>(chunks_.size()), [&](int c, int) {
      const int first = c * kChunkSamples;
      const int count = std::min(kChunkSamples, options_.minibatch - first);
      Accumulate(std::span(batch_).subspan(first, count), &chunks_[c]);
    });
    std::fill(gradient_.begin(), gradient_.end(), 0.0f);
    for (const Chunk& chunk : chunks_) {
      for (size_t i = 0; i < gradient_.size(); ++i) gradient_[i] += chunk.gradient[i];
      metrics.loss += chunk.loss;
      metrics.mean_q += chunk.q;
    }
    metrics.gradient_norm += adam_.Step(net_->parameters(), gradient_, learning_rate);
    if ((iteration * options_.updates + update) % options_.target_every == 0) FollowTarget();
  }
  const double samples = static_cast<double>(options_.updates) * options_.minibatch;
  metrics.loss /= samples;
  metrics.mean_q /= samples;
  metrics.gradient_norm /= options_.updates;
  return metrics;
}

void Dqn::FollowTarget() {
  const std::span<const float> net = net_->parameters();
  const std::span<float> target = target_.parameters();
  for (size_t i = 0; i < target.size(); ++i)
    target[i] += options_.target_rate * (net[i] - target[i]);
}

// What the questions after the transitions are worth, into the targets.
void Dqn::Bootstrap(Chunk* chunk) const {
  chunk->next.Clear();
  for (size_t i = 0; i < chunk->transitions.size(); ++i) {
    const Transition& t = chunk->transitions[i];
    chunk->targets[i] = t.reward;
    chunk->next_of[i] = t.discount > 0 ? chunk->next.samples : -1;
    if (t.discount > 0) chunk->next.Append(*t.next_questions, t.next);
  }
  if (chunk->next.samples == 0) return;
  const size_t count = chunk->next.samples, candidates = chunk->next.ends.size();
  using Pass = std::pair<const nn::CandidateNet*, Outputs*>;
  for (const auto& [net, out] : {Pass(net_, &chunk->online), Pass(&target_, &chunk->delayed)}) {
    net->Forward(chunk->next, 0, static_cast<int>(count), chunk->looking.get(),
                 First(&out->logits, candidates), First(&out->stop, count),
                 First(&out->value, count));
    if (!replay_.may_stop()) std::fill_n(out->stop.begin(), count, nn::kForbidden);
  }
  for (size_t i = 0; i < chunk->transitions.size(); ++i) {
    const int at = chunk->next_of[i];
    if (at < 0) continue;
    const int32_t begin = chunk->next.candidate_begin[at];
    const size_t n = chunk->next.candidate_count(at);
    const int best = nn::ArgmaxOrStop(
        std::span<const float>(chunk->online.logits.data() + begin, n), chunk->online.stop[at]);
    const std::span<const float> scores(chunk->delayed.logits.data() + begin, n);
    const float stop = chunk->delayed.stop[at];
    const float advantage = best == static_cast<int>(n) ? stop : scores[best];
    chunk->targets[i] += chunk->transitions[i].discount *
                         (chunk->delayed.value[at] + advantage - Mean(scores, stop));
  }
}

void Dqn::Accumulate(std::span<const Transition> part, Chunk* chunk) const {
  chunk->transitions.assign(part.begin(), part.end());
  chunk->questions.Clear();
  for (const Transition& t : part) chunk->questions.Append(*t.questions, t.question);
  Bootstrap(chunk);
  std::fill(chunk->gradient.begin(), chunk->gradient.end(), 0.0f);
  chunk->loss = chunk->q = 0;
  const auto loss = [&](const nn::CandidateNet::Heads& heads) {
    const int32_t* begin = chunk->questions.candidate_begin.data() + heads.first;
    for (int i = 0; i < heads.count; ++i) {
      const size_t first = begin[i] - begin[0], n = begin[i + 1] - begin[i];
      const std::span<float> scores = First(&chunk->scores, n + 1).first(n + replay_.may_stop());
      std::copy_n(heads.logits.begin() + static_cast<ptrdiff_t>(first), n, scores.begin());
      if (replay_.may_stop()) scores[n] = heads.stop[i];
      const int choice = chunk->transitions[heads.first + i].choice;
      const DuelingLoss one =
          HuberLoss(scores, heads.value[i], choice, chunk->targets[heads.first + i]);
      chunk->loss += one.loss;
      chunk->q += one.q;
      const float slope = one.slope / static_cast<float>(options_.minibatch);
      const float share = slope / static_cast<float>(scores.size());
      for (size_t j = 0; j < n; ++j) heads.dlogits[first + j] = -share;
      heads.dstop[i] = replay_.may_stop() ? -share : 0.0f;
      (choice == static_cast<int>(n) ? heads.dstop[i] : heads.dlogits[first + choice]) += slope;
      heads.dvalue[i] = slope;
    }
  };
  net_->AccumulateGradient(chunk->questions, 0, chunk->questions.samples, chunk->learning.get(),
                           loss, chunk->gradient);
}

void Dqn::AddWorkspaces(std::vector<nn::Workspace*>* all) {
  replay_.AddWorkspaces(all);
  for (Chunk& chunk : chunks_) {
    all->insert(all->end(), {chunk.learning.get(), chunk.looking.get()});
  }
}

}  // namespace rudderfish
