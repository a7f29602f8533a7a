// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kube/objects.h"

// A pod, as far as it is read. Pods of one template share nearly everything, so that fifty thousand
// of them take little memory: what differs stands in Pod, the rest in a PodShape.

namespace rudderfish::kube {

struct Toleration {
  std::string key, op, value, effect;  // Empty ones match all.

  bool Tolerates(const Taint& taint) const;
  bool operator==(const Toleration&) const = default;
};

// What pods of one template have in common; shared by them.
struct PodShape {
  Labels labels;
  ObjectRef owner;  // The controller; kind empty if there is none.
  Resources requests;
  std::string scheduler;
  std::string priority_class;
  int64_t priority = 0;
  std::vector<Toleration> tolerations;
  std::vector<std::string> claims;     // Persistent volume claims.
  std::vector<std::string> obstacles;  // Why such a pod is not moved, in words: scheduling that is
                                       // not modelled, annotations that opt out.
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
  bool gated = false;          // Waits for a scheduling gate.
  bool unschedulable = false;  // kube-scheduler found no node for it.
  int64_t started_at = 0;

  // Takes room on its node.
  bool occupies() const {
    return !node.empty() && phase != PodPhase::kSucceeded && phase != PodPhase::kFailed;
  }
  // Serves, or will: is one of its workload's replicas.
  bool counts() const { return occupies() && !terminating; }
  bool operator==(const Pod& other) const;
};

}  // namespace rudderfish::kube
