// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "nn/candidate_pass.h"

namespace rudderfish::nn {
namespace {

// Candidates that are worked on at a time, so that they stay in the level-1 cache from one kernel
// to the next. A multiple of every tile's rows.
constexpr int kStripRows = 96;

// Rows of a block times H. Activations and gradients are some ten times as many floats: about a
// megabyte, which a level-2 cache holds beside the weights.
constexpr int kBlockFloats = 24 * 1024;

// out[i] = begin[first + i] - begin[first]; returns whether they never fall.
bool CopyBegins(const std::vector<int32_t>& begin, int first, int samples, int32_t* out) {
  bool ordered = true;
  for (int i = 0; i <= samples; ++i) {
    out[i] = begin[first + i] - begin[first];
    ordered &= i == 0 || out[i] >= out[i - 1];
  }
  return ordered;
}

}  // namespace

Block::Block(const GraphBatch& batch, int first, int samples)
    : first(first),
      samples(samples),
      candidate0(batch.candidate_begin[first]),
      candidates(batch.candidate_begin[first + samples] - candidate0),
      node0(batch.node_begin[first]),
      nodes(batch.node_begin[first + samples] - node0),
      workload0(batch.workload_begin[first]),
      workloads(batch.workload_begin[first + samples] - workload0),
      placement0(batch.placement_begin[first]),
      placements(batch.placement_begin[first + samples] - placement0),
      call0(batch.call_begin[first]),
      calls(batch.call_begin[first + samples] - call0) {}

CandidatePass::CandidatePass(const CandidateNet& net, const GraphBatch& batch, Workspace* workspace)
    : at_(net.at_),
      batch_(batch),
      kernels_(*net.kernels_),
      dense_(*net.kernels_, &workspace->profile),
      workspace_(workspace),
      weights_(net.parameters_.data()),
      hidden_(net.shape_.hidden),
      rounds_(net.shape_.rounds),
      remembers_(net.shape_.recurrence == Recurrence::kGated),
      node_width_(PartsOf(net.shape_.encoder).node * net.shape_.hidden),
      workload_width_(PartsOf(net.shape_.encoder).workload * net.shape_.hidden),
      pooled_width_(6 * net.shape_.hidden + net.shape_.widths.context),
      aggregation_(net.shape_.encoder, net.shape_.hidden, net.shape_.rounds, &net.at_.attention,
                   *net.kernels_, dense_),
      memory_(net.shape_.hidden, *net.kernels_, dense_) {
  CHECK(batch.widths == net.shape_.widths);
}

Block CandidatePass::Next(int first, int end) const {
  const auto rows = [this](int s) {
    const auto i = static_cast<size_t>(s);
    return batch_.candidate_begin[i] + batch_.node_begin[i] + batch_.workload_begin[i];
  };
  const int limit = std::min(end, first + CandidateNet::kBlockSamples);
  int last = first + 1;
  while (last < limit && (rows(last + 1) - rows(first)) * hidden_ <= kBlockFloats) ++last;
  return Block(batch_, first, last - first);
}

CandidatePass::Activations CandidatePass::CarveActivations(const Block& b, Carver* carver) const {
  Activations a{};
  const int h = hidden_;
  for (int r = 0; r < rounds_; ++r) {
    a.node_input[r] = carver->Take<float>(Floats(b.nodes, node_width_));
    a.workload_input[r] = carver->Take<float>(Floats(b.workloads, workload_width_));
  }
  a.node = carver->Take<float>(Floats(b.nodes, h));
  a.workload = carver->Take<float>(Floats(b.workloads, h));
  a.edge = carver->Take<float>(Floats(b.candidates, h));
  a.hidden = carver->Take<float>(Floats(b.candidates, h));
  a.pooled = carver->Take<float>(Floats(b.samples, pooled_width_));
  a.context = carver->Take<float>(Floats(b.samples, h));
  a.decision = carver->Take<float>(Floats(b.samples, h));
  a.edge_argmax = carver->Take<int32_t>(Floats(b.samples, h));
  a.node_argmax = carver->Take<int32_t>(Floats(b.samples, h));
  a.workload_argmax = carver->Take<int32_t>(Floats(b.samples, h));
  a.candidate_begin = carver->Take<int32_t>(Floats(b.samples + 1, 1));
  a.node_begin = carver->Take<int32_t>(Floats(b.samples + 1, 1));
  a.workload_begin = carver->Take<int32_t>(Floats(b.samples + 1, 1));
  a.ends = carver->Take<Ends>(Floats(b.candidates, 1));
  a.placements = carver->Take<Edge>(Floats(b.placements, 1));
  a.calls = carver->Take<Edge>(Floats(b.calls, 1));
  a.pair_scores = carver->Take<float>(Floats(b.nodes + 1, 2 * h));
  a.workload_scores = carver->Take<float>(Floats(b.workloads + 1, h));
  a.sample_scores = carver->Take<float>(Floats(b.samples, h));
  a.messages = aggregation_.Carve(b, carver);
  a.recalled = a.context;
  if (remembers_) {
    a.memory = memory_.Carve(b.samples, carver);
    a.recalled = carver->Take<float>(Floats(b.samples, h));
  }
  return a;
}

size_t CandidatePass::ActivationBytes(const Block& block) const {
  Carver carver(nullptr);
  CarveActivations(block, &carver);
  return carver.used();
}

void CandidatePass::Enter(const Block& block, std::byte* memory) {
  block_ = block;
  Carver carver(memory);
  a_ = CarveActivations(block, &carver);
  aggregation_.Enter({.block = block,
                      .node_begin = a_.node_begin,
                      .workload_begin = a_.workload_begin,
                      .placements = a_.placements,
                      .calls = a_.calls},
                     a_.messages);
}

void CandidatePass::Forward(std::span<float> logits, std::span<float> stop, std::span<float> value,
                            std::span<float> memory) {
  CopyIndices();
  aggregation_.Prepare();
  EmbedEntities();
  for (int r = 0; r < rounds_; ++r) PassMessages(r);
  ScoreEdges();
  PoolContext();
  if (remembers_) Recall(memory);
  ScoreCandidates(logits, stop, value);
}

// Makes the indices of the batch relative to the block, so that the kernels need no segments for
// them, and checks each: what is outside a question's own tables would be read from another's.
void CandidatePass::CopyIndices() {
  const Block& b = block_;
  bool valid = CopyBegins(batch_.candidate_begin, b.first, b.samples, a_.candidate_begin) &
               CopyBegins(batch_.node_begin, b.first, b.samples, a_.node_begin) &
               CopyBegins(batch_.workload_begin, b.first, b.samples, a_.workload_begin);
  CHECK(valid);
  for (int s = 0; s < b.samples; ++s) {
    const int node0 = a_.node_begin[s], workload0 = a_.workload_begin[s];
    const int nodes = a_.node_begin[s + 1] - node0,
              workloads = a_.workload_begin[s + 1] - workload0;
    const auto is_node = [nodes](int i) {
      return static_cast<uint32_t>(i) < static_cast<uint32_t>(nodes);
    };
    const auto is_workload = [workloads](int i) {
      return static_cast<uint32_t>(i) < static_cast<uint32_t>(workloads);
    };

    for (int i = a_.candidate_begin[s]; i < a_.candidate_begin[s + 1]; ++i) {
      const CandidateEnds& from = batch_.ends[b.candidate0 + i];
      valid &= (is_node(from.from) || from.from == -1) & (is_node(from.to) || from.to == -1) &
               (is_workload(from.workload) || from.workload == -1);
      a_.ends[i] = {.from = from.from < 0 ? b.nodes : node0 + from.from,
                    .to = from.to < 0 ? b.nodes : node0 + from.to,
                    .workload = from.workload < 0 ? b.workloads : workload0 + from.workload,
                    .sample = s};
    }
    const int sample = b.first + s;
    for (int i = batch_.placement_begin[sample]; i < batch_.placement_begin[sample + 1]; ++i) {
      const GraphEdge& from = batch_.placements[i];
      valid &= is_node(from.a) & is_workload(from.b);
      a_.placements[i - b.placement0] = {
          .a = node0 + from.a, .b = workload0 + from.b, .weight = from.weight};
    }
    for (int i = batch_.call_begin[sample]; i < batch_.call_begin[sample + 1]; ++i) {
      const GraphEdge& from = batch_.calls[i];
      valid &= is_workload(from.a) & is_workload(from.b);
      a_.calls[i - b.call0] = {
          .a = workload0 + from.a, .b = workload0 + from.b, .weight = from.weight};
    }
  }
  CHECK(valid);
}

// n = relu(N Wn + bn), s = relu(S Ws + bs), into the first columns of the first round's inputs.
void CandidatePass::EmbedEntities() {
  const int node_width = batch_.widths.node, workload_width = batch_.widths.workload;
  dense_.Forward(block_.nodes, {node_width, hidden_},
                 {batch_.nodes.data() + Floats(block_.node0, node_width), node_width},
                 Weight(at_.node_weight), Weight(at_.node_bias), Activation::kRelu,
                 {a_.node_input[0], node_width_});
  dense_.Forward(
      block_.workloads, {workload_width, hidden_},
      {batch_.workloads.data() + Floats(block_.workload0, workload_width), workload_width},
      Weight(at_.workload_weight), Weight(at_.workload_bias), Activation::kRelu,
      {a_.workload_input[0], workload_width_});
}

// n' = relu([n, messages] Wr + br), s' = relu([s, messages] Vr + vr).
void CandidatePass::PassMessages(int round) {
  const int h = hidden_;
  const MutableRows node{a_.node_input[round], node_width_};
  const MutableRows workload{a_.workload_input[round], workload_width_};
  aggregation_.Forward(round, weights_, {node, workload});
  const bool last = round + 1 == rounds_;
  const auto& at = at_.rounds[static_cast<size_t>(round)];
  dense_.Forward(
      block_.nodes, {node_width_, h}, node, Weight(at.node_weight), Weight(at.node_bias),
      Activation::kRelu,
      last ? MutableRows{a_.node, h} : MutableRows{a_.node_input[round + 1], node_width_});
  dense_.Forward(block_.workloads, {workload_width_, h}, workload, Weight(at.workload_weight),
                 Weight(at.workload_bias), Activation::kRelu,
                 last ? MutableRows{a_.workload, h}
                      : MutableRows{a_.workload_input[round + 1], workload_width_});
}

// e = relu(X W1 + n'[from] WA + n'[to] WB + s'[workload] WS + G G1 + b1): products once a row of
// each table, then gathered.
void CandidatePass::ScoreEdges() {
  const int h = hidden_, width = batch_.widths.candidate, context_width = batch_.widths.context;
  dense_.Forward(block_.nodes, {h, 2 * h}, {a_.node, h}, Weight(at_.candidate_ends), nullptr,
                 Activation::kNone, {a_.pair_scores, 2 * h});
  dense_.Forward(block_.workloads, {h, h}, {a_.workload, h}, Weight(at_.candidate_workload),
                 nullptr, Activation::kNone, {a_.workload_scores, h});
  dense_.Forward(block_.samples, {context_width, h},
                 {batch_.context.data() + Floats(block_.first, context_width), context_width},
                 Weight(at_.candidate_context), Weight(at_.candidate_bias), Activation::kNone,
                 {a_.sample_scores, h});
  kernels_.clear(1, 2 * h, a_.pair_scores + Floats(block_.nodes, 2 * h), 2 * h);
  kernels_.clear(1, h, a_.workload_scores + Floats(block_.workloads, h), h);
  const float* x = batch_.candidates.data() + Floats(block_.candidate0, width);
  for (int row = 0; row < block_.candidates; row += kStripRows) {
    const int rows = std::min(kStripRows, block_.candidates - row);
    float* edge = a_.edge + Floats(row, h);
    kernels_.gather(rows, h, a_.ends + row, a_.pair_scores, a_.workload_scores, a_.sample_scores,
                    edge);
    dense_.ForwardOnto(rows, {width, h}, {x + Floats(row, width), width},
                       Weight(at_.candidate_weight), Activation::kRelu, {edge, h});
  }
}

// ctx = relu([mean e, max e, mean n', max n', mean s', max s', G] Wc + bc).
void CandidatePass::PoolContext() {
  const int h = hidden_, width = pooled_width_, context_width = batch_.widths.context;
  kernels_.pool(block_.samples, a_.candidate_begin, h, a_.edge, a_.pooled, width, a_.edge_argmax);
  kernels_.pool(block_.samples, a_.node_begin, h, a_.node, a_.pooled + 2 * h, width,
                a_.node_argmax);
  kernels_.pool(block_.samples, a_.workload_begin, h, a_.workload, a_.pooled + 4 * h, width,
                a_.workload_argmax);
  if (context_width > 0) {
    for (int s = 0; s < block_.samples; ++s) {
      std::memcpy(a_.pooled + Floats(s, width) + 6 * h,
                  batch_.context.data() + Floats(block_.first + s, context_width),
                  Floats(context_width, 4));
    }
  }
  dense_.Forward(block_.samples, {width, h}, {a_.pooled, width}, Weight(at_.context_weight),
                 Weight(at_.context_bias), Activation::kRelu, {a_.context, h});
}

// m' = gru(ctx, m), ctx + m'.
void CandidatePass::Recall(std::span<float> memory) {
  std::copy(memory.begin(), memory.end(), a_.memory.before);
  memory_.Forward(block_.samples, a_.context, weights_, at_.memory, a_.memory);
  std::copy_n(a_.memory.after, memory.size(), memory.begin());
  for (size_t i = 0; i < memory.size(); ++i) a_.recalled[i] = a_.context[i] + a_.memory.after[i];
}

// h = relu(e W2 + ctx U2 + b2), logit = h·w3 + x·wskip; d = relu(ctx Wd + bd), stop and value from
// d.
void CandidatePass::ScoreCandidates(std::span<float> logits, std::span<float> stop,
                                    std::span<float> value) {
  const int h = hidden_, width = batch_.widths.candidate;
  dense_.Forward(block_.samples, {h, h}, {a_.recalled, h}, Weight(at_.score_context),
                 Weight(at_.score_bias), Activation::kNone, {a_.sample_scores, h});
  const float* x = batch_.candidates.data() + Floats(block_.candidate0, width);
  for (int row = 0; row < block_.candidates; row += kStripRows) {
    const int rows = std::min(kStripRows, block_.candidates - row);
    float* hidden = a_.hidden + Floats(row, h);
    kernels_.gather_samples(rows, h, a_.ends + row, a_.sample_scores, hidden);
    dense_.ForwardOnto(rows, {h, h}, {a_.edge + Floats(row, h), h}, Weight(at_.score_weight),
                       Activation::kRelu, {hidden, h});
    kernels_.row_dots(rows, 0, h, hidden, Weight(at_.logit_weight), width, x + Floats(row, width),
                      Weight(at_.logit_skip), logits.data() + row);
  }

  dense_.Forward(block_.samples, {h, h}, {a_.recalled, h}, Weight(at_.decision_weight),
                 Weight(at_.decision_bias), Activation::kRelu, {a_.decision, h});
  kernels_.row_dots(block_.samples, *Weight(at_.stop_bias), h, a_.decision, Weight(at_.stop_weight),
                    0, nullptr, nullptr, stop.data());
  kernels_.row_dots(block_.samples, *Weight(at_.value_bias), h, a_.decision,
                    Weight(at_.value_weight), 0, nullptr, nullptr, value.data());
}

}  // namespace rudderfish::nn
