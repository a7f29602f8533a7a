// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "cluster/scheduling.h"
#include "kube/fields.h"
#include "kube/objects.h"
#include "kube/pod_volumes.h"

// Nodes and pods as kube-scheduler's rules need them (cluster/scheduling.h), from the API server's
// JSON. What no rule can be made of (an unknown operator, a text where a number belongs) is an
// error of one line that names the object and the field; nothing is guessed.

namespace rudderfish::kube {

// On a pod or its namespace, as a label or an annotation: no policy of ours counts for it. Any
// value but "false" says so: one that is not understood is no consent.
inline constexpr std::string_view kDoNotPlace = "rudderfish.io/do-not-place";
Result<bool> IsOptedOut(const Fields& object);

// Annotations in milliseconds: how far from the users a pod had better and must be, as a round trip
// (their names are those of S. Matranga's thesis, docs/arrivals.md), and how far a node is.
inline constexpr std::string_view kSoftLatency = "latencySoftConstraint";
inline constexpr std::string_view kHardLatency = "latencyHardConstraint";
inline constexpr std::string_view kUserLatency = "rudderfish.io/user-latency-ms";

// What chooses pods by labels: services, ReplicaSets and the like.
struct SchedulingSelector {
  ObjectKey key;
  std::string kind;  // Service, ReplicaSet, StatefulSet, ReplicationController.
  LabelSelector selector;
};

// What pods refer to.
struct SchedulingReferences : VolumeReferences {
  std::map<std::pair<std::string, ObjectKey>, SchedulingSelector> selectors;  // By kind and key.
};

// What is no latency is left in `unread_latency`: a node is not unknown for that.
Result<SchedulingNode> ReadSchedulingNode(const Element& object);
// `kind`: of objects in a list, which do not say; empty: as the object says.
Result<SchedulingSelector> ReadSchedulingSelector(const Element& object,
                                                  std::string_view kind = {});

Result<PodClass> ReadPodClass(const Element& object, const SchedulingReferences& references);

// Of a pod that ReadPodClass refused for `why`: what is readable of what it is to others when it
// has a node: labels, amounts, ports, volumes, affinity. `unmodelled` says why, `holds_unknown`
// whether its node must be closed, because amounts, ports or volumes are not among that.
PodClass ReadPartsOfPodClass(const Element& object, const SchedulingReferences& references,
                             const Error& why);

// Keeps one PodClass for all pods that are alike. Not thread safe.
class PodClasses {
 public:
  std::shared_ptr<const PodClass> Shared(PodClass pod);

 private:
  std::unordered_multimap<size_t, std::weak_ptr<const PodClass>> classes_;
  size_t sweep_at_ = 1024;
};

}  // namespace rudderfish::kube
