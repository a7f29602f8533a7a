// SPDX-License-Identifier: Apache-2.0
#include "kube/application_pods.h"

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

ApplicationPods::Differences ApplicationPods::Update() {
  if (!is_read_) cursor_ = mirror_->change_count();  // What all came by is not looked at.
  const std::optional<std::vector<Change>> changes = mirror_->ChangesSince(&cursor_);
  if (!changes || !is_read_) {
    ReadAll();
    return {.any = true, .nodes = true, .members = true, .all_workloads = true};
  }
  Differences differences;
  for (const Change& change : *changes) {
    switch (change.resource) {
      case Resource::kPods:
        ReadPod(change.key, &differences);
        break;
      case Resource::kReplicaSets:
        ReadPodsOf(change.key, &differences);
        NoteController({"ReplicaSet", change.key.name, ""}, change.key.object_namespace,
                       &differences);
        break;
      case Resource::kDeployments:
      case Resource::kStatefulSets:
      case Resource::kDaemonSets:
      case Resource::kJobs:
        NoteController({std::string(NameOf(change.resource).kind), change.key.name, ""},
                       change.key.object_namespace, &differences);
        break;
      case Resource::kNodes:
        differences.any = differences.nodes = true;
        break;
      case Resource::kPersistentVolumes:
      case Resource::kPersistentVolumeClaims:
        differences.any = differences.all_workloads = true;
        break;
      default:
        break;
    }
  }
  return differences;
}

void ApplicationPods::ReadAll() {
  for (Members& members : members_) members.clear();
  tracked_.clear();
  nodes_.clear();
  Differences unused;
  for (const auto& [key, pod] : mirror_->pods.objects()) ReadPod(key, &unused);
  is_read_ = true;
}

void ApplicationPods::ReadPod(const ObjectKey& key, Differences* differences) {
  const Pod* pod = mirror_->pods.Find(key);
  if (pod == nullptr || !pod->occupies()) {
    Forget(key, differences);
    return;
  }
  NodeUses::value_type* node = &*nodes_.try_emplace(pod->node).first;
  const Tracked now{node, pod->shape, WorkloadOf(*pod), pod->counts()};
  const auto known = tracked_.find(key);
  const bool same = known != tracked_.end() && known->second.shape == now.shape &&
                    known->second.workload == now.workload && known->second.counts == now.counts;
  const bool member = now.workload != kNone && now.counts;
  Member* before = nullptr;
  if (same && member) before = &members_[now.workload].at(key);
  if (same && (before == nullptr || before->uid == pod->meta.uid)) {
    if (known->second.node == node) return;  // Nothing that matters here.
    NodeLoad& left = known->second.node->second.load;
    left.requested -= now.shape->requests;
    --left.pods;
    known->second.node = node;
    if (before != nullptr) before->node = node;
  } else {
    Forget(key, differences);
    tracked_[key] = now;
    if (member) {
      members_[now.workload][key] = {pod->meta.uid, node, pod->shape};
      differences->members = true;
      differences->workloads.push_back(now.workload);
    }
  }
  node->second.load.requested += now.shape->requests;
  ++node->second.load.pods;
  differences->any = true;
}

// A ReplicaSet has become known, or another Deployment's: its pods may have come to be the
// application's.
void ApplicationPods::ReadPodsOf(const ObjectKey& replica_set, Differences* differences) {
  const ObjectRef owner{"ReplicaSet", replica_set.name, ""};
  const ObjectRef top = mirror_->WorkloadOf(replica_set.object_namespace, owner);
  const auto known = workloads_.find({top.kind, {replica_set.object_namespace, top.name}});
  const WorkloadId workload = known == workloads_.end() ? kNone : known->second;
  std::vector<ObjectKey> changed;
  for (auto at = tracked_.lower_bound({replica_set.object_namespace, ""});
       at != tracked_.end() && at->first.object_namespace == replica_set.object_namespace; ++at) {
    const Tracked& tracked = at->second;
    const ObjectRef& of_pod = tracked.shape->owner;
    if (tracked.workload != workload && of_pod.kind == owner.kind && of_pod.name == owner.name) {
      changed.push_back(at->first);
    }
  }
  for (const ObjectKey& key : changed) ReadPod(key, differences);
}

// What it says of its pods may be another thing now.
void ApplicationPods::NoteController(const ObjectRef& controller, const std::string& place,
                                     Differences* differences) {
  const ObjectRef top = mirror_->WorkloadOf(place, controller);
  for (const ObjectRef* one : {&controller, &top}) {
    const auto known = workloads_.find({one->kind, {place, one->name}});
    if (known == workloads_.end()) continue;
    differences->any = true;
    differences->workloads.push_back(known->second);
  }
}

void ApplicationPods::Forget(const ObjectKey& key, Differences* differences) {
  const auto at = tracked_.find(key);
  if (at == tracked_.end()) return;
  const Tracked& tracked = at->second;
  NodeLoad& load = tracked.node->second.load;
  load.requested -= tracked.shape->requests;
  --load.pods;
  differences->any = true;
  if (tracked.workload != kNone && members_[tracked.workload].erase(key) > 0) {
    differences->members = true;
    differences->workloads.push_back(tracked.workload);
  }
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
