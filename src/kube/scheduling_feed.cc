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

  using Nodes = Collection<Held<SchedulingNode>>;
  auto nodes = std::make_unique<Nodes>(
      [](const Element& object) -> Result<Held<SchedulingNode>> {
        Held<SchedulingNode> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value, ReadSchedulingNode(object));
        return made;
      },
      clock, nullptr);
  nodes->Listen([this, all = nodes.get()](const ObjectKey& key, ChangeKind kind) {
    if (kind == ChangeKind::kGone) {
      unread_latency_.erase(key.name);
      return observer_->NodeGone(key.name);
    }
    NoteUnreadLatency(all->Find(key)->value);
    observer_->NodeSeen(all->Find(key)->value);
  });
  Add("nodes", "", "Node", "", std::move(nodes));

  AddClaims();
  AddVolumes();
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

void SchedulingFeed::AddClaims() {
  using Claims = Collection<Held<SchedulingClaim>>;
  auto claims = std::make_unique<Claims>(
      [](const Element& object) -> Result<Held<SchedulingClaim>> {
        Held<SchedulingClaim> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value, ReadSchedulingClaim(object));
        return made;
      },
      &client_->clock(), nullptr);
  claims->Listen([this, all = claims.get()](const ObjectKey& key, ChangeKind kind) {
    changed_namespaces_.insert(key.object_namespace);
    if (kind == ChangeKind::kGone) {
      references_.claims.erase(key);
      return;
    }
    references_.claims[key] = all->Find(key)->value;
  });
  Add("persistentvolumeclaims", "", "PersistentVolumeClaim", "", std::move(claims));
}

void SchedulingFeed::AddVolumes() {
  using Volumes = Collection<Held<SchedulingVolume>>;
  auto volumes = std::make_unique<Volumes>(
      [](const Element& object) -> Result<Held<SchedulingVolume>> {
        Held<SchedulingVolume> made;
        TRY_ASSIGN(made.meta, MetadataOf(object));
        TRY_ASSIGN(made.value, ReadSchedulingVolume(object));
        return made;
      },
      &client_->clock(), nullptr);
  volumes->Listen([this, all = volumes.get()](const ObjectKey& key, ChangeKind kind) {
    volumes_changed_ = true;
    if (kind == ChangeKind::kGone) {
      references_.volumes.erase(key.name);
      return;
    }
    references_.volumes[key.name] = all->Find(key)->value;
  });
  Add("persistentvolumes", "", "PersistentVolume", "", std::move(volumes));
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
    pod.unread = shape.error().message;
    pod.shape = classes_.Shared(ReadPartsOfPodClass(object, shape.error()));
  }
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
    NoteUnread(key, nullptr);
    observer_->PodGone(KeyText(key));
    return;
  }
  NoteUnread(key, pod);
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

// `pod`: nothing if it is gone.
void SchedulingFeed::NoteUnread(const ObjectKey& key, const Pod* pod) {
  const auto at = unread_.find(key);
  if (pod == nullptr || pod->unread.empty()) {
    if (at == unread_.end()) return;
    if (at->second.closes)
      LogInfo("pod {} {}: node {} is not closed for it any more", KeyText(key),
              pod == nullptr ? "is gone" : "can be read", at->second.node);
    unread_.erase(at);
    return;
  }
  NotRead now{pod->unread, pod->node, !pod->node.empty() && pod->shape->holds_unknown};
  const bool is_told = at != unread_.end() && at->second.why == now.why &&
                       at->second.node == now.node && at->second.closes == now.closes;
  if (is_told) return;
  if (now.node.empty()) {
    LogWarning("cannot be read: {}; no node is chosen for it", now.why);
  } else if (now.closes) {
    LogWarning(
        "cannot be read: {}; what it holds of node {} is not known: no pod is put there until it "
        "can be read or is gone",
        now.why, now.node);
  } else {
    LogWarning("cannot be read: {}; what it holds of node {} counts", now.why, now.node);
  }
  unread_.insert_or_assign(key, std::move(now));
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
  Unread all{.latencies = static_cast<int>(unread_latency_.size())};
  for (const auto& [key, pod] : unread_)
    ++(pod.node.empty() ? all.waiting : pod.closes ? all.closing : all.counted);
  return all;
}

void SchedulingFeed::TellWaiting(const std::string& place) {
  std::vector<ObjectKey> again;
  for (auto at = waiting_.lower_bound({place, ""});
       at != waiting_.end() && at->object_namespace == place; ++at) {
    again.push_back(*at);
  }
  for (const ObjectKey& key : again) TellPod(key, ChangeKind::kChanged);
}

// Pods that wait are judged by what they refer to as it is now.
void SchedulingFeed::ReadAgain() {
  std::vector<ObjectKey> again;
  for (const std::string& place : std::exchange(changed_namespaces_, {})) {
    for (auto at = waiting_.lower_bound({place, ""});
         at != waiting_.end() && at->object_namespace == place; ++at) {
      again.push_back(*at);
    }
  }
  if (std::exchange(volumes_changed_, false)) {
    for (const ObjectKey& key : waiting_) {
      if (!pods_->Find(key)->shape->claims.empty()) again.push_back(key);
    }
  }
  for (const ObjectKey& key : again) ReadAgain(key);
}

void SchedulingFeed::ReadAgain(const ObjectKey& key) {
  const Pod& known = *pods_->Find(key);
  Element object;
  if (parser_.parse(known.json).get(object) != simdjson::SUCCESS) return;  // We wrote it.
  Result<PodClass> shape = ReadPodClass(object, references_);
  if (!shape) return;  // As before.
  std::shared_ptr<const PodClass> shared = classes_.Shared(*std::move(shape));
  if (shared == known.shape) return;
  Pod changed = known;
  changed.shape = std::move(shared);
  pods_->Put(std::move(changed));
}

void SchedulingFeed::Poll(Duration timeout) {
  client_->Poll(timeout);
  if (volumes_changed_ || !changed_namespaces_.empty()) ReadAgain();
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
      if (source.reflector->is_synced()) continue;
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

std::vector<Right> SchedulingFeed::Rights() {
  std::vector<Right> rights;
  for (const WatchedResource& watched : kWatched) {
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
