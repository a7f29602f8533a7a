// SPDX-License-Identifier: Apache-2.0
#include "nn/aggregation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rudderfish::nn {
namespace {

MutableRows Columns(MutableRows rows, int first) { return {rows.at + first, rows.row}; }

}  // namespace

Aggregation::Memory Aggregation::Carve(const Block& b, Carver* carver) const {
  Memory m{};
  const int h = hidden_, heads = h / kHeadColumns, rows = std::max(b.nodes, b.workloads);
  const int edges = std::max(b.placements, b.calls);
  const auto take = [&](int count, int width) { return carver->Take<float>(Floats(count, width)); };
  if (encoder_ == Encoder::kGcn) m.degrees = take(b.nodes + b.workloads, 1);
  if (encoder_ == Encoder::kDeepSets) {
    m.means = take(2 * b.samples, h);
    m.members[0] = carver->Take<Edge>(Floats(b.nodes, 1));
    m.members[1] = carver->Take<Edge>(Floats(b.workloads, 1));
  }
  if (encoder_ != Encoder::kGatv2) return m;
  for (int r = 0; r < rounds_; ++r) {
    for (int relation = 0; relation < kRelations; ++relation) {
      const bool by_call = relation == kCallers || relation == kCallees;
      m.attended[r][relation] = {.sources = take(relation == kHosted ? b.nodes : b.workloads, h),
                                 .listeners = take(relation == kHosts ? b.nodes : b.workloads, h),
                                 .shares = take(by_call ? b.calls : b.placements, heads)};
    }
  }
  m.largest = take(rows, heads);
  m.sums = take(rows, heads);
  m.dsources = take(rows, h);
  m.dlisteners = take(rows, h);
  m.dshares = take(edges, heads);
  return m;
}

// Divides weights by the square root of both ends' degrees. The ends are rows of one table, or of
// two, whose degrees lie one after another.
void Aggregation::Normalise(int edges, Edge* edge, int b_first, int rows) const {
  float* degrees = m_.degrees;
  std::fill(degrees, degrees + rows, 1.0F);
  for (int i = 0; i < edges; ++i) {
    degrees[edge[i].a] += edge[i].weight;
    degrees[b_first + edge[i].b] += edge[i].weight;
  }
  for (int i = 0; i < edges; ++i) {
    edge[i].weight /= std::sqrt(degrees[edge[i].a] * degrees[b_first + edge[i].b]);
  }
}

void Aggregation::Enter(const Graph& graph, const Memory& memory) {
  graph_ = graph;
  m_ = memory;
}

void Aggregation::Prepare() {
  const Block& b = graph_.block;
  if (encoder_ == Encoder::kGcn) {
    Normalise(b.placements, graph_.placements, b.nodes, b.nodes + b.workloads);
    Normalise(b.calls, graph_.calls, 0, b.workloads);
  }
  if (encoder_ != Encoder::kDeepSets) return;
  const int32_t* begins[] = {graph_.node_begin, graph_.workload_begin};
  for (int table = 0; table < 2; ++table) {
    for (int s = 0; s < b.samples; ++s) {
      const int32_t first = begins[table][s], end = begins[table][s + 1];
      for (int32_t i = first; i < end; ++i) {
        m_.members[table][i] = {.a = i, .b = s, .weight = 1.0F / static_cast<float>(end - first)};
      }
    }
  }
}

Aggregation::Link Aggregation::LinkOf(int relation, const Tables& tables) const {
  const Block& b = graph_.block;
  const int h = hidden_;
  const MutableRows node = tables.node, workload = tables.workload;
  switch (relation) {
    case kHosts:
      return {b.placements, graph_.placements, EdgeEnd::kA, b.workloads,
              b.nodes,      workload,          node,        Columns(node, h)};
    case kHosted:
      return {b.placements, graph_.placements, EdgeEnd::kB,         b.nodes, b.workloads,
              node,         workload,          Columns(workload, h)};
    case kCallers:
      return {b.calls,     graph_.calls, EdgeEnd::kB, b.workloads,
              b.workloads, workload,     workload,    Columns(workload, 2 * h)};
    default:
      return {b.calls,     graph_.calls, EdgeEnd::kA, b.workloads,
              b.workloads, workload,     workload,    Columns(workload, 3 * h)};
  }
}

void Aggregation::Forward(int round, const float* weights, const Tables& tables) {
  if (encoder_ == Encoder::kMlp) return;
  if (encoder_ == Encoder::kDeepSets) return Average(tables);
  const int h = hidden_;
  kernels_.clear(graph_.block.nodes, h, tables.node.at + h, tables.node.row);
  kernels_.clear(graph_.block.workloads, 3 * h, tables.workload.at + h, tables.workload.row);
  for (int relation = 0; relation < kRelations; ++relation) {
    const Link link = LinkOf(relation, tables);
    if (encoder_ == Encoder::kGatv2) {
      AttendAlong(round, relation, weights, link);
    } else {
      Sum(link);
    }
  }
}

void Aggregation::Backward(int round, const float* weights, const float* transposes,
                           const Tables& tables, const Tables& d, float* gradient) {
  if (encoder_ == Encoder::kMlp) return;
  if (encoder_ == Encoder::kDeepSets) return AverageBackward(d);
  for (int relation = 0; relation < kRelations; ++relation) {
    if (encoder_ == Encoder::kGatv2) {
      AttendBackwardAlong(round, relation, weights, transposes, LinkOf(relation, tables),
                          LinkOf(relation, d), gradient);
    } else {
      SumBackward(LinkOf(relation, d));
    }
  }
}

void Aggregation::Sum(const Link& link) const {
  const auto sum = link.target == EdgeEnd::kA ? kernels_.edges_to_a : kernels_.edges_to_b;
  sum(link.edges, link.edge, hidden_, link.source.at, link.source.row, link.message.at,
      link.message.row);
}

void Aggregation::SumBackward(const Link& d) const {
  const auto sum = d.target == EdgeEnd::kA ? kernels_.edges_to_b : kernels_.edges_to_a;
  sum(d.edges, d.edge, hidden_, d.message.at, d.message.row, d.source.at, d.source.row);
}

AttentionEdges Aggregation::EdgesOf(const Link& link, const Memory::Attended& kept,
                                    const AttentionOffsets& at, const float* weights) const {
  return {.count = link.edges,
          .edges = link.edge,
          .target = link.target,
          .hidden = hidden_,
          .targets = link.listeners,
          .sources = kept.sources,
          .listeners = kept.listeners,
          .edge_weight = weights + at.edge,
          .score = weights + at.score};
}

void Aggregation::AttendAlong(int round, int relation, const float* weights, const Link& link) {
  const int h = hidden_;
  const AttentionOffsets& at = (*attention_)[static_cast<size_t>(round)][relation];
  const Memory::Attended& kept = m_.attended[round][relation];
  dense_.Forward(link.sources, {h, h}, link.source, weights + at.source, nullptr, Activation::kNone,
                 {kept.sources, h});
  dense_.Forward(link.listeners, {h, h}, link.listener, weights + at.listener, nullptr,
                 Activation::kNone, {kept.listeners, h});
  Attend(EdgesOf(link, kept, at, weights), kept.shares, m_.largest, m_.sums, link.message);
}

void Aggregation::AttendBackwardAlong(int round, int relation, const float* weights,
                                      const float* transposes, const Link& link, const Link& d,
                                      float* gradient) {
  const int h = hidden_;
  const AttentionOffsets& at = (*attention_)[static_cast<size_t>(round)][relation];
  const Memory::Attended& kept = m_.attended[round][relation];
  kernels_.clear(link.sources, h, m_.dsources, h);
  kernels_.clear(link.listeners, h, m_.dlisteners, h);
  AttendBackward(EdgesOf(link, kept, at, weights), kept.shares, d.message, m_.dshares, m_.sums,
                 {.sources = m_.dsources,
                  .listeners = m_.dlisteners,
                  .edge_weight = gradient + at.edge,
                  .score = gradient + at.score});
  dense_.WeightGradient(link.sources, {h, h}, link.source, {m_.dsources, h}, gradient + at.source);
  dense_.WeightGradient(link.listeners, {h, h}, link.listener, {m_.dlisteners, h},
                        gradient + at.listener);
  const float* transposed = transposes + 2 * static_cast<size_t>(relation) * Floats(h, h);
  dense_.InputGradient(link.sources, {h, h}, {m_.dsources, h}, transposed, Initial::kKeep,
                       d.source);
  dense_.InputGradient(link.listeners, {h, h}, {m_.dlisteners, h}, transposed + Floats(h, h),
                       Initial::kKeep, d.listener);
}

size_t Aggregation::TransposeFloats() const {
  return encoder_ == Encoder::kGatv2 ? 2 * kRelations * Floats(hidden_, hidden_) : 0;
}

void Aggregation::Transpose(int round, const float* weights, float* transposes) const {
  if (encoder_ != Encoder::kGatv2) return;
  for (const AttentionOffsets& at : (*attention_)[static_cast<size_t>(round)]) {
    for (const size_t offset : {at.source, at.listener}) {
      kernels_.transpose(hidden_, hidden_, weights + offset, transposes);
      transposes += Floats(hidden_, hidden_);
    }
  }
}

// [n, mean n, mean s] and [s, mean s, mean n].
void Aggregation::Average(const Tables& tables) {
  const Block& b = graph_.block;
  const int h = hidden_;
  const MutableRows sets[] = {tables.node, tables.workload};
  const int rows[] = {b.nodes, b.workloads};
  const int32_t* begins[] = {graph_.node_begin, graph_.workload_begin};
  float* means[] = {m_.means, m_.means + Floats(b.samples, h)};
  kernels_.clear(2 * b.samples, h, m_.means, h);
  for (int set = 0; set < 2; ++set) {
    kernels_.edges_to_b(rows[set], m_.members[set], h, sets[set].at, sets[set].row, means[set], h);
  }
  for (int set = 0; set < 2; ++set) {
    for (int s = 0; s < b.samples; ++s) {
      for (int i = begins[set][s]; i < begins[set][s + 1]; ++i) {
        float* row = sets[set].at + i * sets[set].row;
        std::memcpy(row + h, means[set] + Floats(s, h), Floats(h, sizeof(float)));
        std::memcpy(row + 2 * h, means[1 - set] + Floats(s, h), Floats(h, sizeof(float)));
      }
    }
  }
}

void Aggregation::AverageBackward(const Tables& d) {
  const Block& b = graph_.block;
  const int h = hidden_;
  const MutableRows sets[] = {d.node, d.workload};
  const int rows[] = {b.nodes, b.workloads};
  const int32_t* begins[] = {graph_.node_begin, graph_.workload_begin};
  float* means[] = {m_.means, m_.means + Floats(b.samples, h)};  // From here on their gradients.
  kernels_.clear(2 * b.samples, h, m_.means, h);
  for (int set = 0; set < 2; ++set) {
    for (int s = 0; s < b.samples; ++s) {
      const int first = begins[set][s], count = begins[set][s + 1] - first;
      const float* row = sets[set].at + first * sets[set].row;
      kernels_.column_sums(count, h, row + h, sets[set].row, means[set] + Floats(s, h));
      kernels_.column_sums(count, h, row + 2 * h, sets[set].row, means[1 - set] + Floats(s, h));
    }
  }
  for (int set = 0; set < 2; ++set) {
    kernels_.edges_to_a(rows[set], m_.members[set], h, means[set], h, sets[set].at, sets[set].row);
  }
}

}  // namespace rudderfish::nn
