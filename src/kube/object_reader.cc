// SPDX-License-Identifier: Apache-2.0
#include "kube/object_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "kube/scheduling_terms.h"

namespace rudderfish::kube {

bool Pod::operator==(const Pod& other) const {
  return meta == other.meta && (shape == other.shape || *shape == *other.shape) &&
         node == other.node && phase == other.phase && ready == other.ready &&
         terminating == other.terminating && gated == other.gated &&
         unschedulable == other.unschedulable && started_at == other.started_at &&
         ready_at == other.ready_at && evicted == other.evicted;
}

std::string KeyText(const ObjectKey& key) {
  return key.object_namespace.empty() ? key.name
                                      : fmt::format("{}/{}", key.object_namespace, key.name);
}

namespace internal {

Result<Metadata> ReadMetadata(const Fields& object) {
  Metadata meta;
  TRY_ASSIGN(meta.key.name, object.Text("metadata.name"));
  if (meta.key.name.empty()) return Invalid("metadata.name: is missing");
  TRY_ASSIGN(meta.key.object_namespace, object.Text("metadata.namespace"));
  TRY_ASSIGN(meta.uid, object.Text("metadata.uid"));
  TRY_ASSIGN(meta.resource_version.text, object.Text("metadata.resourceVersion"));
  TRY_ASSIGN(meta.created_at, object.Time("metadata.creationTimestamp"));
  return meta;
}

Result<ObjectRef> ReadController(const Fields& object) {
  ObjectRef owner;
  TRY(object.ForEach("metadata.ownerReferences", [&](const Fields& reference) -> Result<void> {
    TRY_ASSIGN(const bool controls, reference.Flag("controller"));
    if (!controls) return {};
    TRY_ASSIGN(owner.kind, reference.Text("kind"));
    TRY_ASSIGN(owner.name, reference.Text("name"));
    TRY_ASSIGN(owner.uid, reference.Text("uid"));
    return {};
  }));
  return owner;
}

Result<LabelSelector> ReadSelector(const Fields& object, std::string_view path) {
  using Operator = LabelRequirement::Operator;
  LabelSelector selector;
  TRY_ASSIGN(const Labels exact, object.TextMap(fmt::format("{}.matchLabels", path)));
  for (const auto& [key, value] : exact) {
    selector.requirements.push_back({key, Operator::kIn, {value}});
  }
  const std::string rules = fmt::format("{}.matchExpressions", path);
  TRY(object.ForEach(rules, [&](const Fields& rule) -> Result<void> {
    LabelRequirement requirement;
    TRY_ASSIGN(requirement.key, rule.Text("key"));
    TRY_ASSIGN(const std::string_view op, rule.Text("operator"));
    constexpr std::string_view kOperators[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    const auto at = std::find(std::begin(kOperators), std::end(kOperators), op);
    if (at == std::end(kOperators)) {
      return Invalid("operator: expected In, NotIn, Exists or DoesNotExist, found `{}`", op);
    }
    requirement.op = static_cast<Operator>(at - std::begin(kOperators));
    TRY(rule.ForEach("values", [&](const Fields& value) -> Result<void> {
      std::string_view text;
      if (!value.there() || value.element().get(text) != simdjson::SUCCESS) {
        return Invalid(": expected text");
      }
      requirement.values.emplace_back(text);
      return {};
    }));
    selector.requirements.push_back(std::move(requirement));
    return {};
  }));
  return selector;
}

tl::unexpected<Error> Blame(std::string_view kind, const Element& object, const Error& error) {
  const Fields fields(object);
  const Result<std::string_view> name = fields.Text("metadata.name");
  const Result<std::string_view> place = fields.Text("metadata.namespace");
  if (!name || name->empty())
    return Fail(error.code, "a {} without a name: {}", kind, error.message);
  return Fail(error.code, "{} {}{}{}: {}", kind, place ? *place : "",
              place && !place->empty() ? "/" : "", *name, error.message);
}

}  // namespace internal

namespace {

using internal::ReadMetadata;

// Reads an object by `read`, a function of its fields that fills it; errors name it.
template <class T, class Read>
Result<T> Named(std::string_view kind, const Element& object, Read read) {
  const Fields fields(object);
  T made;
  const Result<void> done = [&]() -> Result<void> {
    TRY_ASSIGN(made.meta, ReadMetadata(fields));
    return read(fields, &made);
  }();
  if (!done) return internal::Blame(kind, object, done.error());
  return made;
}

Result<Resources> ReadResources(const Fields& object, const std::string& path) {
  TRY_ASSIGN(const Quantity cpu, object.Amount(path + ".cpu"));
  TRY_ASSIGN(const Quantity memory, object.Amount(path + ".memory"));
  return Resources{cpu.MilliValue(), memory.Value()};
}

Result<void> ReadNodeFields(const Fields& fields, Node* node) {
  TRY_ASSIGN(node->labels, fields.TextMap("metadata.labels"));
  TRY_ASSIGN(node->allocatable, ReadResources(fields, "status.allocatable"));
  TRY_ASSIGN(const Quantity pods, fields.Amount("status.allocatable.pods"));
  node->pods_max = pods.Value();
  TRY_ASSIGN(node->unschedulable, fields.Flag("spec.unschedulable"));
  TRY_ASSIGN(node->taints, internal::ReadTaints(fields));
  TRY(fields.ForEach("status.addresses", [&](const Fields& address) -> Result<void> {
    TRY_ASSIGN(const std::string_view type, address.Text("type"));
    TRY_ASSIGN(const std::string_view text, address.Text("address"));
    if (type == "InternalIP" && node->address.empty()) node->address = text;
    return {};
  }));
  return fields.ForEach("status.conditions", [&](const Fields& condition) -> Result<void> {
    TRY_ASSIGN(const std::string_view type, condition.Text("type"));
    TRY_ASSIGN(const std::string_view status, condition.Text("status"));
    if (type == "Ready") node->ready = status == "True";
    return {};
  });
}

Result<void> ReadControllerFields(const Fields& fields, PodController* made) {
  TRY_ASSIGN(made->owner, internal::ReadController(fields));
  TRY_ASSIGN(made->labels, fields.TextMap("metadata.labels"));
  TRY_ASSIGN(made->selector, internal::ReadSelector(fields, "spec.selector"));
  TRY_ASSIGN(made->paused, fields.Flag("spec.paused"));
  TRY_ASSIGN(made->opt_outs, ReadOptOuts(fields));
  TRY_ASSIGN(const Fields desired, fields.Find("status.desiredNumberScheduled"));
  if (desired.there()) {  // A DaemonSet.
    TRY_ASSIGN(made->replicas, fields.Integer("status.desiredNumberScheduled"));
    TRY_ASSIGN(made->ready, fields.Integer("status.numberReady"));
    return {};
  }
  TRY_ASSIGN(const Fields parallelism, fields.Find("spec.parallelism"));
  if (parallelism.there()) {  // A Job.
    TRY_ASSIGN(made->replicas, fields.Integer("spec.parallelism"));
    TRY_ASSIGN(made->ready, fields.Integer("status.ready"));
    return {};
  }
  TRY_ASSIGN(made->replicas, fields.Integer("spec.replicas", 1));
  TRY_ASSIGN(made->ready, fields.Integer("status.readyReplicas"));
  return {};
}

Result<void> ReadVolumeFields(const Fields& fields, PersistentVolume* volume) {
  TRY_ASSIGN(volume->claim.object_namespace, fields.Text("spec.claimRef.namespace"));
  TRY_ASSIGN(volume->claim.name, fields.Text("spec.claimRef.name"));
  TRY_ASSIGN(volume->storage_class, fields.Text("spec.storageClassName"));
  TRY_ASSIGN(const bool affinity, fields.Has("spec.nodeAffinity"));
  TRY_ASSIGN(const bool host_path, fields.Has("spec.hostPath"));
  TRY_ASSIGN(const bool local, fields.Has("spec.local"));
  volume->node_bound = affinity || host_path || local;
  return {};
}

}  // namespace

Result<ObjectKey> ReadKey(const Element& object) {
  TRY_ASSIGN(const Metadata meta, ReadMetadata(Fields(object)));
  return meta.key;
}

Result<Node> ReadNode(const Element& object) { return Named<Node>("node", object, ReadNodeFields); }

Result<PodController> ReadPodController(const Element& object) {
  return Named<PodController>("workload", object, ReadControllerFields);
}

Result<PersistentVolume> ReadPersistentVolume(const Element& object) {
  return Named<PersistentVolume>("persistent volume", object, ReadVolumeFields);
}

Result<PersistentVolumeClaim> ReadPersistentVolumeClaim(const Element& object) {
  return Named<PersistentVolumeClaim>(
      "persistent volume claim", object,
      [](const Fields& f, PersistentVolumeClaim* made) -> Result<void> {
        TRY_ASSIGN(made->volume, f.Text("spec.volumeName"));
        TRY_ASSIGN(made->storage_class, f.Text("spec.storageClassName"));
        return {};
      });
}

Result<Namespace> ReadNamespace(const Element& object) {
  return Named<Namespace>("namespace", object,
                          [](const Fields& f, Namespace* made) -> Result<void> {
                            TRY_ASSIGN(made->labels, f.TextMap("metadata.labels"));
                            TRY_ASSIGN(const std::string_view phase, f.Text("status.phase"));
                            made->terminating = phase == "Terminating";
                            return {};
                          });
}

Result<Usage> ReadNodeMetrics(const Element& object) {
  return Named<Usage>("usage of node", object, [](const Fields& f, Usage* made) -> Result<void> {
    TRY_ASSIGN(made->used, ReadResources(f, "usage"));
    TRY_ASSIGN(made->measured_at, f.Time("timestamp"));
    return {};
  });
}

Result<Usage> ReadPodMetrics(const Element& object) {
  return Named<Usage>("usage of pod", object, [](const Fields& f, Usage* made) -> Result<void> {
    TRY_ASSIGN(made->measured_at, f.Time("timestamp"));
    Quantity cpu, memory;
    TRY(f.ForEach("containers", [&](const Fields& container) -> Result<void> {
      TRY_ASSIGN(const Quantity container_cpu, container.Amount("usage.cpu"));
      TRY_ASSIGN(const Quantity container_memory, container.Amount("usage.memory"));
      cpu += container_cpu;
      memory += container_memory;
      return {};
    }));
    made->used = {cpu.MilliValue(), memory.Value()};
    return {};
  });
}

}  // namespace rudderfish::kube
