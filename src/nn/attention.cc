// SPDX-License-Identifier: Apache-2.0
#include "nn/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rudderfish::nn {
namespace {

int ListenerOf(const AttentionEdges& at, const Edge& edge) {
  return at.target == EdgeEnd::kA ? edge.a : edge.b;
}
int SourceOf(const AttentionEdges& at, const Edge& edge) {
  return at.target == EdgeEnd::kA ? edge.b : edge.a;
}

float Leaky(float z) { return z > 0 ? z : kLeakySlope * z; }

// The columns of one head of one edge.
struct HeadView {
  const float* source;
  const float* listener;
  const float* edge_weight;
  const float* score;
  float weight;

  HeadView(const AttentionEdges& at, const Edge& edge, int head)
      : source(at.sources + ptrdiff_t{SourceOf(at, edge)} * at.hidden + head * kHeadColumns),
        listener(at.listeners + ptrdiff_t{ListenerOf(at, edge)} * at.hidden + head * kHeadColumns),
        edge_weight(at.edge_weight + head * kHeadColumns),
        score(at.score + head * kHeadColumns),
        weight(edge.weight) {}

  float Sum(int column) const {
    return source[column] + listener[column] + weight * edge_weight[column];
  }
};

}  // namespace

void Attend(const AttentionEdges& at, float* shares, float* largest, float* sums,
            MutableRows message) {
  const int heads = at.heads();
  const ptrdiff_t cells = ptrdiff_t{at.targets} * heads;
  std::fill(largest, largest + cells, -std::numeric_limits<float>::infinity());
  std::fill(sums, sums + cells, 0.0F);
  for (int i = 0; i < at.count; ++i) {
    const ptrdiff_t cell = ptrdiff_t{ListenerOf(at, at.edges[i])} * heads;
    for (int k = 0; k < heads; ++k) {
      const HeadView view(at, at.edges[i], k);
      float score = 0;
      for (int c = 0; c < kHeadColumns; ++c) score += view.score[c] * Leaky(view.Sum(c));
      shares[ptrdiff_t{i} * heads + k] = score;
      largest[cell + k] = std::max(largest[cell + k], score);
    }
  }
  for (int i = 0; i < at.count; ++i) {
    const ptrdiff_t cell = ptrdiff_t{ListenerOf(at, at.edges[i])} * heads;
    for (int k = 0; k < heads; ++k) {
      float& share = shares[ptrdiff_t{i} * heads + k];
      share = std::exp(share - largest[cell + k]);
      sums[cell + k] += share;
    }
  }
  for (int i = 0; i < at.count; ++i) {
    const int listener = ListenerOf(at, at.edges[i]);
    for (int k = 0; k < heads; ++k) {
      const HeadView view(at, at.edges[i], k);
      float& share = shares[ptrdiff_t{i} * heads + k];
      share /= sums[ptrdiff_t{listener} * heads + k];
      float* out = message.at + listener * message.row + k * kHeadColumns;
      for (int c = 0; c < kHeadColumns; ++c) out[c] += share * view.source[c];
    }
  }
}

void AttendBackward(const AttentionEdges& at, const float* shares, Rows dmessage, float* dshares,
                    float* sums, const AttentionGradients& gradients) {
  const int heads = at.heads();
  std::fill(sums, sums + ptrdiff_t{at.targets} * heads, 0.0F);
  for (int i = 0; i < at.count; ++i) {
    const int listener = ListenerOf(at, at.edges[i]);
    for (int k = 0; k < heads; ++k) {
      const HeadView view(at, at.edges[i], k);
      const ptrdiff_t cell = ptrdiff_t{i} * heads + k;
      const float* d = dmessage.at + listener * dmessage.row + k * kHeadColumns;
      float* dsource = gradients.sources + (view.source - at.sources);
      float dshare = 0;
      for (int c = 0; c < kHeadColumns; ++c) {
        dshare += d[c] * view.source[c];
        dsource[c] += shares[cell] * d[c];
      }
      dshares[cell] = dshare;
      sums[ptrdiff_t{listener} * heads + k] += shares[cell] * dshare;
    }
  }
  for (int i = 0; i < at.count; ++i) {
    const int listener = ListenerOf(at, at.edges[i]);
    for (int k = 0; k < heads; ++k) {
      const HeadView view(at, at.edges[i], k);
      const ptrdiff_t cell = ptrdiff_t{i} * heads + k;
      const float dscore = shares[cell] * (dshares[cell] - sums[ptrdiff_t{listener} * heads + k]);
      float* dsource = gradients.sources + (view.source - at.sources);
      float* dlistener = gradients.listeners + (view.listener - at.listeners);
      float* dedge = gradients.edge_weight + k * kHeadColumns;
      float* ds = gradients.score + k * kHeadColumns;
      for (int c = 0; c < kHeadColumns; ++c) {
        const float z = view.Sum(c);
        const float dz = dscore * view.score[c] * (z > 0 ? 1.0F : kLeakySlope);
        ds[c] += dscore * Leaky(z);
        dsource[c] += dz;
        dlistener[c] += dz;
        dedge[c] += view.weight * dz;
      }
    }
  }
}

}  // namespace rudderfish::nn
