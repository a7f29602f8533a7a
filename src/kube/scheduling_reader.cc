// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/one_line.h"
#include "kube/object_reader.h"
#include "kube/pod_amounts.h"
#include "kube/scheduling_bounds.h"
#include "kube/scheduling_terms.h"

namespace rudderfish::kube {
namespace {

using internal::ReadTexts;

constexpr std::string_view kDeviceClassPrefix = "deviceclass.resource.kubernetes.io/";
constexpr size_t kTextTold = 40;

// "redis" is "redis:latest".
std::string NormalisedImage(std::string_view image) {
  const size_t colon = image.rfind(':'), slash = image.rfind('/');
  const bool has_tag =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return has_tag ? std::string(image) : fmt::format("{}:latest", image);
}

constexpr double kLatencyMsMax = 1e9;

// Absent: the annotation is.
Result<std::optional<double>> ReadLatency(const Labels& annotations, std::string_view key) {
  const std::string* text = FindLabel(annotations, key);
  if (text == nullptr) return std::optional<double>();
  double ms = 0;
  const char* const end = text->data() + text->size();
  const auto [stopped, error] = std::from_chars(text->data(), end, ms);
  if (error != std::errc() || stopped != end || !(ms >= 0 && ms <= kLatencyMsMax)) {
    return Invalid("metadata.annotations.{}: expected milliseconds, such as 12.5, found `{}`", key,
                   OneLine(*text, kTextTold));
  }
  return std::optional(ms);
}

Result<void> ReadLatencyLimits(const Fields& pod, LatencyLimits* limits) {
  TRY_ASSIGN(const Labels annotations, pod.TextMap("metadata.annotations"));
  TRY_ASSIGN(const std::optional<double> soft_ms, ReadLatency(annotations, kSoftLatency));
  TRY_ASSIGN(const std::optional<double> hard_ms, ReadLatency(annotations, kHardLatency));
  if (soft_ms) limits->soft_ms = *soft_ms;
  if (hard_ms) limits->hard_ms = *hard_ms;
  return {};
}

Result<void> ReadUserLatency(const Fields& fields, SchedulingNode* node) {
  TRY_ASSIGN(const Labels annotations, fields.TextMap("metadata.annotations"));
  const Result<std::optional<double>> user_ms = ReadLatency(annotations, kUserLatency);
  if (user_ms) {
    node->user_ms = *user_ms;
  } else {
    node->unread_latency = user_ms.error().message;
  }
  return {};
}

Result<void> ReadSchedulingNodeFields(const Fields& fields, SchedulingNode* node) {
  TRY_ASSIGN(node->name, fields.Text("metadata.name"));
  if (node->name.empty()) return Invalid("metadata.name: is missing");
  TRY_ASSIGN(node->labels, fields.TextMap("metadata.labels"));
  TRY(ReadUserLatency(fields, node));
  TRY_ASSIGN(node->unschedulable, fields.Flag("spec.unschedulable"));
  TRY_ASSIGN(node->taints, internal::ReadTaints(fields));
  TRY_ASSIGN(const ResourceList list, ReadResourceList(fields, "status.allocatable"));
  const auto value = [&](std::string_view name) -> int64_t {
    const auto at = list.find(name);
    if (at == list.end()) return 0;
    return name == "cpu" ? at->second.MilliValue() : at->second.Value();
  };
  node->allocatable = {value("cpu"), value("memory")};
  node->ephemeral_bytes = value("ephemeral-storage");
  node->pods_max = value("pods");
  node->scalars = ScalarsOf(list);
  for (const int64_t amount : {node->allocatable.cpu_millis, node->allocatable.memory_bytes}) {
    if (amount > int64_t{1} << 53)
      return Invalid("status.allocatable: value out of range (> 2^53)");
  }
  std::vector<NodeImage> images;
  TRY(fields.ForEach("status.images", [&](const Fields& image) -> Result<void> {
    TRY_ASSIGN(const int64_t size_bytes, image.Integer("sizeBytes"));
    if (size_bytes < 0 || size_bytes > int64_t{1} << 53)
      return Invalid("sizeBytes: expected a size, found {}", size_bytes);
    TRY_ASSIGN(const std::vector<std::string> names, ReadTexts(image, "names"));
    for (const std::string& name : names) images.push_back({name, size_bytes});
    return {};
  }));
  node->images = std::move(images);
  return {};
}

Result<void> ReadImagesOfVolumes(const Fields& pod, PodClass* made) {
  return pod.ForEach("spec.volumes", [&](const Fields& volume) -> Result<void> {
    TRY_ASSIGN(const std::string_view image, volume.Text("image.reference"));
    if (!image.empty()) made->images.push_back(NormalisedImage(image));
    return {};
  });
}

Result<void> ReadPortsAndImages(const Fields& pod, std::string_view path, PodClass* made) {
  return pod.ForEach(path, [&](const Fields& container) -> Result<void> {
    ++made->containers;
    TRY_ASSIGN(const std::string_view image, container.Text("image"));
    made->images.push_back(NormalisedImage(image));
    TRY(container.ForEach("restartPolicyRules", [&](const Fields& rule) -> Result<void> {
      TRY_ASSIGN(const std::string_view action, rule.Text("action"));
      if (action == "RestartAllContainers")
        made->unmodelled.emplace_back("needs nodes that declare RestartAllContainers");
      return {};
    }));
    TRY_ASSIGN(const std::string_view restart, container.Text("restartPolicy"));
    if (path == "spec.initContainers" && restart != "Always") return {};
    return container.ForEach("ports", [&](const Fields& fields) -> Result<void> {
      HostPort port;
      TRY_ASSIGN(port.port, fields.Integer("hostPort"));
      TRY_ASSIGN(port.ip, fields.Text("hostIP"));
      TRY_ASSIGN(port.protocol, fields.Text("protocol"));
      if (port.port <= 0) return {};
      if (port.ip.empty()) port.ip = "0.0.0.0";
      if (port.protocol.empty()) port.protocol = "TCP";
      made->host_ports.push_back(std::move(port));
      return {};
    });
  });
}

// What is there and changes what kube-scheduler does, and is no rule of ours.
Result<void> ReadUnmodelled(const Fields& pod, PodClass* made) {
  TRY_ASSIGN(const bool claims_devices, pod.Has("spec.resourceClaims"));
  if (claims_devices) made->unmodelled.emplace_back("claims devices (DRA)");
  for (const auto& [name, amount] : made->amounts.scalars) {
    if (name.starts_with(kDeviceClassPrefix))
      made->unmodelled.push_back(fmt::format("requests {}, a device class (DRA)", name));
  }
  if (made->amounts.scalars.size() > kScalarsMax) {
    made->unmodelled.push_back(fmt::format("requests {} extended resources, more than {}",
                                           made->amounts.scalars.size(), kScalarsMax));
  }
  for (const std::string_view field : {"spec.schedulingGroup", "spec.workloadRef"}) {
    TRY_ASSIGN(const bool is_of_a_group, pod.Has(field));
    if (is_of_a_group) made->unmodelled.emplace_back("belongs to a gang");
  }
  TRY_ASSIGN(const Fields host_users, pod.Find("spec.hostUsers"));
  TRY_ASSIGN(const bool shares_users, pod.Flag("spec.hostUsers"));
  TRY_ASSIGN(const bool host_network, pod.Flag("spec.hostNetwork"));
  if (host_network && host_users.there() && !shares_users)
    made->unmodelled.emplace_back("needs nodes that declare UserNamespacesHostNetworkSupport");
  return {};
}

// Of the services that select the pod and of its controller, all together.
Result<void> ReadDefaultSpread(const Fields& pod, const SchedulingReferences& references,
                               PodClass* made) {
  const std::string& place = made->object_namespace;
  std::map<std::string, std::string> labels;
  for (auto at = references.selectors.lower_bound({"Service", {place, ""}});
       at != references.selectors.end() && at->first.first == "Service" &&
       at->first.second.object_namespace == place;
       ++at) {
    if (!at->second.selector.Matches(made->labels)) continue;
    for (const LabelRequirement& exact : at->second.selector.requirements)
      labels[exact.key] = exact.values.front();
  }
  TRY_ASSIGN(const ObjectRef owner, internal::ReadController(pod));
  LabelSelector selector;
  const auto controller = references.selectors.find({owner.kind, {place, owner.name}});
  const bool is_there = controller != references.selectors.end() && owner.kind != "Service";
  if (is_there && owner.kind == "ReplicationController") {
    for (const LabelRequirement& exact : controller->second.selector.requirements)
      labels[exact.key] = exact.values.front();
  }
  for (const auto& [key, value] : labels)
    selector.requirements.push_back({key, LabelRequirement::Operator::kIn, {value}});
  if (is_there && owner.kind != "ReplicationController") {
    const std::vector<LabelRequirement>& more = controller->second.selector.requirements;
    selector.requirements.insert(selector.requirements.end(), more.begin(), more.end());
  }
  if (!selector.requirements.empty()) made->default_spread = std::move(selector);
  return {};
}

Result<PodClass> ReadPodClassFields(const Fields& pod, const SchedulingReferences& references) {
  PodClass made;
  TRY_ASSIGN(const Metadata meta, internal::ReadMetadata(pod));
  made.object_namespace = meta.key.object_namespace;
  TRY_ASSIGN(made.labels, pod.TextMap("metadata.labels"));
  TRY(ReadLatencyLimits(pod, &made.latency_limits));
  TRY_ASSIGN(made.amounts, ReadPodAmounts(pod));
  TRY(internal::ReadTolerations(pod, &made));
  TRY_ASSIGN(made.node_selector, pod.TextMap("spec.nodeSelector"));
  TRY(internal::ReadAffinity(pod, &made));
  TRY(internal::ReadSpread(pod, &made));
  TRY(ReadDefaultSpread(pod, references, &made));
  TRY(ReadPortsAndImages(pod, "spec.initContainers", &made));
  TRY(ReadPortsAndImages(pod, "spec.containers", &made));
  TRY(ReadImagesOfVolumes(pod, &made));
  TRY_ASSIGN(const PodVolumes volumes, ReadPodVolumes(pod));
  AddVolumes(volumes, {meta.key.object_namespace, meta.key.name, meta.uid}, references, &made);
  TRY_ASSIGN(made.priority, pod.Integer("spec.priority"));
  TRY_ASSIGN(const std::string_view preemption, pod.Text("spec.preemptionPolicy"));
  made.may_preempt = preemption != "Never";
  TRY_ASSIGN(made.scheduler, pod.Text("spec.schedulerName"));
  TRY(pod.ForEach("spec.schedulingGates", [&](const Fields& gate) -> Result<void> {
    TRY_ASSIGN(const std::string_view name, gate.Text("name"));
    made.gates.emplace_back(name);
    return {};
  }));
  TRY(ReadUnmodelled(pod, &made));
  internal::BoundTerms(&made);
  return made;
}

template <class T, class Read>
Result<T> FilledBy(std::string_view kind, const Element& object, Read read) {
  T made;
  if (const Result<void> done = read(Fields(object), &made); !done)
    return internal::Blame(kind, object, done.error());
  return made;
}

}  // namespace

Result<bool> IsOptedOut(const Fields& object) {
  for (const char* where : {"metadata.labels", "metadata.annotations"}) {
    TRY_ASSIGN(const Labels found, object.TextMap(where));
    const std::string* value = FindLabel(found, kDoNotPlace);
    if (value != nullptr && *value != "false") return true;
  }
  return false;
}

Result<SchedulingNode> ReadSchedulingNode(const Element& object) {
  return FilledBy<SchedulingNode>("node", object, ReadSchedulingNodeFields);
}

Result<SchedulingSelector> ReadSchedulingSelector(const Element& object, std::string_view kind) {
  const auto read = [kind](const Fields& fields, SchedulingSelector* made) -> Result<void> {
    TRY_ASSIGN(const Metadata meta, internal::ReadMetadata(fields));
    made->key = meta.key;
    TRY_ASSIGN(made->kind, fields.Text("kind"));
    if (!kind.empty()) made->kind = kind;
    if (made->kind != "Service" && made->kind != "ReplicationController") {
      TRY_ASSIGN(made->selector, internal::ReadSelector(fields, "spec.selector"));
      return {};
    }
    TRY_ASSIGN(const Labels labels, fields.TextMap("spec.selector"));
    for (const auto& [key, value] : labels)
      made->selector.requirements.push_back({key, LabelRequirement::Operator::kIn, {value}});
    return {};
  };
  return FilledBy<SchedulingSelector>("workload", object, read);
}

Result<PodClass> ReadPodClass(const Element& object, const SchedulingReferences& references) {
  Result<PodClass> made = ReadPodClassFields(Fields(object), references);
  if (!made) return internal::Blame("pod", object, made.error());
  return made;
}

PodClass ReadPartsOfPodClass(const Element& object, const SchedulingReferences& references,
                             const Error& why) {
  const Fields pod(object);
  const auto keep = [](auto* kept, auto read) {
    if (!read) return false;
    *kept = *std::move(read);
    return true;
  };
  PodClass made;
  std::string_view text;
  if (keep(&text, pod.Text("metadata.namespace"))) made.object_namespace = text;
  if (keep(&text, pod.Text("spec.schedulerName"))) made.scheduler = text;
  keep(&made.labels, pod.TextMap("metadata.labels"));
  keep(&made.priority, pod.Integer("spec.priority"));
  made.holds_unknown = !keep(&made.amounts, ReadPodAmounts(pod));
  // Each of these may have been read in part when it fails.
  PodClass parts = made;
  if (ReadPortsAndImages(pod, "spec.initContainers", &parts) &&
      ReadPortsAndImages(pod, "spec.containers", &parts)) {
    made.host_ports = std::move(parts.host_ports);
  } else {
    made.holds_unknown = true;
  }
  std::string_view name, uid;
  keep(&name, pod.Text("metadata.name"));
  keep(&uid, pod.Text("metadata.uid"));
  if (const Result<PodVolumes> volumes = ReadPodVolumes(pod)) {
    for (const PodVolumes::Claim& claim : volumes->claims) {
      if (claim.of_ephemeral.empty()) made.claims.push_back(claim.name);
    }
    SetAttached(*volumes, {made.object_namespace, name, uid}, references, &made);
  } else {
    made.holds_unknown = true;
  }
  if (internal::ReadAffinity(pod, &parts)) {
    made.required_pods = std::move(parts.required_pods);
    made.forbidden_pods = std::move(parts.forbidden_pods);
    made.preferred_pods = std::move(parts.preferred_pods);
  }
  made.unmodelled = {fmt::format("cannot be read: {}", why.message)};
  internal::BoundTerms(&made);
  return made;
}

std::shared_ptr<const PodClass> PodClasses::Shared(PodClass pod) {
  const size_t hash = HashOf(pod);
  for (auto [at, end] = classes_.equal_range(hash); at != end; ++at) {
    std::shared_ptr<const PodClass> known = at->second.lock();
    if (known != nullptr && *known == pod) return known;
  }
  if (classes_.size() >= sweep_at_) {
    std::erase_if(classes_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<size_t>(1024, 2 * classes_.size());
  }
  auto shared = std::make_shared<const PodClass>(std::move(pod));
  classes_.emplace(hash, shared);
  return shared;
}

}  // namespace rudderfish::kube
