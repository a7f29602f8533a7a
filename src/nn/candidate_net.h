// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/graph_batch.h"
#include "base/rng.h"
#include "nn/aligned.h"
#include "nn/encoder.h"
#include "nn/kernel.h"
#include "nn/workspace.h"

// The network that scores alternatives: a logit for every candidate of a question, a logit for
// stopping, a value. Relabelling nodes, workloads or candidates relabels the logits; one set of
// weights serves any number of them. With H = hidden, X, N, S, G the batch's candidate, node and
// workload rows and context, [a, b] joined columns:
//
//   n = relu(N Wn + bn)
//   s = relu(S Ws + bs)
//
// `rounds` times, both from the old, sums weighted by the edges (so with Encoder::kRelational; the
// others put other messages in place of the sums, see nn/encoder.h):
//
//   n' = relu([n, Σ s of its workloads] Wr + br)
//   s' = relu([s, Σ n of its nodes, Σ s of its callers, Σ s of its callees] Vr + vr)
//
// Then, with 0 for the mean and maximum of what a question has none of:
//
//   e = relu(X W1 + n'[from] WA + n'[to] WB + s'[workload] WS + G G1 + b1)
//   ctx = relu([mean e, max e, mean n', max n', mean s', max s', G] Wc + bc)
//   h = relu(e W2 + ctx U2 + b2)    logit = h·w3 + x·wskip
//   d = relu(ctx Wd + bd)           stop = d·ws + b            value = d·wv + b
//
// With Recurrence::kGated the network remembers: ctx is joined by a gated memory of the ctx before
// it (nn/gated_memory.h), m' = gru(ctx, m), and what reads ctx above reads ctx + m'.
//
// An end of a candidate that is -1 is not there and adds nothing. Where several rows share a
// maximum, its gradient goes to the first. A question's results depend on that question alone, to
// the bit. Constant members may be called by any number of threads, each with its own Workspace.

namespace rudderfish::nn {

// Whether anything is remembered from one question of an episode to the next.
enum class Recurrence { kNone, kGated };

struct NetShape {
  GraphWidths widths;  // Multiples of 16, 0 for a table that is not used.
  int hidden = 32;     // A multiple of 16.
  int rounds = 1;      // Of message passing.
  Encoder encoder = Encoder::kRelational;
  Recurrence recurrence = Recurrence::kNone;

  // Floats that are remembered.
  int memory() const { return recurrence == Recurrence::kGated ? hidden : 0; }

  bool operator==(const NetShape&) const = default;
};

// rows · columns floats at `offset` of the parameters.
struct NamedTensor {
  std::string name;
  int rows = 0;
  int columns = 0;
  size_t offset = 0;
};

class CandidateNet {
 public:
  // Samples whose activations, forward and backward, fit a level-2 cache at the shapes of a small
  // cluster.
  static constexpr int kBlockSamples = 32;

  // All parameters are 0.
  explicit CandidateNet(const NetShape& shape, const Kernels& kernels = BestKernels());

  // Draws weights as N(0, scale² / fan-in); biases and the skip weights are 0.
  void Initialize(Rng* rng);

  const NetShape& shape() const { return shape_; }
  const Kernels& kernels() const { return *kernels_; }

  // One flat vector; every tensor begins at a cache line, the floats between tensors are 0 and stay
  // so.
  std::span<float> parameters() { return parameters_; }
  std::span<const float> parameters() const { return parameters_; }
  std::span<const NamedTensor> tensors() const { return tensors_; }

  // REQUIRES: a tensor of that name.
  std::span<float> tensor(std::string_view name);
  std::span<const float> tensor(std::string_view name) const;

  // Questions [first, first + count) of the batch. `logits` has one entry a candidate of those, in
  // order; `stop` and `value` have `count`. `memory` [count][shape().memory()] is what is
  // remembered before each question, 0 where an episode begins, and then what is after it.
  // REQUIRES: the batch has this net's widths; count > 0.
  void Forward(const GraphBatch& batch, int first, int count, Workspace* workspace,
               std::span<float> logits, std::span<float> stop, std::span<float> value,
               std::span<float> memory = {}) const;

  // Adds to `gradient` (as long as parameters()) the gradient of a loss whose derivatives by the
  // outputs are given. REQUIRES: it remembers nothing; the workspace keeps activations, and its
  // last Forward was of this net, with these parameters, on the same questions.
  void Backward(const GraphBatch& batch, int first, int count, Workspace* workspace,
                std::span<const float> dlogits, std::span<const float> dstop,
                std::span<const float> dvalue, std::span<float> gradient) const;

  // What a loss is shown of some questions at a time: outputs, and where to write the derivatives
  // by them.
  struct Heads {
    int first = 0;  // Of the batch.
    int count = 0;
    std::span<const float> logits, stop, value;
    std::span<float> dlogits, dstop, dvalue;
  };

  // Forward, loss(const Heads&) and backward, block by block, so that activations never leave the
  // cache: the way to train. Needs memory for one block only. Leaves no activations for Backward.
  template <class Loss>
  void AccumulateGradient(const GraphBatch& batch, int first, int count, Workspace* workspace,
                          Loss&& loss, std::span<float> gradient) const {
    AccumulateGradient(
        batch, first, count, workspace,
        [](void* context, const Heads& heads) {
          (*static_cast<std::remove_reference_t<Loss>*>(context))(heads);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(loss))), gradient);
  }

  // Questions of several episodes in time order: `lanes` of them a step.
  struct Sequences {
    int lanes = 0;
    std::span<const float> before;   // [lanes][shape().memory()] What is remembered at first.
    std::span<const uint8_t> fresh;  // [samples] Whether an episode begins with the question.
  };

  // The same through time, for a net that remembers: forward step by step, the loss of all
  // questions at once, backward from the last step to the first. REQUIRES: batch.samples is a
  // multiple of lanes.
  template <class Loss>
  void AccumulateSequenceGradient(const GraphBatch& batch, const Sequences& sequences,
                                  Workspace* workspace, Loss&& loss,
                                  std::span<float> gradient) const {
    AccumulateSequenceGradient(
        batch, sequences, workspace,
        [](void* context, const Heads& heads) {
          (*static_cast<std::remove_reference_t<Loss>*>(context))(heads);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(loss))), gradient);
  }

  // Floating-point operations of the dense products (a multiply-add is two), by which kernels are
  // judged.
  double ForwardFlops(const GraphBatch& batch) const;

 private:
  friend class CandidatePass;

  // Offsets into the parameters.
  struct Round {
    size_t node_weight, node_bias, workload_weight, workload_bias;
  };
  struct Offsets {
    size_t node_weight, node_bias, workload_weight, workload_bias;
    std::vector<Round> rounds;
    std::vector<RoundAttention> attention;  // Of the rounds, with Encoder::kGatv2.
    size_t candidate_weight, candidate_ends, candidate_workload, candidate_context, candidate_bias;
    size_t context_weight, context_bias;
    size_t score_weight, score_context, score_bias;
    size_t logit_weight, logit_skip;
    size_t decision_weight, decision_bias, stop_weight, stop_bias, value_weight, value_bias;
    GatedMemoryOffsets memory;
  };

  size_t AddTensor(std::string name, int rows, int columns);
  void AddRound(int round);
  void AccumulateGradient(const GraphBatch& batch, int first, int count, Workspace* workspace,
                          void (*loss)(void*, const Heads&), void* context,
                          std::span<float> gradient) const;
  void AccumulateSequenceGradient(const GraphBatch& batch, const Sequences& sequences,
                                  Workspace* workspace, void (*loss)(void*, const Heads&),
                                  void* context, std::span<float> gradient) const;

  NetShape shape_;
  const Kernels* kernels_;
  std::vector<NamedTensor> tensors_;
  Offsets at_;
  AlignedVector<float> parameters_;
};

}  // namespace rudderfish::nn
