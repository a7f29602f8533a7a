// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/collection.h"
#include "kube/objects.h"

// The cluster's objects as far as they are read, kept up to date by one ObjectSink a resource. No
// JSON is kept; pods of one template share what they have in common.
//
// Changes are numbered and the last of them are kept, so that any number of observers can follow,
// each at its own pace; one that fell too far behind reads everything anew. Not thread safe; all
// from the thread that polls the client.

namespace rudderfish::kube {

// What the mirror watches; the order of the table in mirror.cc.
enum class Resource {
  kNodes,
  kPods,
  kReplicaSets,
  kDeployments,
  kStatefulSets,
  kDaemonSets,
  kJobs,
  kServices,
  kEndpointSlices,
  kPodDisruptionBudgets,
  kHorizontalPodAutoscalers,
  kPriorityClasses,
  kPersistentVolumes,
  kPersistentVolumeClaims,
  kNamespaces,
  kNodeMetrics,
  kPodMetrics,
};
inline constexpr int kResourceCount = 17;

// What the API server calls it.
struct ResourceName {
  std::string_view group;  // "" is core.
  std::string_view version;
  std::string_view resource;  // Plural, as in paths and RBAC rules.
  std::string_view kind;
  bool namespaced;
};

const ResourceName& NameOf(Resource resource);
std::optional<Resource> ResourceOfKind(std::string_view kind);

struct Change {
  Resource resource;
  ObjectKey key;
  ChangeKind kind;
};

class Mirror {
 public:
  Collection<Node> nodes;
  Collection<Pod> pods;
  Collection<PodController> replica_sets, deployments, stateful_sets, daemon_sets, jobs;
  Collection<Service> services;
  Collection<EndpointSlice> endpoint_slices;
  Collection<PodDisruptionBudget> disruption_budgets;
  Collection<HorizontalPodAutoscaler> autoscalers;
  Collection<PriorityClass> priority_classes;
  Collection<PersistentVolume> volumes;
  Collection<PersistentVolumeClaim> claims;
  Collection<Namespace> namespaces;
  Collection<Usage> node_usage, pod_usage;

  explicit Mirror(const Clock* clock);

  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  ObjectSink* SinkOf(Resource resource);
  bool IsSynced(Resource resource) const;
  void SetSynced(Resource resource);  // All there is has been told, though in no list.
  Instant FreshAt(Resource resource) const;
  void SetFreshAt(Resource resource, Instant at);
  size_t Count(Resource resource) const;

  // The workload a pod belongs to: the topmost controller that is known, Deployment/web for a pod
  // of its ReplicaSet; kind empty for a pod on its own.
  ObjectRef WorkloadOf(const Pod& pod) const;
  ObjectRef WorkloadOf(std::string_view object_namespace, const ObjectRef& owner) const;

  const PodController* FindController(std::string_view kind, const ObjectKey& key) const;

  // Changes since `*cursor`, which then stands behind them; nothing if some of them are no longer
  // kept: then read everything. A new observer begins at 0.
  std::optional<std::vector<Change>> ChangesSince(uint64_t* cursor) const;
  uint64_t change_count() const { return first_change_ + changes_.size(); }

  const Clock& clock() const { return *clock_; }
  size_t shape_count() const { return shapes_.size(); }

 private:
  template <class Self, class Visit>
  static decltype(auto) With(Self& self, Resource resource, Visit visit);

  template <class T>
  typename Collection<T>::Listener Note(Resource resource);

  const Clock* clock_;
  PodShapes shapes_;
  std::deque<Change> changes_;
  uint64_t first_change_ = 1;  // The number of changes_.front(); 0 is before everything.
};

}  // namespace rudderfish::kube
