// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cluster/devices.h"
#include "cluster/ids.h"
#include "cluster/node_costs.h"
#include "cluster/resources.h"

// What stays the same while pods move: layers, kinds of node, workloads. A Catalog is immutable and
// shared by the States that refer to it; when a workload or a kind of node appears, a new Catalog
// replaces the old one as a whole.

namespace rudderfish {

// A part of the continuum with its own network position: cloud, edge, client; or a zone.
struct Layer {
  std::string name;
  bool accepts_moves = true;  // Whether a running pod may be moved to its nodes.
};

// Nodes of one kind are equal to every law of latency: same layer, speed and bandwidth. They differ
// in what is free.
struct NodeKind {
  std::string name;
  LayerId layer = 0;
  std::string cpu_type;  // The key of execution times in a call graph.
  double bandwidth_mbytes_per_s = 0;
};

// How far from the users a pod may be, as a round trip. Above the hard limit it must not run; above
// the soft one it had better not. Without a limit: infinity.
struct LatencyLimits {
  double soft_ms = std::numeric_limits<double>::infinity();
  double hard_ms = std::numeric_limits<double>::infinity();

  bool any() const { return soft_ms < std::numeric_limits<double>::infinity() || has_hard(); }
  bool has_hard() const { return hard_ms < std::numeric_limits<double>::infinity(); }
  bool operator==(const LatencyLimits&) const = default;
};

using NodeKindSet = uint64_t;  // One bit a kind; kinds from the 64th on are in none but kAnyKind.
inline constexpr NodeKindSet kAnyKind = ~NodeKindSet{0};

inline bool Contains(NodeKindSet set, KindId kind) {
  return set == kAnyKind || (kind < 64 && (set >> kind & 1) != 0);
}

// What a pod is seen to do while it runs, beside what it requests: for who learns from what earlier
// systems measured (task/placement_preset.h). Plain value.
struct MeasuredUsage {
  double connections = 0;  // Of TCP, established.
  double received_kb_per_s = 0, sent_kb_per_s = 0;
  double read_kb_per_s = 0, written_kb_per_s = 0;

  bool transfers() const {
    return received_kb_per_s > 0 || sent_kb_per_s > 0 || read_kb_per_s > 0 || written_kb_per_s > 0;
  }
  bool operator==(const MeasuredUsage&) const = default;
};

// Pods of one workload are interchangeable. REACH calls this a service, Kubernetes' word for
// something else.
struct Workload {
  std::string name;
  Resources requests;  // Of one pod.
  int replicas_max = 1;
  bool movable =
      true;  // False for persistent workloads and for those that stand for the outside (clients).
  DeviceRequest devices;              // Of one pod, beside `requests`.
  NodeKindSet node_kinds = kAnyKind;  // Where its pods may run.
  LatencyLimits latency_limits;
  MeasuredUsage measured;
};

struct Catalog {
  std::vector<Layer> layers;
  std::vector<NodeKind> kinds;
  std::vector<Workload> workloads;

  int layer_count() const { return static_cast<int>(layers.size()); }
  int kind_count() const { return static_cast<int>(kinds.size()); }
  int workload_count() const { return static_cast<int>(workloads.size()); }
};

}  // namespace rudderfish
