// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/graph_batch.h"
#include "base/rng.h"
#include "nn/candidate_net.h"

// The network of nn/candidate_net.h once more, in double and one question at a time, written from
// its formulas without any of its code: what central differences are taken of.

namespace rudderfish::nn {

class ReferenceNet {
 public:
  using Row = std::vector<double>;
  using Table = std::vector<Row>;

  struct Outputs {
    Row logits;
    double stop = 0;
    double value = 0;
  };

  explicit ReferenceNet(const CandidateNet& net)
      : net_(net), p_(net.parameters().begin(), net.parameters().end()) {}

  Row& parameters() { return p_; }

  // `memory`: what is remembered before, then after; of a net that remembers.
  Outputs Forward(const GraphBatch& batch, int sample, Row* memory = nullptr) const {
    const auto at = static_cast<size_t>(sample);
    const Table x = Slice(batch.candidates, batch.candidate_begin, at, batch.widths.candidate);
    Table n = Slice(batch.nodes, batch.node_begin, at, batch.widths.node);
    Table s = Slice(batch.workloads, batch.workload_begin, at, batch.widths.workload);
    const Row g(batch.context.begin() + sample * batch.widths.context,
                batch.context.begin() + (sample + 1) * batch.widths.context);
    for (Row& row : n) row = Relu(Dense(row, "node.weight", "node.bias"));
    for (Row& row : s) row = Relu(Dense(row, "workload.weight", "workload.bias"));
    for (int r = 0; r < net_.shape().rounds; ++r)
      PassMessages(batch, at, "round" + std::to_string(r), &n, &s);

    const int h = net_.shape().hidden;
    const NamedTensor& by_ends = Tensor("candidate.ends");
    const NamedTensor& by_workload = Tensor("candidate.workload");
    Table e;
    for (size_t i = 0; i < x.size(); ++i) {
      const CandidateEnds& ends = batch.ends[static_cast<size_t>(batch.candidate_begin[at]) + i];
      Row row =
          Add(Dense(x[i], "candidate.weight", "candidate.bias"), Dense(g, "candidate.context"));
      for (int j = 0; j < h; ++j) {
        if (ends.from >= 0) row[Z(j)] += Column(n[Z(ends.from)], by_ends, j);
        if (ends.to >= 0) row[Z(j)] += Column(n[Z(ends.to)], by_ends, h + j);
        if (ends.workload >= 0) row[Z(j)] += Column(s[Z(ends.workload)], by_workload, j);
      }
      e.push_back(Relu(row));
    }

    Row pooled;
    for (const Table* table : {&e, &n, &s}) {
      for (const Row& part : {Mean(*table), Max(*table)})
        pooled.insert(pooled.end(), part.begin(), part.end());
    }
    pooled.insert(pooled.end(), g.begin(), g.end());
    Row context = Relu(Dense(pooled, "context.weight", "context.bias"));
    if (memory != nullptr) {
      *memory = Remembered(context, *memory);
      context = Add(context, *memory);
    }
    Outputs outputs;
    for (size_t i = 0; i < x.size(); ++i) {
      const Row hidden =
          Relu(Add(Dense(e[i], "score.weight", "score.bias"), Dense(context, "score.context")));
      outputs.logits.push_back(Dot(hidden, "logit.weight") + Dot(x[i], "logit.skip"));
    }
    const Row decision = Relu(Dense(context, "decision.weight", "decision.bias"));
    outputs.stop = Dot(decision, "stop.weight") + P("stop.bias")[0];
    outputs.value = Dot(decision, "value.weight") + P("value.bias")[0];
    return outputs;
  }

 private:
  static size_t Z(int i) { return static_cast<size_t>(i); }

  const NamedTensor& Tensor(const std::string& name) const {
    return *std::find_if(net_.tensors().begin(), net_.tensors().end(),
                         [&](const auto& t) { return t.name == name; });
  }
  const double* P(const std::string& name) const { return p_.data() + Tensor(name).offset; }

  static Table Slice(const FloatRows& values, const std::vector<int32_t>& begin, size_t sample,
                     int width) {
    Table table;
    for (int i = begin[sample]; i < begin[sample + 1]; ++i) {
      table.emplace_back(values.begin() + ptrdiff_t{i} * width,
                         values.begin() + ptrdiff_t{i + 1} * width);
    }
    return table;
  }

  double Column(const Row& x, const NamedTensor& tensor, int column) const {
    // Plain pointers: most of the time under a sanitizer is spent here.
    const double* weight = p_.data() + tensor.offset + column;
    const double* const end = x.data() + x.size();
    double sum = 0;
    for (const double* from = x.data(); from != end; ++from, weight += tensor.columns)
      sum += *from * *weight;
    return sum;
  }

  Row Dense(const Row& x, const std::string& weight, const std::string& bias = "") const {
    const NamedTensor& tensor = Tensor(weight);
    const double* offsets = bias.empty() ? nullptr : P(bias);
    Row y(Z(tensor.columns));
    for (size_t j = 0; j < y.size(); ++j) {
      y[j] = Column(x, tensor, static_cast<int>(j)) + (offsets == nullptr ? 0 : offsets[j]);
    }
    return y;
  }

  double Dot(const Row& x, const std::string& weight) const {
    const double* w = P(weight);
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] * w[i];
    return sum;
  }

  static Row Relu(Row x) {
    for (double& value : x) value = std::max(value, 0.0);
    return x;
  }
  static Row Add(Row x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    return x;
  }

  Row Mean(const Table& table) const {
    Row mean(Z(net_.shape().hidden));
    for (const Row& row : table) mean = Add(mean, row);
    for (double& value : mean) value /= std::max<double>(1, static_cast<double>(table.size()));
    return mean;
  }
  Row Max(const Table& table) const {
    Row largest = table.empty() ? Row(Z(net_.shape().hidden)) : table[0];
    for (const Row& row : table) {
      for (size_t j = 0; j < row.size(); ++j) largest[j] = std::max(largest[j], row[j]);
    }
    return largest;
  }

  // A gated recurrent unit, element by element.
  Row Remembered(const Row& x, const Row& m) const {
    const size_t h = x.size();
    const Row seen = Dense(x, "memory.input", "memory.bias"), kept = Dense(m, "memory.recurrent");
    const auto logistic = [](double a) { return 1 / (1 + std::exp(-a)); };
    Row reset(h);
    for (size_t j = 0; j < h; ++j) reset[j] = logistic(seen[h + j] + kept[h + j]) * m[j];
    const Row candidate = Dense(reset, "memory.candidate");
    Row next(h);
    for (size_t j = 0; j < h; ++j) {
      const double z = logistic(seen[j] + kept[j]);
      next[j] = (1 - z) * m[j] + z * std::tanh(seen[2 * h + j] + candidate[j]);
    }
    return next;
  }

  // An edge as one relation sees it: row i of the listeners hears row j of the sources.
  struct Hears {
    size_t i, j;
    double weight;
  };

  static Row Joined(const std::vector<Row>& parts) {
    Row row;
    for (const Row& part : parts) row.insert(row.end(), part.begin(), part.end());
    return row;
  }

  // d of both ends of each edge; the ends are rows of one table, or of two.
  static std::vector<Hears> Normalised(std::vector<Hears> edges, size_t i_rows, size_t j_rows,
                                       bool one_table) {
    Row i_degree(i_rows, 1), j_degree(j_rows, 1);
    for (const Hears& edge : edges) {
      i_degree[edge.i] += edge.weight;
      (one_table ? i_degree : j_degree)[edge.j] += edge.weight;
    }
    for (Hears& edge : edges) {
      edge.weight /= std::sqrt(i_degree[edge.i] * (one_table ? i_degree : j_degree)[edge.j]);
    }
    return edges;
  }

  Table Sums(const std::vector<Hears>& edges, size_t rows, const Table& sources) const {
    Table messages(rows, Row(Z(net_.shape().hidden)));
    for (const Hears& edge : edges) {
      for (size_t c = 0; c < messages[edge.i].size(); ++c)
        messages[edge.i][c] += edge.weight * sources[edge.j][c];
    }
    return messages;
  }

  // GATv2 row by row, head by head.
  Table Attended(const std::vector<Hears>& edges, const Table& listeners, const Table& sources,
                 const std::string& name) const {
    Table messages(listeners.size(), Row(Z(net_.shape().hidden)));
    for (size_t i = 0; i < listeners.size(); ++i) {
      const Row own = Dense(listeners[i], name + ".listener");
      for (size_t head = 0; head < messages[i].size(); head += 16) {
        Row weights;
        Table values;
        double sum = 0;
        for (const Hears& edge : edges) {
          if (edge.i != i) continue;
          values.push_back(Dense(sources[edge.j], name + ".source"));
          double score = 0;
          for (size_t c = head; c < head + 16; ++c) {
            const double z = values.back()[c] + own[c] + edge.weight * P(name + ".edge")[c];
            score += P(name + ".score")[c] * (z > 0 ? z : 0.2 * z);
          }
          weights.push_back(std::exp(score));
          sum += weights.back();
        }
        for (size_t e = 0; e < weights.size(); ++e) {
          for (size_t c = head; c < head + 16; ++c)
            messages[i][c] += weights[e] / sum * values[e][c];
        }
      }
    }
    return messages;
  }

  void PassMessages(const GraphBatch& batch, size_t sample, const std::string& round, Table* nodes,
                    Table* workloads) const {
    const Table n = *nodes, s = *workloads;
    std::vector<Hears> hosts, hosted, callers, callees;
    for (int i = batch.placement_begin[sample]; i < batch.placement_begin[sample + 1]; ++i) {
      const GraphEdge& edge = batch.placements[Z(i)];
      hosts.push_back({Z(edge.a), Z(edge.b), edge.weight});
      hosted.push_back({Z(edge.b), Z(edge.a), edge.weight});
    }
    for (int i = batch.call_begin[sample]; i < batch.call_begin[sample + 1]; ++i) {
      const GraphEdge& edge = batch.calls[Z(i)];
      callers.push_back({Z(edge.b), Z(edge.a), edge.weight});
      callees.push_back({Z(edge.a), Z(edge.b), edge.weight});
    }
    const Encoder encoder = net_.shape().encoder;
    if (encoder == Encoder::kGcn) {
      hosts = Normalised(hosts, n.size(), s.size(), false);
      hosted = Normalised(hosted, s.size(), n.size(), false);
      callers = Normalised(callers, s.size(), s.size(), true);
      callees = Normalised(callees, s.size(), s.size(), true);
    }
    const auto messages = [&](const std::vector<Hears>& edges, const Table& listeners,
                              const Table& sources, const char* name) {
      return encoder == Encoder::kGatv2 ? Attended(edges, listeners, sources, round + "." + name)
                                        : Sums(edges, listeners.size(), sources);
    };
    Table from_hosts = messages(hosts, n, s, "hosts"),
          from_hosted = messages(hosted, s, n, "hosted"),
          from_callers = messages(callers, s, s, "callers"),
          from_callees = messages(callees, s, s, "callees");
    const auto next = [&](const Row& x, std::vector<Row> parts, const std::string& table) {
      if (encoder == Encoder::kMlp) parts = {x};
      return Relu(Dense(Joined(parts), round + table + ".weight", round + table + ".bias"));
    };
    const bool by_sets = encoder == Encoder::kDeepSets;
    for (size_t i = 0; i < n.size(); ++i) {
      (*nodes)[i] = next(n[i],
                         by_sets ? std::vector<Row>{n[i], Mean(n), Mean(s)}
                                 : std::vector<Row>{n[i], from_hosts[i]},
                         ".node");
    }
    for (size_t i = 0; i < s.size(); ++i) {
      (*workloads)[i] =
          next(s[i],
               by_sets ? std::vector<Row>{s[i], Mean(s), Mean(n)}
                       : std::vector<Row>{s[i], from_hosted[i], from_callers[i], from_callees[i]},
               ".workload");
    }
  }

  const CandidateNet& net_;
  Row p_;
};

// `gradient`, found in float, against central differences of `loss(reference)` in double: ten
// floats of every tensor, each of which has to matter; what is left is float's rounding.
template <class Loss>
void ExpectCentralDifferences(const CandidateNet& net, std::span<const float> gradient,
                              const Loss& loss, double tolerance) {
  constexpr double kStep = 1e-6;
  ReferenceNet reference(net);
  Rng rng(23);
  for (const NamedTensor& tensor : net.tensors()) {
    const auto floats = static_cast<uint32_t>(tensor.rows * tensor.columns);
    double largest = 0;
    for (uint32_t sample = 0; sample < std::min(floats, 10U); ++sample) {
      const size_t at = tensor.offset + rng.Below(floats);
      double* parameter = &reference.parameters()[at];
      const double was = *parameter;
      *parameter = was + kStep;
      const double above = loss(reference);
      *parameter = was - kStep;
      const double below = loss(reference);
      *parameter = was;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[at], expected, tolerance * (1 + std::abs(expected)))
          << tensor.name << " float " << at;
      largest = std::max(largest, std::abs(expected));
    }
    EXPECT_GT(largest, 0) << tensor.name
                          << " does not matter to the outputs: the test is blind to it";
  }
}

}  // namespace rudderfish::nn
