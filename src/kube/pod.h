// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/objects.h"
#include "kube/opt_outs.h"

// A pod, as far as it is read. Pods of one template share nearly everything, so that fifty thousand
// of them take little memory: what differs stands in Pod, the rest in a PodShape.

namespace rudderfish::kube {

// The nodes that a pod's node selector and required node affinity allow.
struct NodeDemand {
  Labels selector;
  std::optional<std::vector<NodeTerm>> terms;  // Any of them; none at all fits no node.

  bool empty() const { return selector.empty() && !terms; }
  bool Allows(std::string_view node, const Labels& labels) const;
  bool operator==(const NodeDemand&) const = default;
};

// What pods of one template have in common; shared by them.
struct PodShape {
  Labels labels;
  ObjectRef owner;  // The controller; kind empty if there is none.
  Resources requests;
  std::string scheduler;
  std::string priority_class;
  int64_t priority = 0;
  std::vector<PodToleration> tolerations;
  NodeDemand nodes;
  std::vector<std::string> claims;  // Persistent volume claims.
  // Why such a pod is not moved, in words: what it asks of its node or of other pods and is not
  // judged for each node here.
  std::vector<std::string> obstacles;
  std::vector<OptOut> opt_outs;  // Of the pod itself.
  bool operator==(const PodShape&) const = default;
};

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

struct Pod {
  Metadata meta;
  std::shared_ptr<const PodShape> shape;
  std::string node;  // Empty while it is not bound.
  PodPhase phase = PodPhase::kUnknown;
  bool ready = false;
  bool terminating = false;
  bool evicted = false;                  // By the Eviction API: it is, or will be, deleted.
  bool gated = false;                    // Waits for a scheduling gate.
  bool unschedulable = false;            // kube-scheduler found no node for it.
  int64_t started_at = 0, ready_at = 0;  // Unix seconds; 0: it has not.

  // Takes room on its node.
  bool occupies() const {
    return !node.empty() && phase != PodPhase::kSucceeded && phase != PodPhase::kFailed;
  }
  // Serves, or will: is one of its workload's replicas.
  bool counts() const { return occupies() && !terminating; }
  bool operator==(const Pod& other) const;
};

}  // namespace rudderfish::kube
