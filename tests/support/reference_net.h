// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/graph_batch.h"
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

  Outputs Forward(const GraphBatch& batch, int sample) const {
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
    const Row context = Relu(Dense(pooled, "context.weight", "context.bias"));
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
    double sum = 0;
    for (size_t k = 0; k < x.size(); ++k)
      sum += x[k] * p_[tensor.offset + k * Z(tensor.columns) + Z(column)];
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

  void PassMessages(const GraphBatch& batch, size_t sample, const std::string& round, Table* nodes,
                    Table* workloads) const {
    const Table n = *nodes, s = *workloads;
    const size_t h = Z(net_.shape().hidden);
    const auto widen = [h](Row row, size_t parts) {
      row.resize(h * parts);
      return row;
    };
    const auto add = [h](Row* to, size_t part, double weight, const Row& from) {
      for (size_t j = 0; j < h; ++j) (*to)[part * h + j] += weight * from[j];
    };
    for (Row& row : *nodes) row = widen(row, 2);
    for (Row& row : *workloads) row = widen(row, 4);
    for (int i = batch.placement_begin[sample]; i < batch.placement_begin[sample + 1]; ++i) {
      const GraphEdge& edge = batch.placements[Z(i)];
      add(&(*nodes)[Z(edge.a)], 1, edge.weight, s[Z(edge.b)]);
      add(&(*workloads)[Z(edge.b)], 1, edge.weight, n[Z(edge.a)]);
    }
    for (int i = batch.call_begin[sample]; i < batch.call_begin[sample + 1]; ++i) {
      const GraphEdge& edge = batch.calls[Z(i)];
      add(&(*workloads)[Z(edge.b)], 2, edge.weight, s[Z(edge.a)]);
      add(&(*workloads)[Z(edge.a)], 3, edge.weight, s[Z(edge.b)]);
    }
    for (Row& row : *nodes) row = Relu(Dense(row, round + ".node.weight", round + ".node.bias"));
    for (Row& row : *workloads)
      row = Relu(Dense(row, round + ".workload.weight", round + ".workload.bias"));
  }

  const CandidateNet& net_;
  Row p_;
};

}  // namespace rudderfish::nn
