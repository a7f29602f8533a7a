// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/cluster_source.h"
#include "kube/scheduling.h"

// What `snapshot` says of a mirror: nodes with what is free, workloads with their pods, pods.

namespace rudderfish {

struct NodeView {
  const kube::Node* node = nullptr;
  kube::NodeLoad load;
  Resources free;  // Never below zero.
  const kube::Usage* usage = nullptr;
  std::string closed_because;  // Empty: takes pods.
};

struct WorkloadView {
  std::string object_namespace, kind, name;
  const kube::PodController* controller = nullptr;  // Null if only its pods are known.
  std::vector<const kube::Pod*> pods;               // Those that count, by name.
  int ready = 0;
  Resources requests;                            // The most that one of its pods asks for.
  std::vector<std::string> not_movable_because;  // Each once.

  bool Is(const WorkloadObject& object) const {
    return kind == object.kind && name == object.name &&
           object_namespace == object.object_namespace;
  }
};

struct ClusterView {
  std::vector<NodeView> nodes;          // By name.
  std::vector<WorkloadView> workloads;  // By namespace, kind and name.
  std::string application;              // Its name; empty: none was given.
  std::string undecidable_because;      // Why nothing could be decided for it; empty: it could.
  std::string law;                      // By which its latency is computed.
  std::optional<double> latency_ms;     // The mean over its endpoints, if it could be.
  std::map<std::string, std::string> layers;  // [node] As the application has them.
};

// Points into the source's mirror.
ClusterView ViewOf(const ClusterSource& source);

enum class SnapshotDetail { kTable, kWide };

std::string SnapshotText(const ClusterSource& source, const ClusterView& view,
                         SnapshotDetail detail);
std::string SnapshotJson(const ClusterSource& source, const ClusterView& view);
// node/NAME of all, then KIND/NAME of the workloads.
std::vector<std::string> SnapshotNames(const ClusterView& view);

}  // namespace rudderfish
