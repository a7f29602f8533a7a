// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/application.h"
#include "cluster/resources.h"
#include "cluster/scheduling.h"
#include "kube/opt_outs.h"

// What is kept of the API server's objects: the fields something here reads, no more. Resources are
// rounded as kube-scheduler does. Times are Unix seconds, 0 if unknown. Pods: kube/pod.h. How they
// are read from JSON: kube/object_reader.h.
//
// Equality compares what is kept but the resource version, so that a heartbeat that changes nothing
// we read is no change.

namespace rudderfish::kube {

// Objects are ordered by it, bytewise. Cluster-wide objects have no namespace.
struct ObjectKey {
  std::string object_namespace;
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

// "default/web-1", or "node-1" without a namespace.
std::string KeyText(const ObjectKey& key);

struct ResourceVersion {
  std::string text;  // Opaque; compared for equality only.

  bool operator==(const ResourceVersion&) const { return true; }
};

// Another object by kind and name.
struct ObjectRef {
  std::string kind, name, uid;

  bool operator==(const ObjectRef&) const = default;
};

struct Metadata {
  ObjectKey key;
  std::string uid;
  ResourceVersion resource_version;
  int64_t created_at = 0;

  bool operator==(const Metadata&) const = default;
};

struct Node {
  Metadata meta;
  Labels labels;
  Resources allocatable;
  int64_t pods_max = 0;
  bool unschedulable = false;
  bool ready = false;
  std::string address;  // Its first InternalIP; empty: it has none.
  std::vector<NodeTaint> taints;

  bool operator==(const Node&) const = default;
};

// A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job.
struct PodController {
  Metadata meta;
  ObjectRef owner;
  Labels labels;
  LabelSelector selector;
  int64_t replicas = 0;  // Wanted.
  int64_t ready = 0;
  bool paused = false;
  std::vector<OptOut> opt_outs;  // Of its pods.

  bool operator==(const PodController&) const = default;
};

struct PersistentVolume {
  Metadata meta;
  ObjectKey claim;          // Empty: unclaimed.
  bool node_bound = false;  // Can be used on some nodes only.
  std::string storage_class;

  bool operator==(const PersistentVolume&) const = default;
};

struct PersistentVolumeClaim {
  Metadata meta;
  std::string volume;  // Empty: unbound.
  std::string storage_class;

  bool operator==(const PersistentVolumeClaim&) const = default;
};

struct Namespace {
  Metadata meta;
  Labels labels;
  bool terminating = false;

  bool operator==(const Namespace&) const = default;
};

// Of metrics.k8s.io, a node's or a pod's.
struct Usage {
  Metadata meta;
  Resources used;
  int64_t measured_at = 0;

  bool operator==(const Usage&) const = default;
};

}  // namespace rudderfish::kube
