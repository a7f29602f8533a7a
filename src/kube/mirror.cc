// SPDX-License-Identifier: Apache-2.0
#include "kube/mirror.h"

#include <algorithm>

#include "base/check.h"

namespace rudderfish::kube {
namespace {

constexpr size_t kChangesKept = 65'536;

constexpr ResourceName kNames[kResourceCount] = {
    {"", "v1", "nodes", "Node", false},
    {"", "v1", "pods", "Pod", true},
    {"apps", "v1", "replicasets", "ReplicaSet", true},
    {"apps", "v1", "deployments", "Deployment", true},
    {"apps", "v1", "statefulsets", "StatefulSet", true},
    {"apps", "v1", "daemonsets", "DaemonSet", true},
    {"batch", "v1", "jobs", "Job", true},
    {"", "v1", "services", "Service", true},
    {"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true},
    {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true},
    {"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true},
    {"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false},
    {"", "v1", "persistentvolumes", "PersistentVolume", false},
    {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true},
    {"", "v1", "namespaces", "Namespace", false},
    {"metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", false},
    {"metrics.k8s.io", "v1beta1", "pods", "PodMetrics", true},
};

}  // namespace

const ResourceName& NameOf(Resource resource) { return kNames[static_cast<int>(resource)]; }

std::optional<Resource> ResourceOfKind(std::string_view kind) {
  const auto at = std::find_if(std::begin(kNames), std::end(kNames),
                               [&](const ResourceName& name) { return name.kind == kind; });
  if (at == std::end(kNames)) return std::nullopt;
  return static_cast<Resource>(at - std::begin(kNames));
}

template <class T>
typename Collection<T>::Listener Mirror::Note(Resource resource) {
  return [this, resource](const ObjectKey& key, ChangeKind kind) {
    changes_.push_back({resource, key, kind});
    if (changes_.size() <= kChangesKept) return;
    changes_.pop_front();
    ++first_change_;
  };
}

Mirror::Mirror(const Clock* clock)
    : nodes(ReadNode, clock, Note<Node>(Resource::kNodes)),
      pods([this](const Element& object) { return ReadPod(object, &shapes_); }, clock,
           Note<Pod>(Resource::kPods)),
      replica_sets(ReadPodController, clock, Note<PodController>(Resource::kReplicaSets)),
      deployments(ReadPodController, clock, Note<PodController>(Resource::kDeployments)),
      stateful_sets(ReadPodController, clock, Note<PodController>(Resource::kStatefulSets)),
      daemon_sets(ReadPodController, clock, Note<PodController>(Resource::kDaemonSets)),
      jobs(ReadPodController, clock, Note<PodController>(Resource::kJobs)),
      services(ReadService, clock, Note<Service>(Resource::kServices)),
      endpoint_slices(ReadEndpointSlice, clock, Note<EndpointSlice>(Resource::kEndpointSlices)),
      disruption_budgets(ReadPodDisruptionBudget, clock,
                         Note<PodDisruptionBudget>(Resource::kPodDisruptionBudgets)),
      autoscalers(ReadHorizontalPodAutoscaler, clock,
                  Note<HorizontalPodAutoscaler>(Resource::kHorizontalPodAutoscalers)),
      priority_classes(ReadPriorityClass, clock, Note<PriorityClass>(Resource::kPriorityClasses)),
      volumes(ReadPersistentVolume, clock, Note<PersistentVolume>(Resource::kPersistentVolumes)),
      claims(ReadPersistentVolumeClaim, clock,
             Note<PersistentVolumeClaim>(Resource::kPersistentVolumeClaims)),
      namespaces(ReadNamespace, clock, Note<Namespace>(Resource::kNamespaces)),
      node_usage(ReadNodeMetrics, clock, Note<Usage>(Resource::kNodeMetrics)),
      pod_usage(ReadPodMetrics, clock, Note<Usage>(Resource::kPodMetrics)),
      clock_(clock) {}

template <class Self, class Visit>
decltype(auto) Mirror::With(Self& self, Resource resource, Visit visit) {
  switch (resource) {
    case Resource::kNodes:
      return visit(self.nodes);
    case Resource::kPods:
      return visit(self.pods);
    case Resource::kReplicaSets:
      return visit(self.replica_sets);
    case Resource::kDeployments:
      return visit(self.deployments);
    case Resource::kStatefulSets:
      return visit(self.stateful_sets);
    case Resource::kDaemonSets:
      return visit(self.daemon_sets);
    case Resource::kJobs:
      return visit(self.jobs);
    case Resource::kServices:
      return visit(self.services);
    case Resource::kEndpointSlices:
      return visit(self.endpoint_slices);
    case Resource::kPodDisruptionBudgets:
      return visit(self.disruption_budgets);
    case Resource::kHorizontalPodAutoscalers:
      return visit(self.autoscalers);
    case Resource::kPriorityClasses:
      return visit(self.priority_classes);
    case Resource::kPersistentVolumes:
      return visit(self.volumes);
    case Resource::kPersistentVolumeClaims:
      return visit(self.claims);
    case Resource::kNamespaces:
      return visit(self.namespaces);
    case Resource::kNodeMetrics:
      return visit(self.node_usage);
    case Resource::kPodMetrics:
      break;
  }
  return visit(self.pod_usage);
}

ObjectSink* Mirror::SinkOf(Resource resource) {
  return With(*this, resource, [](auto& collection) -> ObjectSink* { return &collection; });
}

bool Mirror::IsSynced(Resource resource) const {
  return With(*this, resource, [](const auto& collection) { return collection.synced(); });
}

void Mirror::SetSynced(Resource resource) {
  With(*this, resource, [](auto& collection) { collection.SetSynced(); });
}

Instant Mirror::FreshAt(Resource resource) const {
  return With(*this, resource, [](const auto& collection) { return collection.fresh_at(); });
}

void Mirror::SetFreshAt(Resource resource, Instant at) {
  With(*this, resource, [&](auto& collection) { collection.SetFreshAt(at); });
}

size_t Mirror::Count(Resource resource) const {
  return With(*this, resource, [](const auto& collection) { return collection.objects().size(); });
}

const PodController* Mirror::FindController(std::string_view kind, const ObjectKey& key) const {
  if (kind == "ReplicaSet") return replica_sets.Find(key);
  if (kind == "Deployment") return deployments.Find(key);
  if (kind == "StatefulSet") return stateful_sets.Find(key);
  if (kind == "DaemonSet") return daemon_sets.Find(key);
  if (kind == "Job") return jobs.Find(key);
  return nullptr;
}

ObjectRef Mirror::WorkloadOf(std::string_view object_namespace, const ObjectRef& owner) const {
  ObjectRef top = owner;
  for (int height = 0; height < 3; ++height) {  // Deeper than any chain of the API server's own.
    const PodController* known =
        FindController(top.kind, {std::string(object_namespace), top.name});
    if (known == nullptr || known->owner.kind.empty()) break;
    // A CronJob or a custom controller above is no workload of the mirror's.
    if (NameOf(Resource::kDeployments).kind != known->owner.kind) break;
    top = known->owner;
  }
  return top;
}

ObjectRef Mirror::WorkloadOf(const Pod& pod) const {
  return WorkloadOf(pod.meta.key.object_namespace, pod.shape->owner);
}

std::optional<std::vector<Change>> Mirror::ChangesSince(uint64_t* cursor) const {
  const uint64_t end = first_change_ + changes_.size();
  const uint64_t begin = std::max<uint64_t>(*cursor, 1);
  *cursor = end;
  if (begin < first_change_) return std::nullopt;
  return std::vector<Change>(changes_.begin() + static_cast<std::ptrdiff_t>(begin - first_change_),
                             changes_.end());
}

}  // namespace rudderfish::kube
