// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "nn/candidate_pass.h"

namespace rudderfish::nn {
namespace {

float Sum(std::span<const float> values) {
  float sum = 0;
  for (const float value : values) sum += value;
  return sum;
}

}  // namespace

CandidatePass::Gradients CandidatePass::CarveGradients(const Block& b, Carver* carver) const {
  const int h = hidden_;
  Gradients d{};
  d.hidden = carver->Take<float>(Floats(b.candidates, h));
  d.edge = carver->Take<float>(Floats(b.candidates, h));
  d.pair_scores = carver->Take<float>(Floats(b.nodes + 1, 2 * h));
  d.workload_scores = carver->Take<float>(Floats(b.workloads + 1, h));
  d.sample_scores = carver->Take<float>(Floats(b.samples, h));
  d.decision = carver->Take<float>(Floats(b.samples, h));
  d.context = carver->Take<float>(Floats(b.samples, h));
  if (remembers_) d.memory = memory_.CarveScratch(b.samples, carver);
  d.pooled = carver->Take<float>(Floats(b.samples, 6 * h));
  d.node = carver->Take<float>(Floats(b.nodes, h));
  d.workload = carver->Take<float>(Floats(b.workloads, h));
  for (int i = 0; i < 2; ++i) {
    d.node_input[i] = carver->Take<float>(Floats(b.nodes, node_width_));
    d.workload_input[i] = carver->Take<float>(Floats(b.workloads, workload_width_));
  }
  return d;
}

size_t CandidatePass::ScratchBytes(const Block& block) const {
  Carver carver(nullptr);
  CarveGradients(block, &carver);
  return carver.used();
}

void CandidatePass::TransposeWeights() {
  const int h = hidden_;
  const size_t floats = Floats(h, node_width_ + workload_width_) * static_cast<size_t>(rounds_) +
                        aggregation_.TransposeFloats() * static_cast<size_t>(rounds_) +
                        Floats(h, h) * static_cast<size_t>(2 + 1 + 6 + 3) +
                        (remembers_ ? memory_.TransposeFloats() : 0);
  float* next =
      reinterpret_cast<float*>(Workspace::Grow(&workspace_->transposes_, floats * sizeof(float)));
  const auto transpose = [&](size_t offset, int rows, int columns) {
    float* t = next;
    next += Floats(rows, columns);
    kernels_.transpose(rows, columns, Weight(offset), t);
    return t;
  };
  for (int r = 0; r < rounds_; ++r) {
    t_.node[r] = transpose(at_.rounds[static_cast<size_t>(r)].node_weight, node_width_, h);
    t_.workload[r] =
        transpose(at_.rounds[static_cast<size_t>(r)].workload_weight, workload_width_, h);
    t_.attention[r] = next;
    aggregation_.Transpose(r, weights_, next);
    next += aggregation_.TransposeFloats();
  }
  t_.candidate_ends = transpose(at_.candidate_ends, h, 2 * h);
  t_.candidate_workload = transpose(at_.candidate_workload, h, h);
  t_.context =
      transpose(at_.context_weight, 6 * h, h);  // Nothing flows into the batch's own context.
  t_.score = transpose(at_.score_weight, h, h);
  t_.score_context = transpose(at_.score_context, h, h);
  t_.decision = transpose(at_.decision_weight, h, h);
  if (!remembers_) return;
  t_.memory = next;
  memory_.Transpose(weights_, at_.memory, next);
}

void CandidatePass::Backward(std::byte* scratch, std::span<const float> dlogits,
                             std::span<const float> dstop, std::span<const float> dvalue,
                             float* gradient, float* dmemory) {
  Carver carver(scratch);
  d_ = CarveGradients(block_, &carver);
  gradient_ = gradient;
  BackwardHeads(dlogits, dstop, dvalue);
  if (remembers_) BackwardRecall(dmemory);
  BackwardContext();
  BackwardEdges();
  BackwardMessages();
}

// From the outputs to h, d and, through both, to e (the part that passed W2) and ctx.
void CandidatePass::BackwardHeads(std::span<const float> dlogits, std::span<const float> dstop,
                                  std::span<const float> dvalue) {
  const int h = hidden_, width = batch_.widths.candidate, candidates = block_.candidates,
            samples = block_.samples;
  kernels_.weighted_column_sums(samples, h, dstop.data(), a_.decision, h,
                                Gradient(at_.stop_weight));
  kernels_.weighted_column_sums(samples, h, dvalue.data(), a_.decision, h,
                                Gradient(at_.value_weight));
  *Gradient(at_.stop_bias) += Sum(dstop);
  *Gradient(at_.value_bias) += Sum(dvalue);
  kernels_.dot_relu_backward(samples, h, dstop.data(), Weight(at_.stop_weight), dvalue.data(),
                             Weight(at_.value_weight), a_.decision, d_.decision);
  dense_.WeightGradient(samples, {h, h}, {a_.recalled, h}, {d_.decision, h},
                        Gradient(at_.decision_weight));
  dense_.BiasGradient(samples, {h, h}, {d_.decision, h}, Gradient(at_.decision_bias));
  dense_.InputGradient(samples, {h, h}, {d_.decision, h}, t_.decision, Initial::kZero,
                       {d_.context, h});

  kernels_.weighted_column_sums(candidates, h, dlogits.data(), a_.hidden, h,
                                Gradient(at_.logit_weight));
  kernels_.weighted_column_sums(candidates, width, dlogits.data(),
                                batch_.candidates.data() + Floats(block_.candidate0, width), width,
                                Gradient(at_.logit_skip));
  kernels_.dot_relu_backward(candidates, h, dlogits.data(), Weight(at_.logit_weight), nullptr,
                             nullptr, a_.hidden, d_.hidden);
  dense_.WeightGradient(candidates, {h, h}, {a_.edge, h}, {d_.hidden, h},
                        Gradient(at_.score_weight));
  dense_.InputGradient(candidates, {h, h}, {d_.hidden, h}, t_.score, Initial::kZero, {d_.edge, h});
  kernels_.segment_sums(samples, a_.candidate_begin, h, d_.hidden, d_.sample_scores);
  dense_.BiasGradient(samples, {h, h}, {d_.sample_scores, h}, Gradient(at_.score_bias));
  dense_.WeightGradient(samples, {h, h}, {a_.recalled, h}, {d_.sample_scores, h},
                        Gradient(at_.score_context));
  dense_.InputGradient(samples, {h, h}, {d_.sample_scores, h}, t_.score_context, Initial::kKeep,
                       {d_.context, h});
}

// From ctx + m' to ctx and to m.
void CandidatePass::BackwardRecall(float* dmemory) {
  const size_t floats = Floats(block_.samples, hidden_);
  for (size_t i = 0; i < floats; ++i) d_.memory.dafter[i] = d_.context[i] + dmemory[i];
  memory_.Backward(block_.samples, a_.context, t_.memory, at_.memory, a_.memory, d_.memory,
                   d_.context, dmemory, gradient_);
}

// From ctx to what was pooled.
void CandidatePass::BackwardContext() {
  const int h = hidden_, samples = block_.samples;
  kernels_.relu_backward(samples, h, a_.context, h, d_.context, h);
  dense_.WeightGradient(samples, {pooled_width_, h}, {a_.pooled, pooled_width_}, {d_.context, h},
                        Gradient(at_.context_weight));
  dense_.BiasGradient(samples, {pooled_width_, h}, {d_.context, h}, Gradient(at_.context_bias));
  dense_.InputGradient(samples, {6 * h, h}, {d_.context, h}, t_.context, Initial::kZero,
                       {d_.pooled, 6 * h});
  kernels_.pool_relu_backward(samples, a_.candidate_begin, h, a_.edge, d_.pooled, 6 * h,
                              a_.edge_argmax, d_.edge);
}

// From e to the candidate rows' weights and, through the gathered scores, to n' and s' before their
// ReLUs.
void CandidatePass::BackwardEdges() {
  const int h = hidden_, width = batch_.widths.candidate, context_width = batch_.widths.context;
  const int candidates = block_.candidates, samples = block_.samples;
  dense_.WeightGradient(candidates, {width, h},
                        {batch_.candidates.data() + Floats(block_.candidate0, width), width},
                        {d_.edge, h}, Gradient(at_.candidate_weight));
  kernels_.segment_sums(samples, a_.candidate_begin, h, d_.edge, d_.sample_scores);
  dense_.BiasGradient(samples, {context_width, h}, {d_.sample_scores, h},
                      Gradient(at_.candidate_bias));
  dense_.WeightGradient(
      samples, {context_width, h},
      {batch_.context.data() + Floats(block_.first, context_width), context_width},
      {d_.sample_scores, h}, Gradient(at_.candidate_context));

  kernels_.clear(block_.nodes + 1, 2 * h, d_.pair_scores, 2 * h);
  kernels_.clear(block_.workloads + 1, h, d_.workload_scores, h);
  kernels_.scatter(candidates, h, a_.ends, d_.edge, d_.pair_scores, d_.workload_scores);
  dense_.WeightGradient(block_.nodes, {h, 2 * h}, {a_.node, h}, {d_.pair_scores, 2 * h},
                        Gradient(at_.candidate_ends));
  dense_.InputGradient(block_.nodes, {h, 2 * h}, {d_.pair_scores, 2 * h}, t_.candidate_ends,
                       Initial::kZero, {d_.node, h});
  dense_.WeightGradient(block_.workloads, {h, h}, {a_.workload, h}, {d_.workload_scores, h},
                        Gradient(at_.candidate_workload));
  dense_.InputGradient(block_.workloads, {h, h}, {d_.workload_scores, h}, t_.candidate_workload,
                       Initial::kZero, {d_.workload, h});
  kernels_.pool_relu_backward(samples, a_.node_begin, h, a_.node, d_.pooled + 2 * h, 6 * h,
                              a_.node_argmax, d_.node);
  kernels_.pool_relu_backward(samples, a_.workload_begin, h, a_.workload, d_.pooled + 4 * h, 6 * h,
                              a_.workload_argmax, d_.workload);
}

// From n' and s' through the rounds, last first, to the entity rows' weights.
void CandidatePass::BackwardMessages() {
  const int h = hidden_, nodes = block_.nodes, workloads = block_.workloads;
  MutableRows dnode{d_.node, h}, dworkload{d_.workload, h};
  for (int r = rounds_ - 1; r >= 0; --r) {
    const auto& at = at_.rounds[static_cast<size_t>(r)];
    const MutableRows node_input{a_.node_input[r], node_width_};
    const MutableRows workload_input{a_.workload_input[r], workload_width_};
    dense_.WeightGradient(nodes, {node_width_, h}, node_input, dnode, Gradient(at.node_weight));
    dense_.BiasGradient(nodes, {node_width_, h}, dnode, Gradient(at.node_bias));
    dense_.WeightGradient(workloads, {workload_width_, h}, workload_input, dworkload,
                          Gradient(at.workload_weight));
    dense_.BiasGradient(workloads, {workload_width_, h}, dworkload, Gradient(at.workload_bias));

    const MutableRows node{d_.node_input[r % 2], node_width_};
    const MutableRows workload{d_.workload_input[r % 2], workload_width_};
    dense_.InputGradient(nodes, {node_width_, h}, dnode, t_.node[r], Initial::kZero, node);
    dense_.InputGradient(workloads, {workload_width_, h}, dworkload, t_.workload[r], Initial::kZero,
                         workload);
    aggregation_.Backward(r, weights_, t_.attention[r], {node_input, workload_input},
                          {node, workload}, gradient_);
    kernels_.relu_backward(nodes, h, node_input.at, node_width_, node.at, node_width_);
    kernels_.relu_backward(workloads, h, workload_input.at, workload_width_, workload.at,
                           workload_width_);
    dnode = node;
    dworkload = workload;
  }

  const int node_width = batch_.widths.node, workload_width = batch_.widths.workload;
  dense_.WeightGradient(nodes, {node_width, h},
                        {batch_.nodes.data() + Floats(block_.node0, node_width), node_width}, dnode,
                        Gradient(at_.node_weight));
  dense_.BiasGradient(nodes, {node_width, h}, dnode, Gradient(at_.node_bias));
  dense_.WeightGradient(
      workloads, {workload_width, h},
      {batch_.workloads.data() + Floats(block_.workload0, workload_width), workload_width},
      dworkload, Gradient(at_.workload_weight));
  dense_.BiasGradient(workloads, {workload_width, h}, dworkload, Gradient(at_.workload_bias));
}

}  // namespace rudderfish::nn
