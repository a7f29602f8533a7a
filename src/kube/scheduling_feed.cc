// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_feed.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/units.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kSyncStep = std::chrono::milliseconds(50);
constexpr Duration kSilenceLimit = std::chrono::seconds(5);  // Where it is known why.
constexpr Duration kSilenceMost = std::chrono::seconds(30);
constexpr Duration kLongestWait = std::chrono::milliseconds(1500);
// As kube-scheduler asks: pods that have ended take no room.
constexpr char kFailed[] = "fieldSelector=status.phase%3DFailed";
constexpr char kNotEnded[] = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

constexpr char kStorage[] = "storage.k8s.io";

struct WatchedResource {
  const char *group, *resource;
};
constexpr WatchedResource kWatched[] = {{"", "namespaces"},
                                        {"", "nodes"},
                                        {"", "persistentvolumeclaims"},
                                        {"", "persistentvolumes"},
                                        {"", "services"},
                                        {"", "replicationcontrollers"},
                                        {"apps", "replicasets"},
                                        {"apps", "statefulsets"},
                                        {kStorage, "csinodes"},
                                        {kStorage, "volumeattachments"},
                                        {kStorage, "storageclasses"},
                                        {"", "pods"}};

bool MayPass(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded ||
         code == ErrorCode::kConflict || code == ErrorCode::kCorruption;
}

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

std::string WhatIsTooMuch(const ObjectKey& key, const PodClass& pod) {
  return fmt::format("pod {} {}", KeyText(key), fmt::join(pod.unmodelled, "; "));
}

Result<Metadata> MetadataOf(const Element& object) {
  return internal::ReadMetadata(Fields(object));
}

}  // namespace

template <class T>
void SchedulingFeed::Add(std::string resource, std::string group, std::string kind,
                         std::string selector, std::unique_ptr<Collection<T>> collection) {
  const std::string root = group.empty() ? "/api/v1" : fmt::format("/apis/{}/v1", group);
  ReflectorOptions options{.path = fmt::format("{}/{}", root, resource),
                           .selector = std::move(selector),
                           .kind = std::move(kind),
                           .back_off = {.last = kLongestWait}};
  Source source{.resource = std::move(resource), .group = std::move(group)};
  source.count = [all = collection.get()] { return all->objects().size(); };
  source.reflector = std::make_unique<Reflector>(client_, std::move(options), collection.get());
  source.sink = std::move(collection);
  if (source.group == kStorage) source.need = Need::kWanted;
  source.reflector->Start();
  sources_.push_back(std::move(source));
}

SchedulingFeed::SchedulingFeed(ApiClient* client, SchedulingObserver* observer, Failures failures)
    : client_(client), observer_(observer) {
  const Clock* clock = &client->clock();
  using Namespaces = Collection<Held<Labelled>>;
  auto namespaces = std::make_unique<Namespaces>(
      [](const Element& object) -> Result<Held<Labelled>> {
        Held<Labelled> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value.labels, Fields(object).TextMap("metadata.labels"));
        TRY_ASSIGN(made.value.is_opted_out, IsOptedOut(Fields(object)));
        return made;
      },
      clock, nullptr);
  namespaces_ = namespaces.get();
  namespaces->Listen([this, all = namespaces.get()](const ObjectKey& key, ChangeKind kind) {
    if (kind == ChangeKind::kGone) return observer_->NamespaceGone(key.name);
    observer_->NamespaceSeen(key.name, all->Find(key)->value.labels);
    TellWaiting(key.name);  // It may be opted out now.
  });
  Add("namespaces", "", "Namespace", "", std::move(namespaces));

  AddNodes();
  AddClaims();
  AddWhatLimitsVolumes();
  AddSelectors("services", "", "Service");
  AddSelectors("replicationcontrollers", "", "ReplicationController");
  AddSelectors("replicasets", "apps", "ReplicaSet");
  AddSelectors("statefulsets", "apps", "StatefulSet");

  auto pods = std::make_unique<Collection<Pod>>(
      [this](const Element& object) { return ReadPod(object); }, clock,
      [this](const ObjectKey& key, ChangeKind kind) { TellPod(key, kind); });
  pods_ = pods.get();
  Add("pods", "", "Pod", kNotEnded, std::move(pods));
  if (failures == Failures::kTold) AddFailures();
}

void SchedulingFeed::AddNodes() {
  auto nodes = std::make_unique<Nodes>(
      [](const Element& object) -> Result<Held<SchedulingNode>> {
        Held<SchedulingNode> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value, ReadSchedulingNode(object));
        return made;
      },
      &client_->clock(), nullptr);
  nodes_ = nodes.get();
  nodes->Listen([this](const ObjectKey& key, ChangeKind kind) {
    if (kind == ChangeKind::kGone) {
      unread_latency_.erase(key.name);
      return observer_->NodeGone(key.name);
    }
    NoteUnreadLatency(nodes_->Find(key)->value);
    observer_->NodeSeen(node_volumes_.Complete(nodes_->Find(key)->value));
  });
  Add("nodes", "", "Node", "", std::move(nodes));
}

void SchedulingFeed::AddFailures() {
  using Failures = Collection<Held<Failed>>;
  auto failed = std::make_unique<Failures>(
      [](const Element& object) -> Result<Held<Failed>> {
        Held<Failed> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(const std::string_view reason, Fields(object).Text("status.reason"));
        made.value.reason = reason;
        return made;
      },
      &client_->clock(), nullptr);
  failed->Listen([this, all = failed.get()](const ObjectKey& key, ChangeKind kind) {
    if (kind == ChangeKind::kGone) return;
    const Held<Failed>& pod = *all->Find(key);
    observer_->PodFailed({key.object_namespace, key.name, pod.meta.uid}, pod.value.reason);
  });
  Add("pods", "", "Pod", kFailed, std::move(failed));
  sources_.back().resource = "pods that failed";
}

void SchedulingFeed::AddSelectors(std::string resource, std::string group, std::string kind) {
  using Selectors = Collection<Held<Selector>>;
  auto selectors = std::make_unique<Selectors>(
      [kind](const Element& object) -> Result<Held<Selector>> {
        TRY_ASSIGN(SchedulingSelector read, ReadSchedulingSelector(object, kind));
        Held<Selector> made;
        made.meta.key = std::move(read.key);
        made.value.selector = std::move(read.selector);
        return made;
      },
      &client_->clock(), nullptr);
  selectors->Listen([this, kind, all = selectors.get()](const ObjectKey& key, ChangeKind change) {
    changed_namespaces_.insert(key.object_namespace);
    if (change == ChangeKind::kGone) {
      references_.selectors.erase({kind, key});
      return;
    }
    references_.selectors[{kind, key}] = {key, kind, all->Find(key)->value.selector};
  });
  Add(std::move(resource), std::move(group), kind, "", std::move(selectors));
}

// What pods and nodes refer to. `note` is told nothing of what is gone.
template <class T>
void SchedulingFeed::AddReferred(std::string resource, std::string group, std::string kind,
                                 Result<T> (*read)(const Element&),
                                 std::function<void(const ObjectKey&, const T*)> note) {
  auto all = std::make_unique<Collection<Held<T>>>(
      [read](const Element& object) -> Result<Held<T>> {
        Held<T> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value, read(object));
        return made;
      },
      &client_->clock(), nullptr);
  all->Listen([note = std::move(note), all = all.get()](const ObjectKey& key, ChangeKind change) {
    note(key, change == ChangeKind::kGone ? nullptr : &all->Find(key)->value);
  });
  Add(std::move(resource), std::move(group), std::move(kind), "", std::move(all));
}

void SchedulingFeed::AddClaims() {
  AddReferred<SchedulingClaim>("persistentvolumeclaims", "", "PersistentVolumeClaim",
                               ReadSchedulingClaim,
                               [this](const ObjectKey& key, const SchedulingClaim* claim) {
                                 if (claim == nullptr) {
                                   references_.claims.erase(key);
                                   return claim_users_.RemoveClaim(key);
                                 }
                                 references_.claims[key] = *claim;
                                 claim_users_.PutClaim(key, claim->volume);
                               });
  AddReferred<SchedulingVolume>("persistentvolumes", "", "PersistentVolume", ReadSchedulingVolume,
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

void SchedulingFeed::AddWhatLimitsVolumes() {
  AddReferred<CsiNode>("csinodes", kStorage, "CSINode", ReadCsiNode,
                       [this](const ObjectKey& key, const CsiNode* node) {
                         if (node == nullptr) return node_volumes_.RemoveCsiNode(key.name);
                         node_volumes_.PutCsiNode(*node);
                       });
  AddReferred<VolumeAttachment>("volumeattachments", kStorage, "VolumeAttachment",
                                ReadVolumeAttachment,
                                [this](const ObjectKey& key, const VolumeAttachment* attachment) {
                                  if (attachment == nullptr)
                                    return node_volumes_.RemoveAttachment(key.name);
                                  node_volumes_.PutAttachment(*attachment);
                                });
  AddReferred<StorageClass>("storageclasses", kStorage, "StorageClass", ReadStorageClass,
                            [this](const ObjectKey& key, const StorageClass* made) {
                              if (made == nullptr) {
                                references_.storage_classes.erase(key.name);
                              } else {
                                references_.storage_classes[key.name] = *made;
                              }
                              claim_users_.NoteAll();
                            });
}

Result<SchedulingFeed::Pod> SchedulingFeed::ReadPod(const Element& object) {
  const Fields fields(object);
  Pod pod;
  TRY_ASSIGN(pod.meta, internal::ReadMetadata(fields));
  TRY_ASSIGN(pod.node, fields.Text("spec.nodeName"));
  TRY_ASSIGN(const std::string_view deleted, fields.Text("metadata.deletionTimestamp"));
  pod.is_terminating = !deleted.empty();
  TRY_ASSIGN(const std::string_view phase, fields.Text("status.phase"));
  pod.has_ended = phase == "Succeeded" || phase == "Failed";
  pod.is_running = phase == "Running";
  TRY_ASSIGN(pod.is_disrupted, IsDisrupted(fields));
  TRY_ASSIGN(pod.is_opted_out, IsOptedOut(fields));
  Result<PodClass> shape = ReadPodClass(object, references_);
  if (shape) {
    pod.shape = classes_.Shared(*std::move(shape));
  } else {
    pod.unread = "cannot be read: " + shape.error().message;
    pod.shape = classes_.Shared(ReadPartsOfPodClass(object, references_, shape.error()));
  }
  if (Result<PodVolumes> volumes = ReadPodVolumes(fields)) pod.volumes = *std::move(volumes);
  if (pod.node.empty()) pod.json = simdjson::minify(object);
  return pod;
}

bool SchedulingFeed::IsNamespaceOptedOut(const std::string& name) const {
  const Held<Labelled>* place = namespaces_->Find({"", name});
  return place != nullptr && place->value.is_opted_out;
}

void SchedulingFeed::TellPod(const ObjectKey& key, ChangeKind kind) {
  const Pod* pod = kind == ChangeKind::kGone ? nullptr : pods_->Find(key);
  if (pod == nullptr || pod->has_ended) {
    waiting_.erase(key);
    unread_.NoteGone(key);
    claim_users_.RemovePod(key);
    observer_->PodGone(KeyText(key));
    return;
  }
  const bool closes = !pod->node.empty() && pod->shape->holds_unknown;
  // One that says more than is heeded has an Event while it waits.
  unread_.Note(key, {closes && pod->unread.empty() ? WhatIsTooMuch(key, *pod->shape) : pod->unread,
                     pod->node, closes});
  if (!pod->volumes.empty()) claim_users_.PutPod(key, pod->volumes.ClaimNames());
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
       .is_opted_out = pod->is_opted_out || IsNamespaceOptedOut(key.object_namespace)});
}

void SchedulingFeed::NoteUnreadLatency(const SchedulingNode& node) {
  if (node.unread_latency.empty()) {
    unread_latency_.erase(node.name);
    return;
  }
  std::string& told = unread_latency_[node.name];
  if (told == node.unread_latency) return;
  told = node.unread_latency;
  LogWarning("node {}: {}; how far it is from the users counts as not known", node.name, told);
}

SchedulingFeed::Unread SchedulingFeed::CountUnread() const {
  return {unread_.Count(), static_cast<int>(unread_latency_.size())};
}

void SchedulingFeed::TellWaiting(const std::string& place) {
  std::vector<ObjectKey> again;
  for (auto at = waiting_.lower_bound({place, ""});
       at != waiting_.end() && at->object_namespace == place; ++at) {
    again.push_back(*at);
  }
  for (const ObjectKey& key : again) TellPod(key, ChangeKind::kChanged);
}

bool SchedulingFeed::Source::IsRefused() const {
  const auto& error = reflector->last_error();
  return need == Need::kWanted && error && !MayPass(error->code);
}

void SchedulingFeed::NoteWhatLimitsVolumes() {
  const Source* unknown = nullptr;
  for (const Source& source : sources_) {
    const bool is_known = source.reflector->is_synced() && !source.IsRefused();
    if (source.need == Need::kWanted && !is_known && unknown == nullptr) unknown = &source;
  }
  std::string why;
  if (unknown != nullptr) why = fmt::format("{}.{} cannot be read", unknown->resource, kStorage);
  const bool is_refused = unknown != nullptr && unknown->IsRefused();
  if (is_refused && !has_told_refusal_) {
    LogWarning("{}; pods with volumes that CSI drivers attach are not modelled",
               unknown->reflector->last_error()->message);
  } else if (unknown == nullptr && has_told_refusal_) {
    LogInfo("how many volumes CSI drivers attach to nodes is known");
  }
  has_told_refusal_ = unknown != nullptr && (has_told_refusal_ || is_refused);
  if (why == references_.limits_unknown) return;
  references_.limits_unknown = std::move(why);
  claim_users_.NoteAll();
}

void SchedulingFeed::TellNodes() {
  for (const std::string& name : node_volumes_.TakeCompleted()) {
    const Held<SchedulingNode>* node = nodes_->Find({"", name});
    if (node != nullptr) observer_->NodeSeen(node_volumes_.Complete(node->value));
  }
  for (const std::string& name : node_volumes_.TakeAttachedTo())
    observer_->AttachmentsSeen(name, node_volumes_.AttachedTo(name));
}

// Pods that wait are judged by what they refer to as it is now; of others it matters what is
// attached for them.
void SchedulingFeed::ReadAgain() {
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

std::shared_ptr<const PodClass> SchedulingFeed::ReadAgain(const Pod& known) {
  if (!known.node.empty()) {
    PodClass shape = *known.shape;
    SetAttached(known.volumes,
                {known.meta.key.object_namespace, known.meta.key.name, known.meta.uid}, references_,
                &shape);
    return shape == *known.shape ? known.shape : classes_.Shared(std::move(shape));
  }
  Element object;
  if (parser_.parse(known.json).get(object) != simdjson::SUCCESS)
    return known.shape;  // We wrote it.
  Result<PodClass> shape = ReadPodClass(object, references_);
  return shape ? classes_.Shared(*std::move(shape)) : known.shape;
}

void SchedulingFeed::Poll(Duration timeout) {
  client_->Poll(timeout);
  NoteWhatLimitsVolumes();
  TellNodes();
  ReadAgain();
}

Result<void> SchedulingFeed::Sync(Duration limit, const std::function<void()>& on_step) {
  const Clock& clock = client_->clock();
  Instant since = clock.Now();  // When something more was listed.
  int64_t known = 0;
  while (true) {
    const Error* failed = nullptr;
    bool is_synced = true;
    int64_t listed = 0;
    for (const Source& source : sources_) {
      listed += source.reflector->counts().listed;
      if (source.reflector->is_synced() || source.IsRefused()) continue;
      is_synced = false;
      const auto& error = source.reflector->last_error();
      if (error && (failed == nullptr || !MayPass(error->code))) failed = &*error;
    }
    if (is_synced) return {};
    if (failed != nullptr && !MayPass(failed->code)) return tl::unexpected(*failed);
    if (listed > known) {
      known = listed;
      since = clock.Now();
    }
    const Duration waited = clock.Now() - since;
    const bool is_silent =
        !client_->has_heard() && waited > (failed != nullptr ? kSilenceLimit : kSilenceMost);
    if (waited > limit || is_silent) {
      if (failed != nullptr) return tl::unexpected(*failed);
      return Fail(ErrorCode::kDeadlineExceeded, "the cluster was not listed within {}",
                  FormatDuration(std::chrono::round<std::chrono::seconds>(waited)));
    }
    Poll(kSyncStep);
    if (on_step) on_step();
  }
}

std::optional<Instant> SchedulingFeed::FreshAsOf() const {
  std::optional<Instant> oldest;
  for (const Source& source : sources_) {
    if (source.need == Need::kWanted && (!source.reflector->is_synced() || source.IsRefused()))
      continue;
    const std::optional<Instant> fresh = source.reflector->FreshAsOf();
    if (!fresh) return std::nullopt;
    if (!oldest || *fresh < *oldest) oldest = fresh;
  }
  return oldest;
}

std::string SchedulingFeed::Trouble() const {
  for (const Source& source : sources_) {
    const auto& error = source.reflector->last_error();
    if (error) return error->message;
  }
  return "";
}

std::vector<SchedulingFeed::Watched> SchedulingFeed::Counts() const {
  std::vector<Watched> all;
  for (const Source& source : sources_) {
    all.push_back({.resource = source.group.empty()
                                   ? source.resource
                                   : fmt::format("{}.{}", source.resource, source.group),
                   .objects = source.count(),
                   .counts = source.reflector->counts()});
  }
  return all;
}

std::vector<Right> SchedulingFeed::Rights(Need need) {
  std::vector<Right> rights;
  for (const WatchedResource& watched : kWatched) {
    if ((watched.group == std::string_view(kStorage)) != (need == Need::kWanted)) continue;
    for (const char* verb : {"list", "watch"}) {
      rights.push_back({.verb = verb,
                        .group = watched.group,
                        .resource = watched.resource,
                        .name_space = "",
                        .name = ""});
    }
  }
  return rights;
}

}  // namespace rudderfish::kube
