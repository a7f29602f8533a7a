// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/result.h"

// How nodes and workloads of a question hear of each other: what one round of message passing
// gathers for a row i from the rows j that it has an edge to. There are four relations: a node
// hears from its workloads ("hosts"), a workload from its nodes ("hosted"), from its callers and
// from its callees; w is the weight of an edge. The layer is the same for all encoders,
//
//   x' = relu([x, message, message ...] W + b)
//
// with a message a relation:
//
//   relational  Σ w x_j: weights of its own for each relation, nothing normalised (M. Schlichtkrull
//               et al., "Modeling relational data with graph convolutional networks", ESWC 2018)
//   gcn         Σ w x_j / sqrt(d_i d_j), d = 1 + the weights of all edges of that kind at a row
//               (T. Kipf, M. Welling, "Semi-supervised classification with graph convolutional
//               networks", ICLR 2017)
//   gatv2       Σ a_ij (x_j L), a the softmax over j of  s · leaky(x_j L + x_i R + w e), leaky(z) =
//               z or 0.2 z below 0; a head is 16 columns (S. Brody, U. Alon, E. Yahav, "How
//               attentive are graph attention networks?", ICLR 2022)
//   deepsets    no edges: the means of all nodes and of all workloads of the question (M. Zaheer et
//               al., "Deep sets", NeurIPS 2017)
//   mlp         nothing: every row for itself

namespace rudderfish::nn {

enum class Encoder { kRelational, kGcn, kGatv2, kDeepSets, kMlp };

inline constexpr std::string_view kEncoderNames[] = {"relational", "gcn", "gatv2", "deepsets",
                                                     "mlp"};

inline std::string_view EncoderName(Encoder encoder) {
  return kEncoderNames[static_cast<int>(encoder)];
}

// kInvalidArgument names the nearest.
Result<Encoder> EncoderNamed(std::string_view name);

// Rows of H floats that a row's input to a round has: its own, and its messages.
struct MessageParts {
  int node = 1;
  int workload = 1;
};
MessageParts PartsOf(Encoder encoder);

enum Relation { kHosts, kHosted, kCallers, kCallees };
inline constexpr int kRelations = 4;
inline constexpr std::string_view kRelationNames[kRelations] = {"hosts", "hosted", "callers",
                                                                "callees"};

// Of one relation in one round of gatv2: where its parameters begin.
struct AttentionOffsets {
  size_t source = 0;    // L [H][H]
  size_t listener = 0;  // R [H][H]
  size_t edge = 0;      // e [H]
  size_t score = 0;     // s [H]
};
using RoundAttention = std::array<AttentionOffsets, kRelations>;

// Of what is remembered (nn/gated_memory.h), likewise.
struct GatedMemoryOffsets {
  size_t input = 0;      // [H][3H]
  size_t recurrent = 0;  // [H][2H]
  size_t candidate = 0;  // [H][H]
  size_t bias = 0;       // [3H]
};

}  // namespace rudderfish::nn
