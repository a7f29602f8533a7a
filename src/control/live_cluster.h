// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/scheduling.h"
#include "model/node_table.h"
#include "policy/placement_facts.h"
#include "task/placement.h"

// A live cluster as the Model and a PlacementTask ask for it, by what pods request: the State and
// the totals that a simulated world has. What a cluster does not say comes from PlacementFacts; the
// type of a node is the value of a label, where types matter at all. A node of no known type, or
// with more GPUs than kMaxDevices, is outside: it counts nowhere and is no candidate.
//
// Every pod counts as one on its node, those of DaemonSets too. Devices: `nvidia.com/gpu`, whole.
// How far a node is from the users it says itself (SchedulingNode::user_ms); the latency of pods
// that are there counts as 0, which is the same for every choice of a node for another one.
//
// Read compares each node and recomputes those that have changed; nothing is allocated unless nodes
// themselves have. One thread.

namespace rudderfish {

inline constexpr std::string_view kNodeTypeLabel = "node.kubernetes.io/instance-type";

// Of one pod, by its extended resources.
int WholeDevicesOf(const PodAmounts& amounts);

class LiveCluster {
 public:
  // REQUIRES: the facts know no users.
  LiveCluster(PlacementFacts facts, std::string type_label);
  LiveCluster(const LiveCluster&) = delete;
  LiveCluster& operator=(const LiveCluster&) = delete;

  // As `nodes` is now. Always the same table.
  void Read(const NodeTable& nodes);

  ClusterTerms Now() const { return totals_.Now(); }
  // `limits`: those of the pods that come or go. REQUIRES: nodes are of the table that was read.
  ClusterTerms After(std::span<const PodChange> changes, const LatencyLimits& limits = {}) const;

  // Where such a pod goes. Valid until the next Ask or Read.
  PlacementQuestion Ask(const PodAmounts& amounts);

  // Where the first pod of a queue goes: `order` says of each pod which of `kinds` it is. Valid as
  // long, and as `order` is. REQUIRES: kKindsMax at most.
  static constexpr size_t kKindsMax = 16;
  PlacementQuestion AskQueue(std::span<const PodAmounts* const> kinds,
                             std::span<const WorkloadId> order);

  bool IsInside(NodeId node) const { return state_.nodes.IsReady(node); }
  // Of the table that was read: nodes of each type of the facts, and those that are outside.
  std::vector<int> CountTypes() const;
  int CountOutside() const;

  const PlacementFacts& facts() const { return facts_; }

 private:
  void ReadAll(const NodeTable& nodes);
  bool ReadFree(const NodeTable& nodes, int gpu_row, NodeId node);
  int TypeOf(const SchedulingNode& node) const;

  PlacementFacts facts_;
  std::string type_label_;
  bool types_matter_;
  std::shared_ptr<Catalog> catalog_;  // Its workloads are the kinds of pods that are asked about.
  State state_;
  ClusterTotals totals_;
  std::vector<int64_t> pods_;    // [node]
  std::vector<double> user_ms_;  // [node] Infinity: it does not say.
  double worst_ms_ = 0;          // Of those that say it.
  uint64_t version_ = 0;
};

}  // namespace rudderfish
