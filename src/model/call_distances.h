// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/state.h"

// How far apart pods are that call each other, kept while pods come and go.
//
//   edge      two workloads of which one calls the other (State::calls), whichever way
//   weight    calls along it for one request, averaged over the endpoints by their rates (all
//             equal where no rate is above 0), as a share of all calls
//   distance  mean over the pairs of a bound pod of the one and a bound pod of the other of the
//             round trip between the layers of their nodes, as a share of the worst round trip
//             between any two layers. Within a layer, one node included, it is the layer's own
//             latency, there and back.
//
// An edge counts while both workloads have bound pods. All sums are of integers (weights in 2^-40,
// distances of a pair in 2^-20), so that they are exact under any order of changes, and With says
// to the bit what Change leads to; 10^6 pods of a workload are no overflow. Latencies are of the
// network as it is configured: no law of requests (model/latency.h) enters.
//
// Adding or removing a pod costs the edges of its workload times the layers, and nothing where no
// workload makes a call. Allocates in Reset alone, for the largest graph at most. Not thread safe.

namespace rudderfish {

class CallDistances {
 public:
  // Of edges that count: their weight, and their weight times their distance.
  struct Sums {
    int64_t weight = 0, distance = 0;  // In kAllCalls.

    Sums operator+(const Sums& other) const {
      return {weight + other.weight, distance + other.distance};
    }
    Sums operator-(const Sums& other) const {
      return {weight - other.weight, distance - other.distance};
    }
    bool operator==(const Sums&) const = default;
  };
  static constexpr int64_t kAllCalls = int64_t{1} << 40;

  // Bound pods, [workload][layer]. The owner of the distances keeps these counts beside them.
  using Pods = std::span<const int32_t>;

  // Reads who calls whom, how far layers are apart, and where pods are.
  void Reset(const State& state, Pods pods);
  // Recomputes the distances alone.
  void LatencyChanged(const Network& network, Pods pods);

  bool empty() const { return edges_.empty(); }  // Whether no workload makes a call.

  // One pod more (1) or less (-1). `pods` is as it was before.
  void Change(WorkloadId workload, LayerId layer, int by, Pods pods);

  Sums Now() const { return sums_; }
  // What Now would be with one pod more.
  Sums With(WorkloadId workload, LayerId layer, Pods pods) const;

  double worst_ms() const { return worst_ms_; }

  // Of all calls those of which the workload is one end, and of these where the other has pods.
  struct Part {
    double calls = 0, counted = 0;
  };
  Part PartOf(WorkloadId workload) const;
  // Mean round trip from the layer to the pods at those other ends, by weight; 0 if there are none.
  double MeanMs(WorkloadId workload, LayerId from, Pods pods) const;

 private:
  struct Edge {
    WorkloadId a = 0, b = 0;  // a <= b.
    double calls = 0;         // For a request.
    int64_t weight = 0;
    int64_t distance = 0;  // Sum over pairs.
    Sums counted;          // What it is of sums_.

    WorkloadId OtherThan(WorkloadId one) const { return a == one ? b : a; }
  };

  void ListEdges(const State& state);
  void ListEdgesOfWorkloads(int workloads);
  int64_t Between(LayerId from, LayerId to) const { return between_[from * layers_ + to]; }
  int64_t ToAll(LayerId from, WorkloadId workload, Pods pods) const;
  int64_t Added(const Edge& edge, WorkloadId workload, LayerId layer, int by, Pods pods) const;
  int64_t Pairs(const Edge& edge, WorkloadId workload, int by) const;

  int layers_ = 0;
  std::vector<Edge> edges_;
  std::vector<int32_t> edge_of_;   // Edges of each workload,
  std::vector<int32_t> first_of_;  // [workload] from here on up to the next one's.
  std::vector<int64_t> bound_;     // [workload] Pods.
  std::vector<int64_t> between_;   // [layer][layer]
  double worst_ms_ = 0;
  Sums sums_;
};

}  // namespace rudderfish
