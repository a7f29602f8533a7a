// SPDX-License-Identifier: Apache-2.0
#include "nn/candidate_net.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "nn/attention.h"
#include "nn/candidate_pass.h"

namespace rudderfish::nn {
namespace {

constexpr size_t kAlignedFloats = kCacheLineBytes / sizeof(float);

void CheckMultipleOf16(int width) {
  CHECK_GE(width, 0);
  CHECK_EQ(width % 16, 0);
}

}  // namespace

CandidateNet::CandidateNet(const NetShape& shape, const Kernels& kernels)
    : shape_(shape), kernels_(&kernels) {
  const GraphWidths& widths = shape.widths;
  for (const int width : {widths.candidate, widths.node, widths.workload, widths.context})
    CheckMultipleOf16(width);
  CheckMultipleOf16(shape.hidden);
  CHECK_GT(shape.hidden, 0);
  CHECK_GE(shape.rounds, 1);
  CHECK_LE(shape.rounds, CandidatePass::kMaxRounds);

  const int h = shape.hidden;
  at_.node_weight = AddTensor("node.weight", widths.node, h);
  at_.node_bias = AddTensor("node.bias", 1, h);
  at_.workload_weight = AddTensor("workload.weight", widths.workload, h);
  at_.workload_bias = AddTensor("workload.bias", 1, h);
  for (int r = 0; r < shape.rounds; ++r) AddRound(r);
  at_.candidate_weight = AddTensor("candidate.weight", widths.candidate, h);
  at_.candidate_ends = AddTensor("candidate.ends", h, 2 * h);
  at_.candidate_workload = AddTensor("candidate.workload", h, h);
  at_.candidate_context = AddTensor("candidate.context", widths.context, h);
  at_.candidate_bias = AddTensor("candidate.bias", 1, h);
  at_.context_weight = AddTensor("context.weight", 6 * h + widths.context, h);
  at_.context_bias = AddTensor("context.bias", 1, h);
  at_.score_weight = AddTensor("score.weight", h, h);
  at_.score_context = AddTensor("score.context", h, h);
  at_.score_bias = AddTensor("score.bias", 1, h);
  at_.logit_weight = AddTensor("logit.weight", 1, h);
  at_.logit_skip = AddTensor("logit.skip", 1, widths.candidate);
  at_.decision_weight = AddTensor("decision.weight", h, h);
  at_.decision_bias = AddTensor("decision.bias", 1, h);
  at_.stop_weight = AddTensor("stop.weight", 1, h);
  at_.stop_bias = AddTensor("stop.bias", 1, 1);
  at_.value_weight = AddTensor("value.weight", 1, h);
  at_.value_bias = AddTensor("value.bias", 1, 1);
  if (shape.recurrence == Recurrence::kNone) return;
  at_.memory = {.input = AddTensor("memory.input", h, 3 * h),
                .recurrent = AddTensor("memory.recurrent", h, 2 * h),
                .candidate = AddTensor("memory.candidate", h, h),
                .bias = AddTensor("memory.bias", 1, 3 * h)};
}

void CandidateNet::AddRound(int number) {
  const int h = shape_.hidden;
  const MessageParts parts = PartsOf(shape_.encoder);
  const std::string name = "round" + std::to_string(number);
  Round& round = at_.rounds.emplace_back();
  round.node_weight = AddTensor(name + ".node.weight", parts.node * h, h);
  round.node_bias = AddTensor(name + ".node.bias", 1, h);
  round.workload_weight = AddTensor(name + ".workload.weight", parts.workload * h, h);
  round.workload_bias = AddTensor(name + ".workload.bias", 1, h);
  if (shape_.encoder != Encoder::kGatv2) return;
  RoundAttention& attention = at_.attention.emplace_back();
  for (int relation = 0; relation < kRelations; ++relation) {
    const std::string of = name + "." + std::string(kRelationNames[relation]);
    attention[relation] = {.source = AddTensor(of + ".source", h, h),
                           .listener = AddTensor(of + ".listener", h, h),
                           .edge = AddTensor(of + ".edge", 1, h),
                           .score = AddTensor(of + ".score", 1, h)};
  }
}

size_t CandidateNet::AddTensor(std::string name, int rows, int columns) {
  const size_t offset = parameters_.size();
  const size_t floats = static_cast<size_t>(rows) * static_cast<size_t>(columns);
  tensors_.push_back({std::move(name), rows, columns, offset});
  parameters_.resize(offset + (floats + kAlignedFloats - 1) / kAlignedFloats * kAlignedFloats,
                     0.0F);
  return offset;
}

std::span<float> CandidateNet::tensor(std::string_view name) {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t.name == name; });
  CHECK(found != tensors_.end());
  return parameters().subspan(
      found->offset, static_cast<size_t>(found->rows) * static_cast<size_t>(found->columns));
}

std::span<const float> CandidateNet::tensor(std::string_view name) const {
  return const_cast<CandidateNet*>(this)->tensor(name);
}

void CandidateNet::Initialize(Rng* rng) {
  std::fill(parameters_.begin(), parameters_.end(), 0.0F);
  const int h = shape_.hidden;
  const MessageParts parts = PartsOf(shape_.encoder);
  // `rows` rows of h floats each with standard deviation scale / sqrt(fan_in).
  const auto draw = [&](size_t offset, int rows, double scale, int fan_in) {
    const double deviation = scale / std::sqrt(static_cast<double>(std::max(fan_in, 1)));
    for (size_t i = 0; i < static_cast<size_t>(rows) * static_cast<size_t>(h); ++i) {
      parameters_[offset + i] = static_cast<float>(rng->Normal() * deviation);
    }
  };
  const auto floats = [&](int rows) { return static_cast<size_t>(rows) * static_cast<size_t>(h); };

  // 1.4 keeps the variance through a ReLU; what several inputs share is less, so that no table
  // drowns the others.
  draw(at_.node_weight, shape_.widths.node, 1.4, shape_.widths.node);
  draw(at_.workload_weight, shape_.widths.workload, 1.4, shape_.widths.workload);
  for (const Round& round : at_.rounds) {
    draw(round.node_weight, h, 1.2, h);
    draw(round.node_weight + floats(h), (parts.node - 1) * h, 0.7, h);
    draw(round.workload_weight, h, 1.2, h);
    draw(round.workload_weight + floats(h), (parts.workload - 1) * h, 0.7, h);
  }
  for (const RoundAttention& round : at_.attention) {
    for (const AttentionOffsets& attention : round) {
      draw(attention.source, h, 1.0, h);
      draw(attention.listener, h, 1.0, h);
      draw(attention.edge, 1, 1.0, h);
      draw(attention.score, 1, 1.0, kHeadColumns);
    }
  }
  draw(at_.candidate_weight, shape_.widths.candidate, 1.4, shape_.widths.candidate);
  draw(at_.candidate_ends, 2 * h, 0.7, h);
  draw(at_.candidate_workload, h, 0.7, h);
  draw(at_.candidate_context, shape_.widths.context, 1.0, shape_.widths.context);
  draw(at_.context_weight, 2 * h, 1.0, 2 * h);
  draw(at_.context_weight + floats(2 * h), 4 * h, 0.7, 2 * h);
  draw(at_.context_weight + floats(6 * h), shape_.widths.context, 1.0, shape_.widths.context);
  draw(at_.score_weight, h, 1.2, h);
  draw(at_.score_context, h, 1.0, h);
  draw(at_.logit_weight, 1, 0.05, h);  // Small: at first every alternative is about as likely.
  draw(at_.decision_weight, h, 1.4, h);
  draw(at_.stop_weight, 1, 0.02, 1);
  draw(at_.value_weight, 1, 0.1, 1);
  if (shape_.recurrence == Recurrence::kNone) return;
  draw(at_.memory.input, 3 * h, 1.0, h);
  draw(at_.memory.recurrent, 2 * h, 1.0, h);
  draw(at_.memory.candidate, h, 1.0, h);
}

void CandidateNet::Forward(const GraphBatch& batch, int first, int count, Workspace* workspace,
                           std::span<float> logits, std::span<float> stop, std::span<float> value,
                           std::span<float> memory) const {
  CandidatePass pass(*this, batch, workspace);
  CHECK_GE(first, 0);
  CHECK_GT(count, 0);
  CHECK_LE(count, batch.samples - first);
  const int end = first + count;
  CHECK_EQ(logits.size(),
           static_cast<size_t>(batch.candidate_begin[end] - batch.candidate_begin[first]));
  CHECK_EQ(stop.size(), static_cast<size_t>(count));
  CHECK_EQ(value.size(), static_cast<size_t>(count));
  CHECK_EQ(memory.size(), Floats(count, shape_.memory()));

  const bool keep = workspace->keep_ == Workspace::Keep::kActivations;
  size_t total = 0, largest = 0;
  for (int s = first; s < end;) {
    const Block block = pass.Next(s, end);
    const size_t bytes = pass.ActivationBytes(block);
    total += bytes;
    largest = std::max(largest, bytes);
    s += block.samples;
  }
  std::byte* activations = Workspace::Grow(&workspace->activations_, keep ? total : largest);
  for (int s = first; s < end;) {
    const Block block = pass.Next(s, end);
    pass.Enter(block, activations);
    pass.Forward(
        logits.subspan(static_cast<size_t>(block.candidate0 - batch.candidate_begin[first]),
                       static_cast<size_t>(block.candidates)),
        stop.subspan(static_cast<size_t>(s - first), static_cast<size_t>(block.samples)),
        value.subspan(static_cast<size_t>(s - first), static_cast<size_t>(block.samples)),
        memory.subspan(Floats(s - first, shape_.memory()), Floats(block.samples, shape_.memory())));
    if (keep) activations += pass.ActivationBytes(block);
    s += block.samples;
  }
  workspace->kept_batch_ = &batch;
  workspace->kept_first_ = first;
  workspace->kept_count_ = keep ? count : -1;
}

void CandidateNet::Backward(const GraphBatch& batch, int first, int count, Workspace* workspace,
                            std::span<const float> dlogits, std::span<const float> dstop,
                            std::span<const float> dvalue, std::span<float> gradient) const {
  CHECK(workspace->kept_batch_ == &batch);
  CHECK_EQ(workspace->kept_first_, first);
  CHECK_EQ(workspace->kept_count_, count);
  const int end = first + count;
  CHECK_EQ(dlogits.size(),
           static_cast<size_t>(batch.candidate_begin[end] - batch.candidate_begin[first]));
  CHECK_EQ(dstop.size(), static_cast<size_t>(count));
  CHECK_EQ(dvalue.size(), static_cast<size_t>(count));
  CHECK_EQ(gradient.size(), parameters_.size());
  CHECK(shape_.recurrence == Recurrence::kNone);

  CandidatePass pass(*this, batch, workspace);
  pass.TransposeWeights();
  std::byte* memory = workspace->activations_.data();
  for (int s = first; s < end;) {
    const Block block = pass.Next(s, end);
    std::byte* scratch = Workspace::Grow(&workspace->scratch_, pass.ScratchBytes(block));
    pass.Enter(block, memory);
    pass.Backward(
        scratch,
        dlogits.subspan(static_cast<size_t>(block.candidate0 - batch.candidate_begin[first]),
                        static_cast<size_t>(block.candidates)),
        dstop.subspan(static_cast<size_t>(s - first), static_cast<size_t>(block.samples)),
        dvalue.subspan(static_cast<size_t>(s - first), static_cast<size_t>(block.samples)),
        gradient.data(), nullptr);
    memory += pass.ActivationBytes(block);
    s += block.samples;
  }
}

void CandidateNet::AccumulateGradient(const GraphBatch& batch, int first, int count,
                                      Workspace* workspace, void (*loss)(void*, const Heads&),
                                      void* context, std::span<float> gradient) const {
  CHECK_GE(first, 0);
  CHECK_GE(count, 0);
  CHECK_LE(count, batch.samples - first);
  CHECK_EQ(gradient.size(), parameters_.size());
  CHECK(shape_.recurrence == Recurrence::kNone);
  CandidatePass pass(*this, batch, workspace);
  pass.TransposeWeights();
  workspace->kept_count_ = -1;
  const int end = first + count;
  for (int s = first; s < end;) {
    const Block block = pass.Next(s, end);
    std::byte* memory = Workspace::Grow(&workspace->activations_, pass.ActivationBytes(block));
    const auto samples = static_cast<size_t>(block.samples),
               candidates = static_cast<size_t>(block.candidates);
    Carver outputs(nullptr);
    outputs.Take<float>(2 * candidates + 4 * samples);
    const size_t output_bytes = outputs.used();
    std::byte* scratch =
        Workspace::Grow(&workspace->scratch_, output_bytes + pass.ScratchBytes(block));
    const std::span<float> floats(reinterpret_cast<float*>(scratch), 2 * candidates + 4 * samples);
    const auto logits = floats.first(candidates), dlogits = floats.subspan(candidates, candidates);
    const auto rest = floats.subspan(2 * candidates);
    const auto stop = rest.first(samples), dstop = rest.subspan(samples, samples);
    const auto value = rest.subspan(2 * samples, samples),
               dvalue = rest.subspan(3 * samples, samples);

    pass.Enter(block, memory);
    pass.Forward(logits, stop, value, {});
    loss(context, Heads{.first = s,
                        .count = block.samples,
                        .logits = logits,
                        .stop = stop,
                        .value = value,
                        .dlogits = dlogits,
                        .dstop = dstop,
                        .dvalue = dvalue});
    pass.Backward(scratch + output_bytes, dlogits, dstop, dvalue, gradient.data(), nullptr);
    s += block.samples;
  }
}

double CandidateNet::ForwardFlops(const GraphBatch& batch) const {
  const double h = shape_.hidden, rounds = shape_.rounds;
  const double candidate = shape_.widths.candidate * h + h * h;
  const MessageParts parts = PartsOf(shape_.encoder);
  // gatv2: a node is a source and a listener once each, a workload three times.
  const double attended = shape_.encoder == Encoder::kGatv2 ? 2 * h * h : 0;
  const double node = shape_.widths.node * h + rounds * (parts.node * h * h + attended) + 2 * h * h;
  const double workload =
      shape_.widths.workload * h + rounds * (parts.workload * h * h + 3 * attended) + h * h;
  const double sample = shape_.widths.context * h + (6 * h + shape_.widths.context) * h +
                        2 * h * h + (shape_.recurrence == Recurrence::kGated ? 6 * h * h : 0);
  return 2 * (candidate * batch.candidate_begin.back() + node * batch.node_begin.back() +
              workload * batch.workload_begin.back() + sample * batch.samples);
}

}  // namespace rudderfish::nn
