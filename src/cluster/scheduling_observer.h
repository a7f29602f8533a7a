// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "cluster/scheduling.h"

// What a live cluster tells the code that places pods: nodes, namespaces and pods, one at a time,
// as they appear, change and go. kube/scheduling_follower.h calls it, always from one thread.

namespace rudderfish {

// A pod by its name, and which of those that ever bore it.
struct PodIdentity {
  std::string object_namespace, name, uid;

  std::string Key() const { return object_namespace + "/" + name; }
  bool operator==(const PodIdentity&) const = default;
  bool operator<(const PodIdentity& other) const {
    return std::tie(object_namespace, name, uid) <
           std::tie(other.object_namespace, other.name, other.uid);
  }
};

// A pod that waits or takes room; those that have ended are gone.
struct ObservedPod {
  PodIdentity id;
  std::shared_ptr<const PodClass> shape;
  std::string node;  // Empty: it waits.
  bool is_terminating = false;
  bool is_running = false;    // Its containers have begun.
  bool is_disrupted = false;  // It is to end for another's sake: evicted, preempted, its node lost.
  bool is_opted_out = false;  // Its owner, or its namespace's, wants no policy of ours for it.
  // The node that its status.nominatedNodeName names: kube-scheduler takes it wherever it is
  // feasible, no matter which component named it. Empty: none.
  std::string nominated;
};

// A pod as the API server itself has it when it is asked, whatever the watch has told by then.
struct PodStanding {
  bool is_there = false;  // That very one, and it has not ended.
  bool is_terminating = false;
  std::string node;  // Empty: it has none.
};

class SchedulingObserver {
 public:
  virtual ~SchedulingObserver() = default;

  virtual void NodeSeen(const SchedulingNode& node) = 0;  // New, or changed.
  virtual void NodeGone(const std::string& name) = 0;
  // What VolumeAttachments say of a node, all of it; sorted, each once. The node may not be there.
  virtual void AttachmentsSeen(const std::string& node, const std::vector<CsiVolume>& volumes) = 0;
  virtual void NamespaceSeen(const std::string& name, const Labels& labels) = 0;
  virtual void NamespaceGone(const std::string& name) = 0;
  virtual void PodSeen(const ObservedPod& pod) = 0;
  virtual void PodGone(const std::string& key) = 0;  // "namespace/name".

  // It has ended badly; it may be gone already. The reason is the kubelet's, such as Evicted.
  virtual void PodFailed(const PodIdentity& /*pod*/, const std::string& /*reason*/) {}
};

}  // namespace rudderfish
