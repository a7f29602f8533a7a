// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/attention.h"
#include "nn/block.h"
#include "nn/encoder.h"
#include "nn/layers.h"

// The part of message passing in which encoders differ (nn/encoder.h): what the rows of a block
// hear, forward, and what they are to answer for, backward. The tables are those that a round
// reads, [rows][parts · H], a row's own columns first, its messages after them. Internal to nn/.

namespace rudderfish::nn {

class Aggregation {
 public:
  static constexpr int kMaxRounds = 4;

  // What Backward reads again of gatv2, and scratch.
  struct Memory {
    struct Attended {
      float* sources;    // [rows][H]: x L
      float* listeners;  // [rows][H]: x R
      float* shares;     // [edges][heads]
    } attended[kMaxRounds][kRelations];
    float* largest;     // [rows][heads]
    float* sums;        // [rows][heads]
    float* dsources;    // [rows][H]
    float* dlisteners;  // [rows][H]
    float* dshares;     // [edges][heads]
    float* degrees;     // [rows]
    float* means;       // [2][S][H]: of nodes, of workloads
    Edge* members[2];   // [N], [W]: a row, its question, 1 / how many there are
  };

  // The indices of a block, relative to it. gcn writes its weights in place of those of the edges.
  struct Graph {
    Block block;
    const int32_t* node_begin = nullptr;      // [S + 1]
    const int32_t* workload_begin = nullptr;  // [S + 1]
    Edge* placements = nullptr;
    Edge* calls = nullptr;
  };

  struct Tables {
    MutableRows node, workload;
  };

  Aggregation(Encoder encoder, int hidden, int rounds, const std::vector<RoundAttention>* attention,
              const Kernels& kernels, const DenseLayers& dense)
      : encoder_(encoder),
        hidden_(hidden),
        rounds_(rounds),
        attention_(attention),
        kernels_(kernels),
        dense_(dense) {}

  Memory Carve(const Block& block, Carver* carver) const;

  // Makes `graph` the one to work on; its indices need not be there yet.
  void Enter(const Graph& graph, const Memory& memory);

  // Once they are, before Forward.
  void Prepare();

  // Fills the columns of messages.
  void Forward(int round, const float* weights, const Tables& tables);

  // Floats of `transposes` of one round, and those of the round's L and R into them.
  size_t TransposeFloats() const;
  void Transpose(int round, const float* weights, float* transposes) const;

  // Adds to the own columns of `d` what its columns of messages mean for them, and to the gradient
  // of the parameters. `transposes` is that of the round.
  void Backward(int round, const float* weights, const float* transposes, const Tables& tables,
                const Tables& d, float* gradient);

 private:
  // One relation of a pair of tables.
  struct Link {
    int edges;
    const Edge* edge;
    EdgeEnd target;
    int sources, listeners;  // Rows.
    MutableRows source, listener, message;
  };

  Link LinkOf(int relation, const Tables& tables) const;
  AttentionEdges EdgesOf(const Link& link, const Memory::Attended& kept, const AttentionOffsets& at,
                         const float* weights) const;
  void Normalise(int edges, Edge* edge, int b_first, int rows) const;
  void Sum(const Link& link) const;
  void SumBackward(const Link& link) const;
  void AttendAlong(int round, int relation, const float* weights, const Link& link);
  void AttendBackwardAlong(int round, int relation, const float* weights, const float* transposes,
                           const Link& link, const Link& d, float* gradient);
  void Average(const Tables& tables);
  void AverageBackward(const Tables& d);

  Encoder encoder_;
  int hidden_, rounds_;
  const std::vector<RoundAttention>* attention_;
  const Kernels& kernels_;
  const DenseLayers& dense_;
  Graph graph_;
  Memory m_{};
};

}  // namespace rudderfish::nn
