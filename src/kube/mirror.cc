// SPDX-License-Identifier: Apache-2.0
#include "kube/mirror.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "kube/cluster_feed.h"

namespace rudderfish::kube {
namespace {

// Of 100 a second those of minutes; who fell behind by more reads everything, in 0.1 s.
constexpr size_t kChangesKept = 16'384;

constexpr ResourceNeed kMirrorNeeds[] = {{Resource::kNodes, Need::kNeeded},
                                         {Resource::kPods, Need::kNeeded},
                                         {Resource::kReplicaSets, Need::kNeeded},
                                         {Resource::kDeployments, Need::kNeeded},
                                         {Resource::kStatefulSets, Need::kWanted},
                                         {Resource::kDaemonSets, Need::kWanted},
                                         {Resource::kJobs, Need::kWanted},
                                         {Resource::kPersistentVolumes, Need::kWanted},
                                         {Resource::kPersistentVolumeClaims, Need::kWanted},
                                         {Resource::kNamespaces, Need::kWanted},
                                         {Resource::kNodeMetrics, Need::kWanted},
                                         {Resource::kPodMetrics, Need::kWanted}};
static_assert(std::size(kMirrorNeeds) == kMirroredCount);

}  // namespace

std::span<const ResourceNeed> Mirror::AllNeeds() { return kMirrorNeeds; }

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
    case Resource::kPersistentVolumes:
      return visit(self.volumes);
    case Resource::kPersistentVolumeClaims:
      return visit(self.claims);
    case Resource::kNamespaces:
      return visit(self.namespaces);
    case Resource::kNodeMetrics:
      return visit(self.node_usage);
    default:
      CHECK(resource == Resource::kPodMetrics);
      return visit(self.pod_usage);
  }
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

void Mirror::Polled(const ClusterFeed& feed) {
  for (const ResourceNeed& one : kMirrorNeeds) {
    if (const std::optional<Instant> fresh = feed.FreshAt(one.resource))
      SetFreshAt(one.resource, *fresh);
  }
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
