// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/kernel.h"
#include "nn/layers.h"

// Attention along the edges of one relation, as GATv2 has it (nn/encoder.h), between products that
// are dense layers: x L and x R come in, their gradients go out. A head is kHeadColumns of the H.
// Sums run over edges in their order, so a row's message depends on its own edges alone. Internal
// to nn/.

namespace rudderfish::nn {

inline constexpr int kHeadColumns = 16;
inline constexpr float kLeakySlope = 0.2F;

enum class EdgeEnd { kA, kB };

struct AttentionEdges {
  int count = 0;
  const Edge* edges = nullptr;
  EdgeEnd target = EdgeEnd::kA;  // The end that listens.
  int hidden = 0;                // H
  int targets = 0;               // Rows that listen.

  const float* sources = nullptr;      // [rows][H]: x L
  const float* listeners = nullptr;    // [targets][H]: x R
  const float* edge_weight = nullptr;  // [H]: e
  const float* score = nullptr;        // [H]: s

  int heads() const { return hidden / kHeadColumns; }
};

// Adds the messages to `message` [targets][H], and keeps a_ij in `shares` [edges][heads]. `largest`
// and `sums` are scratch of [targets][heads].
void Attend(const AttentionEdges& at, float* shares, float* largest, float* sums,
            MutableRows message);

// What Attend's gradients are added to: [rows][H], [targets][H], [H], [H].
struct AttentionGradients {
  float* sources = nullptr;
  float* listeners = nullptr;
  float* edge_weight = nullptr;
  float* score = nullptr;
};

// `dshares` [edges][heads] and `sums` [targets][heads] are scratch.
void AttendBackward(const AttentionEdges& at, const float* shares, Rows dmessage, float* dshares,
                    float* sums, const AttentionGradients& gradients);

}  // namespace rudderfish::nn
