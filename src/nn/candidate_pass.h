// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/graph_batch.h"
#include "nn/candidate_net.h"
#include "nn/layers.h"
#include "nn/workspace.h"

// One CandidateNet at work on one block of questions: where their activations lie, forward and
// backward. C, N, W, S are the block's candidates, nodes, workloads and questions, H is hidden.
// Internal to nn/.

namespace rudderfish::nn {

constexpr size_t Floats(int rows, int width) {
  return static_cast<size_t>(rows) * static_cast<size_t>(width);
}

// Hands out cache-aligned pieces of memory, or, without memory, only adds up what would be needed.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  template <class T>
  T* Take(size_t n) {
    const size_t at = used_;
    used_ += (n * sizeof(T) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  size_t used() const { return used_; }

 private:
  std::byte* memory_;
  size_t used_ = 0;
};

// Rows [first, first + samples) of a batch and the tables' rows that belong to them.
struct Block {
  Block() = default;
  Block(const GraphBatch& batch, int first, int samples);

  int first = 0, samples = 0;
  int candidate0 = 0, candidates = 0;
  int node0 = 0, nodes = 0;
  int workload0 = 0, workloads = 0;
  int placement0 = 0, placements = 0;
  int call0 = 0, calls = 0;
};

class CandidatePass {
 public:
  static constexpr int kMaxRounds = 4;

  CandidatePass(const CandidateNet& net, const GraphBatch& batch, Workspace* workspace);

  // The next block of the questions [first, end): as many as a level-2 cache holds, at least one.
  Block Next(int first, int end) const;

  // Bytes of activations of a block.
  size_t ActivationBytes(const Block& block) const;

  // Makes `block` the one to work on; its activations lie, or will lie, in `memory`.
  void Enter(const Block& block, std::byte* memory);
  void Forward(std::span<float> logits, std::span<float> stop, std::span<float> value);

  // Once before Backward, with the parameters that Forward had.
  void TransposeWeights();
  // REQUIRES: Enter and Forward of this block; scratch memory of ScratchBytes.
  size_t ScratchBytes(const Block& block) const;
  void Backward(std::byte* scratch, std::span<const float> dlogits, std::span<const float> dstop,
                std::span<const float> dvalue, float* gradient);

 private:
  // What Backward reads again, and block-relative copies of the indices.
  struct Activations {
    float* node_input[kMaxRounds];      // [N][2H]: n, message
    float* workload_input[kMaxRounds];  // [W][4H]: s, from nodes, from callers, from callees
    float* node;                        // [N][H]: n'
    float* workload;                    // [W][H]: s'
    float* edge;                        // [C][H]: e
    float* hidden;                      // [C][H]: h
    float* pooled;                      // [S][6H + G]
    float* context;                     // [S][H]: ctx
    float* decision;                    // [S][H]: d
    int32_t* edge_argmax;               // [S][H]
    int32_t* node_argmax;               // [S][H]
    int32_t* workload_argmax;           // [S][H]
    int32_t* candidate_begin;           // [S + 1]
    int32_t* node_begin;                // [S + 1]
    int32_t* workload_begin;            // [S + 1]
    Ends* ends;                         // [C]
    Edge* placements;
    Edge* calls;
    float* pair_scores;  // [N + 1][2H]: n' [WA, WB]; the last row, of ends that are not there, is 0
    float* workload_scores;  // [W + 1][H]: s' WS; the last row is 0
    float* sample_scores;    // [S][H]: G G1 + b1, later ctx U2 + b2
  };

  struct Gradients {
    float* hidden;             // [C][H]
    float* edge;               // [C][H]
    float* pair_scores;        // [N + 1][2H]
    float* workload_scores;    // [W + 1][H]
    float* sample_scores;      // [S][H]
    float* decision;           // [S][H]
    float* context;            // [S][H]
    float* pooled;             // [S][6H]
    float* node;               // [N][H]
    float* workload;           // [W][H]
    float* node_input[2];      // [N][2H], of this round and the one before
    float* workload_input[2];  // [W][4H]
  };

  struct Transposes {
    float* node[kMaxRounds];      // [H][2H]
    float* workload[kMaxRounds];  // [H][4H]
    float* candidate_ends;        // [2H][H]
    float* candidate_workload;    // [H][H]
    float* context;               // [H][6H]
    float* score;                 // [H][H]
    float* score_context;         // [H][H]
    float* decision;              // [H][H]
  };

  Activations CarveActivations(const Block& block, Carver* carver) const;
  Gradients CarveGradients(const Block& block, Carver* carver) const;

  void CopyIndices();
  void EmbedEntities();
  void PassMessages(int round);
  void ScoreEdges();
  void PoolContext();
  void ScoreCandidates(std::span<float> logits, std::span<float> stop, std::span<float> value);

  void BackwardHeads(std::span<const float> dlogits, std::span<const float> dstop,
                     std::span<const float> dvalue);
  void BackwardContext();
  void BackwardEdges();
  void BackwardMessages();

  const float* Weight(size_t offset) const { return weights_ + offset; }
  float* Gradient(size_t offset) const { return gradient_ + offset; }

  const CandidateNet::Offsets& at_;
  const GraphBatch& batch_;
  const Kernels& kernels_;
  DenseLayers dense_;
  Workspace* workspace_;
  const float* weights_;
  int hidden_, rounds_;
  int pooled_width_;  // 6H + G

  Block block_;
  Activations a_{};
  Gradients d_{};
  Transposes t_{};
  float* gradient_ = nullptr;
};

}  // namespace rudderfish::nn
