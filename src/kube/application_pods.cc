// SPDX-License-Identifier: Apache-2.0
#include "kube/application_pods.h"

#include <algorithm>

namespace rudderfish::kube {

ApplicationPods::ApplicationPods(const Mirror* mirror,
                                 std::shared_ptr<const Application> application)
    : mirror_(mirror),
      application_(std::move(application)),
      members_(application_->objects.size()) {
  for (size_t w = 0; w < application_->objects.size(); ++w) {
    const WorkloadObject& object = application_->objects[w];
    if (object.is_external()) continue;
    workloads_[{object.kind, {object.object_namespace, object.name}}] = static_cast<WorkloadId>(w);
  }
}

bool ApplicationPods::Update() {
  const std::optional<std::vector<Change>> changes = mirror_->ChangesSince(&cursor_);
  if (!changes || !is_read_) {
    ReadAll();
    return true;
  }
  for (const Change& change : *changes) {
    if (change.resource == Resource::kPods) ReadPod(change.key);
    if (change.resource == Resource::kReplicaSets) ReadPodsOf(change.key);
  }
  return std::any_of(changes->begin(), changes->end(), [](const Change& change) {
    return change.resource == Resource::kPods || change.resource == Resource::kNodes ||
           change.resource == Resource::kReplicaSets ||
           change.resource == Resource::kPersistentVolumes ||
           change.resource == Resource::kPersistentVolumeClaims;
  });
}

void ApplicationPods::ReadAll() {
  for (Members& members : members_) members.clear();
  tracked_.clear();
  loads_.clear();
  for (const auto& [key, unused] : mirror_->pods.objects()) ReadPod(key);
  is_read_ = true;
}

void ApplicationPods::ReadPod(const ObjectKey& key) {
  Forget(key);
  const Pod* pod = mirror_->pods.Find(key);
  if (pod == nullptr || !pod->occupies()) return;
  const WorkloadId workload = WorkloadOf(*pod);
  tracked_[key] = {pod->node, pod->shape->requests, workload, pod->shape->owner};
  NodeLoad& load = loads_[pod->node];
  load.requested += pod->shape->requests;
  ++load.pods;
  if (workload != kNone && pod->counts()) {
    members_[workload][key] = {pod->meta.uid, pod->node, pod->shape};
  }
}

// A ReplicaSet has become known, or another Deployment's: its pods may have come to be the
// application's.
void ApplicationPods::ReadPodsOf(const ObjectKey& replica_set) {
  const ObjectRef owner{"ReplicaSet", replica_set.name, ""};
  const ObjectRef top = mirror_->WorkloadOf(replica_set.object_namespace, owner);
  const auto known = workloads_.find({top.kind, {replica_set.object_namespace, top.name}});
  const WorkloadId workload = known == workloads_.end() ? kNone : known->second;
  std::vector<ObjectKey> changed;
  for (auto at = tracked_.lower_bound({replica_set.object_namespace, ""});
       at != tracked_.end() && at->first.object_namespace == replica_set.object_namespace; ++at) {
    const Tracked& tracked = at->second;
    if (tracked.owner.kind == owner.kind && tracked.owner.name == owner.name &&
        tracked.workload != workload) {
      changed.push_back(at->first);
    }
  }
  for (const ObjectKey& key : changed) ReadPod(key);
}

void ApplicationPods::Forget(const ObjectKey& key) {
  const auto at = tracked_.find(key);
  if (at == tracked_.end()) return;
  const Tracked& tracked = at->second;
  const auto load = loads_.find(tracked.node);
  load->second.requested -= tracked.requests;
  if (--load->second.pods == 0) loads_.erase(load);
  if (tracked.workload != kNone) members_[tracked.workload].erase(key);
  tracked_.erase(at);
}

WorkloadId ApplicationPods::WorkloadOf(const Pod& pod) const {
  const std::string& place = pod.meta.key.object_namespace;
  const ObjectRef top = mirror_->WorkloadOf(pod);
  const auto known = workloads_.find({top.kind, {place, top.name}});
  if (known != workloads_.end()) return known->second;
  // A ReplicaSet may be named itself though a Deployment owns it.
  const auto owner = workloads_.find({pod.shape->owner.kind, {place, pod.shape->owner.name}});
  return owner == workloads_.end() ? kNone : owner->second;
}

}  // namespace rudderfish::kube
