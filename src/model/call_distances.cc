// SPDX-License-Identifier: Apache-2.0
#include "model/call_distances.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr double kWorst = 1 << 20;

// Of an edge by its sum over so many pairs.
CallDistances::Sums Counted(int64_t weight, int64_t distance, int64_t pairs) {
  if (pairs == 0) return {};
  const double mean = static_cast<double>(distance) / static_cast<double>(pairs) / kWorst;
  return {weight, static_cast<int64_t>(mean * static_cast<double>(weight) + 0.5)};
}

}  // namespace

void CallDistances::Reset(const State& state, Pods pods) {
  layers_ = state.catalog->layer_count();
  const int workloads = state.catalog->workload_count();
  CHECK_EQ(pods.size(), static_cast<size_t>(workloads) * layers_);
  sums_ = {};
  edges_.clear();
  if (state.calls != nullptr) ListEdges(state);
  if (edges_.empty()) return;
  ListEdgesOfWorkloads(workloads);
  bound_.assign(workloads, 0);
  for (size_t i = 0; i < pods.size(); ++i) bound_[i / layers_] += pods[i];
  LatencyChanged(state.network, pods);
}

// Every edge once, with all calls along it.
void CallDistances::ListEdges(const State& state) {
  const CallGraph& graph = *state.calls;
  double rates = 0;
  for (const Endpoint& endpoint : graph.endpoints) rates += endpoint.rate_per_second;
  for (const Endpoint& endpoint : graph.endpoints) {
    const double share = rates > 0 ? endpoint.rate_per_second / rates
                                   : 1.0 / static_cast<double>(graph.endpoints.size());
    for (CallId id = endpoint.root; id < endpoint.end; ++id) {
      const Call& call = graph.calls[id];
      if (call.caller == kNone) continue;
      const auto [a, b] = std::minmax(call.workload, graph.calls[call.caller].workload);
      edges_.push_back({.a = a, .b = b, .calls = share});
    }
  }
  std::sort(edges_.begin(), edges_.end(), [](const Edge& one, const Edge& other) {
    return std::tie(one.a, one.b, one.calls) < std::tie(other.a, other.b, other.calls);
  });
  size_t kept = 0;
  double all = 0;
  for (const Edge& edge : edges_) {
    all += edge.calls;
    if (kept > 0 && edges_[kept - 1].a == edge.a && edges_[kept - 1].b == edge.b) {
      edges_[kept - 1].calls += edge.calls;
    } else {
      edges_[kept++] = edge;
    }
  }
  edges_.resize(kept);
  for (Edge& edge : edges_)
    edge.weight = all > 0 ? std::llround(edge.calls / all * static_cast<double>(kAllCalls)) : 0;
  std::erase_if(edges_, [](const Edge& edge) { return edge.weight == 0; });
}

void CallDistances::ListEdgesOfWorkloads(int workloads) {
  first_of_.assign(workloads + 1, 0);
  edge_of_.resize(2 * edges_.size());
  const auto for_each_end = [&](const auto& what) {
    for (size_t e = 0; e < edges_.size(); ++e) {
      what(e, edges_[e].a);
      if (edges_[e].b != edges_[e].a) what(e, edges_[e].b);
    }
  };
  for_each_end([&](size_t, WorkloadId w) { ++first_of_[w]; });
  int32_t end = 0;
  for (int32_t& first : first_of_) first = end += first;
  // Filled from behind, so that each entry ends at its first.
  for_each_end([&](size_t e, WorkloadId w) { edge_of_[--first_of_[w]] = static_cast<int32_t>(e); });
}

void CallDistances::LatencyChanged(const Network& network, Pods pods) {
  if (edges_.empty()) return;
  worst_ms_ = 0;
  const auto round_trip_ms = [&](LayerId a, LayerId b) {
    return network.LatencyMs(a, b) + network.LatencyMs(b, a);
  };
  for (LayerId a = 0; a < layers_; ++a) {
    for (LayerId b = 0; b <= a; ++b) worst_ms_ = std::max(worst_ms_, round_trip_ms(a, b));
  }
  between_.resize(static_cast<size_t>(layers_) * layers_);
  for (LayerId a = 0; a < layers_; ++a) {
    for (LayerId b = 0; b < layers_; ++b) {
      const double share = worst_ms_ > 0 ? round_trip_ms(a, b) / worst_ms_ : 0;
      between_[a * layers_ + b] = std::llround(share * kWorst);
    }
  }
  sums_ = {};
  for (Edge& edge : edges_) {
    edge.distance = 0;
    for (LayerId layer = 0; layer < layers_; ++layer)
      edge.distance += pods[edge.a * layers_ + layer] * ToAll(layer, edge.b, pods);
    edge.counted = Counted(edge.weight, edge.distance, Pairs(edge, edge.a, 0));
    sums_ = sums_ + edge.counted;
  }
}

// Sum over the pods of the workload.
int64_t CallDistances::ToAll(LayerId from, WorkloadId workload, Pods pods) const {
  int64_t sum = 0;
  for (LayerId to = 0; to < layers_; ++to) sum += Between(from, to) * pods[workload * layers_ + to];
  return sum;
}

// What the edge's sum over pairs gains by a pod of one of its ends.
int64_t CallDistances::Added(const Edge& edge, WorkloadId workload, LayerId layer, int by,
                             Pods pods) const {
  const int64_t to_all = by * ToAll(layer, edge.OtherThan(workload), pods);
  // Of a workload that calls itself a pod is on both ends, and calls itself, too.
  return edge.a == edge.b ? 2 * to_all + Between(layer, layer) : to_all;
}

int64_t CallDistances::Pairs(const Edge& edge, WorkloadId workload, int by) const {
  return (bound_[edge.a] + (edge.a == workload ? by : 0)) *
         (bound_[edge.b] + (edge.b == workload ? by : 0));
}

void CallDistances::Change(WorkloadId workload, LayerId layer, int by, Pods pods) {
  if (edges_.empty()) return;
  for (int32_t i = first_of_[workload]; i < first_of_[workload + 1]; ++i) {
    Edge& edge = edges_[edge_of_[i]];
    sums_ = sums_ - edge.counted;
    edge.distance += Added(edge, workload, layer, by, pods);
    edge.counted = Counted(edge.weight, edge.distance, Pairs(edge, workload, by));
    sums_ = sums_ + edge.counted;
  }
  bound_[workload] += by;
}

CallDistances::Sums CallDistances::With(WorkloadId workload, LayerId layer, Pods pods) const {
  Sums sums = sums_;
  if (edges_.empty()) return sums;
  for (int32_t i = first_of_[workload]; i < first_of_[workload + 1]; ++i) {
    const Edge& edge = edges_[edge_of_[i]];
    const int64_t distance = edge.distance + Added(edge, workload, layer, 1, pods);
    sums = sums - edge.counted + Counted(edge.weight, distance, Pairs(edge, workload, 1));
  }
  return sums;
}

CallDistances::Part CallDistances::PartOf(WorkloadId workload) const {
  Part part;
  if (edges_.empty()) return part;
  for (int32_t i = first_of_[workload]; i < first_of_[workload + 1]; ++i) {
    const Edge& edge = edges_[edge_of_[i]];
    const double weight = static_cast<double>(edge.weight) / static_cast<double>(kAllCalls);
    part.calls += weight;
    if (bound_[edge.OtherThan(workload)] > 0) part.counted += weight;
  }
  return part;
}

double CallDistances::MeanMs(WorkloadId workload, LayerId from, Pods pods) const {
  double sum = 0, weights = 0;
  if (edges_.empty()) return 0;
  for (int32_t i = first_of_[workload]; i < first_of_[workload + 1]; ++i) {
    const Edge& edge = edges_[edge_of_[i]];
    const WorkloadId other = edge.OtherThan(workload);
    if (bound_[other] == 0) continue;
    const auto weight = static_cast<double>(edge.weight);
    weights += weight;
    sum +=
        weight * static_cast<double>(ToAll(from, other, pods)) / static_cast<double>(bound_[other]);
  }
  return weights > 0 ? sum / weights / kWorst * worst_ms_ : 0;
}

}  // namespace rudderfish
