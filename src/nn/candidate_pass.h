// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/graph_batch.h"
#include "nn/aggregation.h"
#include "nn/block.h"
#include "nn/candidate_net.h"
#include "nn/gated_memory.h"
#include "nn/layers.h"
#include "nn/workspace.h"

// One CandidateNet at work on one block of questions: where their activations lie, forward and
// backward. C, N, W, S are the block's candidates, nodes, workloads and questions, H is hidden.
// Internal to nn/.

namespace rudderfish::nn {

class CandidatePass {
 public:
  static constexpr int kMaxRounds = Aggregation::kMaxRounds;

  CandidatePass(const CandidateNet& net, const GraphBatch& batch, Workspace* workspace);

  // The next block of the questions [first, end): as many as a level-2 cache holds, at least one.
  Block Next(int first, int end) const;

  // Bytes of activations of a block.
  size_t ActivationBytes(const Block& block) const;

  // Makes `block` the one to work on; its activations lie, or will lie, in `memory`.
  void Enter(const Block& block, std::byte* memory);
  // `memory` [S][shape.memory()]: what is remembered before, then after.
  void Forward(std::span<float> logits, std::span<float> stop, std::span<float> value,
               std::span<float> memory);

  // Once before Backward, with the parameters that Forward had.
  void TransposeWeights();
  // REQUIRES: Enter and Forward of this block; scratch memory of ScratchBytes. `dmemory`
  // [S][shape.memory()]: the gradient by what is remembered after, then by what was before.
  size_t ScratchBytes(const Block& block) const;
  void Backward(std::byte* scratch, std::span<const float> dlogits, std::span<const float> dstop,
                std::span<const float> dvalue, float* gradient, float* dmemory);

 private:
  // What Backward reads again, and block-relative copies of the indices.
  struct Activations {
    float* node_input[kMaxRounds];      // [N][P]: n, messages
    float* workload_input[kMaxRounds];  // [W][Q]: s, messages
    float* node;                        // [N][H]: n'
    float* workload;                    // [W][H]: s'
    float* edge;                        // [C][H]: e
    float* hidden;                      // [C][H]: h
    float* pooled;                      // [S][6H + G]
    float* context;                     // [S][H]: ctx
    float* recalled;                    // [S][H]: ctx + m', or ctx
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
    Aggregation::Memory messages;
    GatedMemory::Kept memory;
  };

  struct Gradients {
    float* hidden;           // [C][H]
    float* edge;             // [C][H]
    float* pair_scores;      // [N + 1][2H]
    float* workload_scores;  // [W + 1][H]
    float* sample_scores;    // [S][H]
    float* decision;         // [S][H]
    float* context;          // [S][H]
    GatedMemory::Scratch memory;
    float* pooled;             // [S][6H]
    float* node;               // [N][H]
    float* workload;           // [W][H]
    float* node_input[2];      // [N][P], of this round and the one before
    float* workload_input[2];  // [W][Q]
  };

  struct Transposes {
    float* node[kMaxRounds];       // [H][P]
    float* workload[kMaxRounds];   // [H][Q]
    float* attention[kMaxRounds];  // As Aggregation has them.
    float* candidate_ends;         // [2H][H]
    float* candidate_workload;     // [H][H]
    float* context;                // [H][6H]
    float* score;                  // [H][H]
    float* score_context;          // [H][H]
    float* decision;               // [H][H]
    float* memory;                 // As GatedMemory has it.
  };

  Activations CarveActivations(const Block& block, Carver* carver) const;
  Gradients CarveGradients(const Block& block, Carver* carver) const;

  void CopyIndices();
  void EmbedEntities();
  void PassMessages(int round);
  void ScoreEdges();
  void PoolContext();
  void Recall(std::span<float> memory);
  void ScoreCandidates(std::span<float> logits, std::span<float> stop, std::span<float> value);

  void BackwardHeads(std::span<const float> dlogits, std::span<const float> dstop,
                     std::span<const float> dvalue);
  void BackwardRecall(float* dmemory);
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
  bool remembers_;
  int node_width_, workload_width_;  // P and Q: what a round reads of a node and of a workload
  int pooled_width_;                 // 6H + G
  Aggregation aggregation_;
  GatedMemory memory_;

  Block block_;
  Activations a_{};
  Gradients d_{};
  Transposes t_{};
  float* gradient_ = nullptr;
};

}  // namespace rudderfish::nn
