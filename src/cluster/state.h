// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/call_graph.h"
#include "cluster/catalog.h"
#include "cluster/devices.h"
#include "cluster/ids.h"
#include "cluster/resources.h"

// What is known of a cluster at one moment: columns of plain values, owned by one thread and
// refreshed in place. Everything shared (catalog, call graph, names) is immutable and replaced as a
// whole. Copying a State is for journals and reports, never for a decision.
//
// Invariant (CheckConsistent): for every node, free + the requests of its pods = allocatable, the
// same for each of its devices, and no pod is on a lost node.

namespace rudderfish {

struct Nodes {
  std::vector<KindId> kind;
  std::vector<Resources> allocatable;
  std::vector<Resources> free;  // allocatable less the requests of the pods bound here.
  std::vector<double> background_mbytes_per_s;  // Traffic that is not ours.

  // Columns that are empty where no node differs.
  std::vector<Devices> devices;  // What is free of them; empty: no node has any.
  std::vector<uint8_t> lost;     // 1 for a node that has failed and takes no pods.

  bool IsReady(NodeId node) const { return lost.empty() || lost[node] == 0; }
  int size() const { return static_cast<int>(kind.size()); }
};

struct Pods {
  std::vector<WorkloadId> workload;
  std::vector<NodeId> node;        // kNone while pending.
  std::vector<DeviceSet> devices;  // Which of its node's it has; empty where no node has any.

  // Which pods stay where they are for now, even if their workload may move: 1 or 0; empty: none.
  // Written by the controller's guard (control/guard.h), never by a cluster.
  std::vector<uint8_t> held;

  bool is_held(PodId pod) const { return !held.empty() && held[pod] != 0; }

  int size() const { return static_cast<int>(workload.size()); }
};

// One-way latency between layers, directional: cloud to edge need not equal edge to cloud.
struct Network {
  int layers = 0;
  std::vector<double> latency_ms;  // [from][to]

  double LatencyMs(LayerId from, LayerId to) const { return latency_ms[from * layers + to]; }
};

struct Names {
  std::vector<std::string> nodes;
  std::vector<std::string> pods;  // Empty: pods are called <workload>-<ordinal>, counted from 1.
  std::vector<std::string> addresses;  // [node] InternalIP, empty if it has none; or no column.

  bool operator==(const Names&) const = default;
};

struct State {
  std::chrono::nanoseconds at{0};
  uint64_t version = 0;
  Nodes nodes;
  Pods pods;
  Network network;
  std::shared_ptr<const Catalog> catalog;
  std::shared_ptr<const CallGraph> calls;
  std::shared_ptr<const Names> names;

  const Workload& workload_of(PodId pod) const { return catalog->workloads[pods.workload[pod]]; }
  const NodeKind& kind_of(NodeId node) const { return catalog->kinds[nodes.kind[node]]; }
};

// Moves a bound pod and keeps free resources right. REQUIRES: the pod is bound; `to` is a node of
// the state. Does not ask whether there is room: that is the mask's and the guard's question.
void MovePod(PodId pod, NodeId to, State* state);

// Binds a pending pod, to the devices that Devices::Pick names.
void BindPod(PodId pod, NodeId node, State* state);

// A bound pod is pending again.
void UnbindPod(PodId pod, State* state);

// One pod more, pending; its id is the last.
PodId AddPod(WorkloadId workload, State* state);

// The pod is gone, and gives back what it had. So that ids stay dense, the last pod takes its id.
void RemovePod(PodId pod, State* state);

// Whether the node has room for one pod more of the workload and is of a kind it may run on.
bool HasRoom(const State& state, WorkloadId workload, NodeId node);

std::string PodName(const State& state, PodId pod);
const std::string& NodeName(const State& state, NodeId node);

// CHECKs the invariant above and that every id is in range.
void CheckConsistent(const State& state);

}  // namespace rudderfish
