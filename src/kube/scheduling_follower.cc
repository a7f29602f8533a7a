// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_follower.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "kube/cluster_feed.h"
#include "kube/pod_text.h"

namespace rudderfish::kube {
namespace {

constexpr ResourceNeed kNeeds[] = {{Resource::kNamespaces, Need::kNeeded},
                                   {Resource::kNodes, Need::kNeeded},
                                   {Resource::kPersistentVolumeClaims, Need::kNeeded},
                                   {Resource::kPersistentVolumes, Need::kNeeded},
                                   {Resource::kCsiNodes, Need::kWanted},
                                   {Resource::kVolumeAttachments, Need::kWanted},
                                   {Resource::kStorageClasses, Need::kWanted},
                                   {Resource::kServices, Need::kNeeded},
                                   {Resource::kReplicationControllers, Need::kNeeded},
                                   {Resource::kReplicaSets, Need::kNeeded},
                                   {Resource::kStatefulSets, Need::kNeeded},
                                   {Resource::kPods, Need::kNeeded}};
constexpr Resource kLimitsOfVolumes[] = {Resource::kCsiNodes, Resource::kVolumeAttachments,
                                         Resource::kStorageClasses};

// Somebody has marked it for its end.
Result<bool> IsDisrupted(const Fields& pod) {
  bool is_disrupted = false;
  TRY(pod.ForEach("status.conditions", [&](const Fields& condition) -> Result<void> {
    TRY_ASSIGN(const std::string_view type, condition.Text("type"));
    TRY_ASSIGN(const std::string_view status, condition.Text("status"));
    is_disrupted = is_disrupted || (type == "DisruptionTarget" && status == "True");
    return {};
  }));
  return is_disrupted;
}

Result<Metadata> MetadataOf(const Element& object) {
  return internal::ReadMetadata(Fields(object));
}

}  // namespace

std::span<const ResourceNeed> SchedulingFollower::AllNeeds() { return kNeeds; }

SchedulingFollower::SchedulingFollower(const Clock* clock, SchedulingObserver* observer)
    : clock_(clock), observer_(observer) {
  AddNamespaces();
  AddNodes();
  AddClaims();
  AddWhatLimitsVolumes();
  for (const Resource resource : {Resource::kServices, Resource::kReplicationControllers,
                                  Resource::kReplicaSets, Resource::kStatefulSets}) {
    AddSelectors(resource);
  }
  AddPods();
}

ObjectSink* SchedulingFollower::SinkOf(Resource resource) {
  return resource == Resource::kPods ? fates_.get() : sources_.at(resource).sink.get();
}

size_t SchedulingFollower::Count(Resource resource) const { return sources_.at(resource).count(); }

template <class T>
void SchedulingFollower::Add(Resource resource, std::unique_ptr<Collection<T>> collection) {
  auto count = [all = collection.get()] { return all->objects().size(); };
  sources_[resource] = {std::move(collection), std::move(count)};
}

void SchedulingFollower::AddNamespaces() {
  using Namespaces = Collection<Held<Labelled>>;
  auto namespaces = std::make_unique<Namespaces>(
      [](const Element& object) -> Result<Held<Labelled>> {
        Held<Labelled> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value.labels, Fields(object).TextMap("metadata.labels"));
        TRY_ASSIGN(made.value.is_opted_out, IsOptedOut(Fields(object)));
        return made;
      },
      clock_, nullptr);
  namespaces_ = namespaces.get();
  namespaces->Listen([this, all = namespaces.get()](const ObjectKey& key, ChangeKind kind) {
    if (kind == ChangeKind::kGone) return observer_->NamespaceGone(key.name);
    observer_->NamespaceSeen(key.name, all->Find(key)->value.labels);
    TellWaiting(key.name);  // It may be opted out now.
  });
  Add(Resource::kNamespaces, std::move(namespaces));
}

void SchedulingFollower::AddPods() {
  auto pods = std::make_unique<Collection<Pod>>(
      [this](const Element& object) { return ReadPod(object); }, clock_,
      [this](const ObjectKey& key, ChangeKind kind) { TellPod(key, kind); });
  pods_ = pods.get();
  fates_ =
      std::make_unique<PodFates>(pods_, [this](const PodIdentity& pod, const std::string& reason) {
        observer_->PodFailed(pod, reason);
      });
  Add(Resource::kPods, std::move(pods));
}

void SchedulingFollower::AddNodes() {
  auto nodes = std::make_unique<Nodes>(
      [](const Element& object) -> Result<Held<SchedulingNode>> {
        Held<SchedulingNode> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value, ReadSchedulingNode(object));
        return made;
      },
      clock_, nullptr);
  nodes_ = nodes.get();
  nodes->Listen([this](const ObjectKey& key, ChangeKind kind) {
    if (kind == ChangeKind::kGone) {
      unread_latency_.erase(key.name);
      return observer_->NodeGone(key.name);
    }
    NoteUnreadLatency(nodes_->Find(key)->value);
    observer_->NodeSeen(node_volumes_.Complete(nodes_->Find(key)->value));
  });
  Add(Resource::kNodes, std::move(nodes));
}

void SchedulingFollower::AddSelectors(Resource resource) {
  const std::string kind(NameOf(resource).kind);
  using Selectors = Collection<Held<Selector>>;
  auto selectors = std::make_unique<Selectors>(
      [kind](const Element& object) -> Result<Held<Selector>> {
        TRY_ASSIGN(SchedulingSelector read, ReadSchedulingSelector(object, kind));
        Held<Selector> made;
        made.meta.key = std::move(read.key);
        made.value.selector = std::move(read.selector);
        return made;
      },
      clock_, nullptr);
  selectors->Listen([this, kind, all = selectors.get()](const ObjectKey& key, ChangeKind change) {
    changed_namespaces_.insert(key.object_namespace);
    if (change == ChangeKind::kGone) {
      references_.selectors.erase({kind, key});
      return;
    }
    references_.selectors[{kind, key}] = {key, kind, all->Find(key)->value.selector};
  });
  Add(resource, std::move(selectors));
}

// What pods and nodes refer to. `note` is told nothing of what is gone.
template <class T>
void SchedulingFollower::AddReferred(Resource resource, Result<T> (*read)(const Element&),
                                     std::function<void(const ObjectKey&, const T*)> note) {
  auto all = std::make_unique<Collection<Held<T>>>(
      [read](const Element& object) -> Result<Held<T>> {
        Held<T> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value, read(object));
        return made;
      },
      clock_, nullptr);
  all->Listen([note = std::move(note), all = all.get()](const ObjectKey& key, ChangeKind change) {
    note(key, change == ChangeKind::kGone ? nullptr : &all->Find(key)->value);
  });
  Add(resource, std::move(all));
}

void SchedulingFollower::AddClaims() {
  AddReferred<SchedulingClaim>(Resource::kPersistentVolumeClaims, ReadSchedulingClaim,
                               [this](const ObjectKey& key, const SchedulingClaim* claim) {
                                 if (claim == nullptr) {
                                   references_.claims.erase(key);
                                   return claim_users_.RemoveClaim(key);
                                 }
                                 references_.claims[key] = *claim;
                                 claim_users_.PutClaim(key, claim->volume);
                               });
  AddReferred<SchedulingVolume>(Resource::kPersistentVolumes, ReadSchedulingVolume,
                                [this](const ObjectKey& key, const SchedulingVolume* volume) {
                                  if (volume == nullptr) {
                                    references_.volumes.erase(key.name);
                                  } else {
                                    references_.volumes[key.name] = *volume;
                                  }
                                  claim_users_.NoteVolume(key.name);
                                  node_volumes_.NoteVolume(key.name);
                                });
}

void SchedulingFollower::AddWhatLimitsVolumes() {
  AddReferred<CsiNode>(Resource::kCsiNodes, ReadCsiNode,
                       [this](const ObjectKey& key, const CsiNode* node) {
                         if (node == nullptr) return node_volumes_.RemoveCsiNode(key.name);
                         node_volumes_.PutCsiNode(*node);
                       });
  AddReferred<VolumeAttachment>(Resource::kVolumeAttachments, ReadVolumeAttachment,
                                [this](const ObjectKey& key, const VolumeAttachment* attachment) {
                                  if (attachment == nullptr)
                                    return node_volumes_.RemoveAttachment(key.name);
                                  node_volumes_.PutAttachment(*attachment);
                                });
  AddReferred<StorageClass>(Resource::kStorageClasses, ReadStorageClass,
                            [this](const ObjectKey& key, const StorageClass* made) {
                              if (made == nullptr) {
                                references_.storage_classes.erase(key.name);
                              } else {
                                references_.storage_classes[key.name] = *made;
                              }
                              claim_users_.NoteAll();
                            });
}

Result<SchedulingFollower::Pod> SchedulingFollower::ReadPod(const Element& object) {
  const Fields fields(object);
  Pod pod;
  Rest rest;
  TRY_ASSIGN(Metadata meta, internal::ReadMetadata(fields));
  pod.meta = {std::move(meta.key), std::move(meta.uid)};
  TRY_ASSIGN(pod.node, fields.Text("spec.nodeName"));
  TRY_ASSIGN(pod.nominated, fields.Text("status.nominatedNodeName"));
  TRY_ASSIGN(const std::string_view deleted, fields.Text("metadata.deletionTimestamp"));
  pod.is_terminating = !deleted.empty();
  TRY_ASSIGN(const std::string_view phase, fields.Text("status.phase"));
  pod.is_running = phase == "Running";
  TRY_ASSIGN(pod.is_disrupted, IsDisrupted(fields));
  TRY_ASSIGN(pod.is_opted_out, IsOptedOut(fields));
  Result<PodClass> shape = ReadPodClass(object, references_);
  if (shape) {
    pod.shape = classes_.Shared(*std::move(shape));
  } else {
    rest.unread = "cannot be read: " + shape.error().message;
    pod.shape = classes_.Shared(ReadPartsOfPodClass(object, references_, shape.error()));
  }
  if (Result<PodVolumes> volumes = ReadPodVolumes(fields)) rest.volumes = *std::move(volumes);
  if (pod.node.empty()) rest.json = WhatIsReadOfPod(object);
  const bool is_plain =
      rest.volumes.empty() && rest.volumes.odd.empty() && rest.json.empty() && rest.unread.empty();
  if (!is_plain) pod.rest = std::make_shared<const Rest>(std::move(rest));
  return pod;
}

const SchedulingFollower::Rest& SchedulingFollower::RestOf(const Pod& pod) {
  static const auto* none = new Rest;
  return pod.rest == nullptr ? *none : *pod.rest;
}

bool SchedulingFollower::IsNamespaceOptedOut(const std::string& name) const {
  const Held<Labelled>* place = namespaces_->Find({"", name});
  return place != nullptr && place->value.is_opted_out;
}

void SchedulingFollower::TellPod(const ObjectKey& key, ChangeKind kind) {
  const Pod* pod = kind == ChangeKind::kGone ? nullptr : pods_->Find(key);
  if (pod == nullptr) {
    waiting_.erase(key);
    unread_.NoteGone(key);
    claim_users_.RemovePod(key);
    observer_->PodGone(KeyText(key));
    return;
  }
  const Rest& rest = RestOf(*pod);
  unread_.Note(key, {rest.unread, pod->node, !pod->node.empty() && pod->shape->holds_unknown});
  if (!rest.volumes.empty()) claim_users_.PutPod(key, rest.volumes.ClaimNames());
  if (pod->node.empty()) {
    waiting_.insert(key);
  } else {
    waiting_.erase(key);
  }
  observer_->PodSeen(
      {.id = {key.object_namespace, key.name, pod->meta.uid},
       .shape = pod->shape,
       .node = pod->node,
       .is_terminating = pod->is_terminating,
       .is_running = pod->is_running,
       .is_disrupted = pod->is_disrupted,
       .is_opted_out = pod->is_opted_out || IsNamespaceOptedOut(key.object_namespace),
       .nominated = pod->nominated});
}

void SchedulingFollower::NoteUnreadLatency(const SchedulingNode& node) {
  if (node.unread_latency.empty()) {
    unread_latency_.erase(node.name);
    return;
  }
  std::string& told = unread_latency_[node.name];
  if (told == node.unread_latency) return;
  told = node.unread_latency;
  LogWarning("node {}: {}; how far it is from the users counts as not known", node.name, told);
}

SchedulingFollower::Unread SchedulingFollower::CountUnread() const {
  return {unread_.Count(), static_cast<int>(unread_latency_.size())};
}

void SchedulingFollower::TellWaiting(const std::string& place) {
  std::vector<ObjectKey> again;
  for (auto at = waiting_.lower_bound({place, ""});
       at != waiting_.end() && at->object_namespace == place; ++at) {
    again.push_back(*at);
  }
  for (const ObjectKey& key : again) TellPod(key, ChangeKind::kChanged);
}

void SchedulingFollower::NoteWhatLimitsVolumes(const ClusterFeed& feed) {
  const Resource* unknown = nullptr;
  for (const Resource& resource : kLimitsOfVolumes) {
    const bool is_known = feed.IsSynced(resource) && feed.RefusalOf(resource) == nullptr;
    if (!is_known && unknown == nullptr) unknown = &resource;
  }
  const std::string why =
      unknown == nullptr ? "" : fmt::format("{} cannot be read", TextOf(*unknown));
  const Error* const refusal = unknown == nullptr ? nullptr : feed.RefusalOf(*unknown);
  if (refusal != nullptr && !has_told_refusal_) {
    LogWarning("{}; pods with volumes that CSI drivers attach are not modelled", refusal->message);
  } else if (unknown == nullptr && has_told_refusal_) {
    LogInfo("how many volumes CSI drivers attach to nodes is known");
  }
  has_told_refusal_ = unknown != nullptr && (has_told_refusal_ || refusal != nullptr);
  if (why == references_.limits_unknown) return;
  references_.limits_unknown = why;
  claim_users_.NoteAll();
}

void SchedulingFollower::TellNodes() {
  for (const std::string& name : node_volumes_.TakeCompleted()) {
    const Held<SchedulingNode>* node = nodes_->Find({"", name});
    if (node != nullptr) observer_->NodeSeen(node_volumes_.Complete(node->value));
  }
  for (const std::string& name : node_volumes_.TakeAttachedTo())
    observer_->AttachmentsSeen(name, node_volumes_.AttachedTo(name));
}

// Pods that wait are judged by what they refer to as it is now; of others it matters what is
// attached for them.
void SchedulingFollower::ReadAgain() {
  std::set<ObjectKey> again = claim_users_.TakeConcerned();
  for (const std::string& place : std::exchange(changed_namespaces_, {})) {
    for (auto at = waiting_.lower_bound({place, ""});
         at != waiting_.end() && at->object_namespace == place; ++at) {
      again.insert(*at);
    }
  }
  for (const ObjectKey& key : again) {
    const Pod& known = *pods_->Find(key);
    std::shared_ptr<const PodClass> shape = ReadAgain(known);
    if (shape == known.shape) continue;
    Pod changed = known;
    changed.shape = std::move(shape);
    pods_->Put(std::move(changed));
  }
}

std::shared_ptr<const PodClass> SchedulingFollower::ReadAgain(const Pod& known) {
  if (!known.node.empty()) {
    PodClass shape = *known.shape;
    SetAttached(RestOf(known).volumes,
                {known.meta.key.object_namespace, known.meta.key.name, known.meta.uid}, references_,
                &shape);
    return shape == *known.shape ? known.shape : classes_.Shared(std::move(shape));
  }
  Element object;
  if (parser_.parse(RestOf(known).json).get(object) != simdjson::SUCCESS)
    return known.shape;  // We wrote it.
  Result<PodClass> shape = ReadPodClass(object, references_);
  return shape ? classes_.Shared(*std::move(shape)) : known.shape;
}

void SchedulingFollower::Polled(const ClusterFeed& feed) {
  NoteWhatLimitsVolumes(feed);
  TellNodes();
  ReadAgain();
}

}  // namespace rudderfish::kube
