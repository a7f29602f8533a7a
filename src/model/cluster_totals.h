// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/state.h"
#include "model/call_distances.h"
#include "model/fragmentation.h"

// What a cluster's state amounts to: how evenly it is used, what it draws and costs, how much of it
// is stranded, how far its pods are from their users and from those they call. Kept while pods come
// and go: one pod more or less touches one node, and costs the same at 5 nodes as at 5,000.
//
//   utilisation   requested / allocatable of a node, per resource
//   sd            population standard deviation of the utilisation over the nodes
//   watts         asleep where no pod is, else by utilisation of CPU (cluster/node_costs.h)
//   price         of the nodes that have pods: an autoscaler takes away the others
//   node-user     round trip between the layer of the users and that of the node
//   calls         mean round trip between the pods that call each other (model/call_distances.h)
//
// Nodes that are lost count nowhere. Sums are of integers (utilisation in 2^-22, watts and prices
// in millionths, latency in ns), so that a pod placed and removed restores them to the bit, and
// equal what Reset computes. Allocates in Reset and CopyFor only. Not thread safe.

namespace rudderfish {

enum class ResourceKind { kCpu, kMemory, kDevices };
inline constexpr int kResourceKinds = 3;

// Everything about nodes is over those that are ready. Fractions, unless a unit is named.
struct ClusterTerms {
  std::array<double, kResourceKinds> utilisation_sd{};         // 0 to 0.5.
  std::array<double, kResourceKinds> utilisation{};            // Of all nodes, requested in all.
  std::array<double, kResourceKinds> active_utilisation{};     // Of nodes that have pods.
  std::array<double, kResourceKinds> mean_node_utilisation{};  // Mean over nodes, each the same.
  int ready_nodes = 0;
  int active_nodes = 0;  // With at least one pod.
  int bound_pods = 0;
  bool has_devices = false;  // Whether any node has devices.
  double watts = 0;
  double watts_share = 0;  // Of the most that all nodes draw.
  double price_per_hour = 0;
  double price_share = 0;      // Of what all nodes cost.
  double fragmentation = 0;    // Expected share of all devices, or of CPU, that is stranded.
  double latency_ms = 0;       // Mean node-user latency of the bound pods; 0 if there are none.
  double latency_penalty = 0;  // Mean of PlacementLaws::Penalty over them.
  double call_distance = 0;    // Mean round trip of calls, as a share of the worst there is,
  double call_ms = 0;          // and in ms; 0 if no edge counts.
  double calls_counted = 0;    // Share of the calls both of whose ends have pods.
};

// Pods more (1) or less (-1) on a node.
struct PodChange {
  NodeId node = kNone;
  int pods = 1;
  Resources held;   // By each of them.
  int devices = 0;  // Whole ones, by each of them.
};

// What placement depends on beside the State.
struct PlacementLaws {
  std::vector<NodeCosts> costs;  // [kind]; empty: nothing costs.
  PodShapes shapes;              // Empty: nothing is stranded.
  LayerId users = kNone;         // Where the users are; kNone: latency to them does not count.

  // Of a pod at this latency: 0 within its soft limit, 1/2 between soft and hard, 1 beyond (1 - r3
  // of the EL-RL reward); without limits latency / worst latency of the network from the users.
  static double Penalty(const LatencyLimits& limits, double latency_ms, double worst_ms);

  bool operator==(const PlacementLaws&) const = default;
};

class ClusterTotals {
 public:
  // REQUIRES: both outlive the totals or their next Reset.
  void Reset(const State& state, const PlacementLaws& laws);

  // As the other totals are, of a copy of their State. Allocates no more than Reset has.
  void CopyFor(const State& copy, const ClusterTotals& other) {
    *this = other;
    state_ = &copy;
  }

  // After BindPod, UnbindPod or RemovePod of a pod of the workload on the node.
  void Placed(WorkloadId workload, NodeId node) { Changed(workload, node, 1); }
  void Removed(WorkloadId workload, NodeId node) { Changed(workload, node, -1); }

  // After a node was lost or came back. REQUIRES: it has no pods.
  void NodeChanged(NodeId node);

  // After the node's free resources or readiness were overwritten in the State. It now has `pods`
  // pods, of unknown workloads. REQUIRES: laws().users is kNone, and no workload makes a call.
  void NodeReplaced(NodeId node, int pods);

  // After the network changed.
  void LatencyChanged();

  // In O(1).
  ClusterTerms Now() const { return TermsOf(sums_, calls_.Now()); }

  // What Now would be after one pod more, without placing it. REQUIRES: HasRoom.
  ClusterTerms Try(WorkloadId workload, NodeId node) const;

  // What Now would be after a few such changes; those of one node add up. Nodes that are lost do
  // not count. REQUIRES: laws().users is kNone, and no workload makes a call.
  ClusterTerms After(std::span<const PodChange> changes) const;

  const PlacementLaws& laws() const { return *laws_; }
  int PodsOn(NodeId node) const { return pods_on_[node]; }
  // 0 without users.
  double NodeUserMs(NodeId node) const;
  // Penalty of one pod of the workload there.
  double NodeUserPenalty(WorkloadId workload, NodeId node) const;
  // Mean round trip between a pod of the workload there and the bound pods that it calls or is
  // called by; 0 without any.
  double PartnerMs(WorkloadId workload, NodeId node) const;
  CallDistances::Part CallsOf(WorkloadId workload) const { return calls_.PartOf(workload); }

 private:
  // Of one node, or of all.
  struct Sums {
    std::array<int64_t, kResourceKinds> utilisation{}, utilisation_squared{};
    std::array<int64_t, kResourceKinds> used{}, capacity{}, active_used{}, active_capacity{};
    int64_t ready = 0, active = 0, pods = 0;
    int64_t microwatts = 0, most_microwatts = 0;
    int64_t microprice = 0, full_microprice = 0;
    int64_t fragments = 0;  // Times the weight of all shapes.
    int64_t latency_ns = 0, penalty_millionths = 0;

    void Add(const Sums& other, int64_t sign);
    bool operator==(const Sums&) const = default;
  };

  Sums OfNode(NodeId node, const Resources& free, const Devices& devices, int pods) const;
  void Changed(WorkloadId workload, NodeId node, int by);
  void LatencyToUsersChanged();
  void AddLatency(WorkloadId workload, NodeId node, int64_t pods, Sums* sums) const;
  const Devices& DevicesOf(NodeId node) const;
  ClusterTerms TermsOf(const Sums& sums, const CallDistances::Sums& calls) const;

  const State* state_ = nullptr;
  const PlacementLaws* laws_ = nullptr;
  bool counts_devices_ = false;
  Sums sums_;
  std::vector<Sums> of_node_;         // [node] Without latency.
  std::vector<int32_t> pods_on_;      // [node]
  std::vector<int32_t> pods_in_;      // [workload][layer]
  std::vector<double> node_user_ms_;  // [layer]
  double worst_ms_ = 0;
  CallDistances calls_;
};

}  // namespace rudderfish
