// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/collection.h"
#include "kube/feed_follower.h"
#include "kube/objects.h"

// The cluster's objects as far as they are read, kept up to date by one ObjectSink a resource. No
// JSON is kept; pods of one template share what they have in common.
//
// Changes are numbered and the last of them are kept, so that any number of observers can follow,
// each at its own pace; one that fell too far behind reads everything again. Not thread safe; all
// from the thread that polls the client.

namespace rudderfish::kube {

// It keeps the first resources, up to PodMetrics.
inline constexpr int kMirroredCount = static_cast<int>(Resource::kPodMetrics) + 1;
constexpr bool IsMirrored(Resource resource) { return static_cast<int>(resource) < kMirroredCount; }

struct Change {
  Resource resource;
  ObjectKey key;
  ChangeKind kind;
};

class Mirror final : public FeedFollower {
 public:
  Collection<Node> nodes;
  Collection<Pod> pods;
  Collection<PodController> replica_sets, deployments, stateful_sets, daemon_sets, jobs;
  Collection<PersistentVolume> volumes;
  Collection<PersistentVolumeClaim> claims;
  Collection<Namespace> namespaces;
  Collection<Usage> node_usage, pod_usage;

  explicit Mirror(const Clock* clock);

  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Nodes, pods, ReplicaSets and Deployments are needed, the others wanted.
  static std::span<const ResourceNeed> AllNeeds();
  std::span<const ResourceNeed> Needs() const override { return AllNeeds(); }
  ObjectSink* SinkOf(Resource resource) override;
  size_t Count(Resource resource) const override;
  void Polled(const ClusterFeed& feed) override;  // It takes over how fresh all is.

  bool IsSynced(Resource resource) const;
  void SetSynced(Resource resource);  // All there is has been told, though in no list.
  Instant FreshAt(Resource resource) const;
  void SetFreshAt(Resource resource, Instant at);

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
