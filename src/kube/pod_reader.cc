// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cluster/pod_move.h"
#include "kube/object_reader.h"
#include "kube/pod_amounts.h"
#include "kube/scheduling_terms.h"

namespace rudderfish::kube {
namespace {

constexpr std::string_view kModelled[] = {"cpu", "memory"};

// Notes each thing in the spec that decides where the pod can run and that is not judged for each
// node: what nodes it demands is (NodeDemand), and what it only prefers keeps it from none.
class Obstacles {
 public:
  Obstacles(const Fields& pod, const PodClass& rules) : pod_(pod), rules_(rules) {}

  Result<std::vector<std::string>> Read() {
    if (!rules_.required_pods.empty()) Add("has required affinity to other pods");
    if (!rules_.forbidden_pods.empty()) Add("has required anti-affinity to other pods");
    for (const SpreadConstraint& constraint : rules_.spread) {
      if (constraint.when == SpreadConstraint::When::kDoNotSchedule)
        Add("has topology spread constraints with DoNotSchedule");
    }
    for (const std::string& what : rules_.unmodelled) Add(what);
    TRY(IfThere("spec.resourceClaims", "claims devices"));
    TRY_ASSIGN(const bool host_network, pod_.Flag("spec.hostNetwork"));
    if (host_network) Add("uses the host's network");
    TRY(ReadContainers("spec.containers"));
    TRY(ReadContainers("spec.initContainers"));
    TRY(pod_.ForEach("spec.volumes", [&](const Fields& volume) { return ReadVolume(volume); }));
    return std::move(found_);
  }

 private:
  void Add(std::string what) {
    if (std::find(found_.begin(), found_.end(), what) == found_.end()) {
      found_.push_back(std::move(what));
    }
  }

  Result<void> IfThere(std::string_view path, const char* what) {
    TRY_ASSIGN(const bool there, pod_.Has(path));
    if (there) Add(what);
    return {};
  }

  Result<void> ReadContainers(std::string_view path) {
    return pod_.ForEach(path, [&](const Fields& container) -> Result<void> {
      TRY(container.ForEach("ports", [&](const Fields& port) -> Result<void> {
        TRY_ASSIGN(const int64_t number, port.Integer("hostPort"));
        if (number != 0) Add("uses a port of its host");
        return {};
      }));
      TRY_ASSIGN(const Fields requests, container.Find("resources.requests"));
      simdjson::dom::object object;
      if (!requests.there() || requests.element().get(object) != simdjson::SUCCESS) return {};
      for (const auto request : object) {
        if (std::find(std::begin(kModelled), std::end(kModelled), request.key) ==
            std::end(kModelled)) {
          Add(fmt::format("requests {}", request.key));
        }
      }
      return {};
    });
  }

  Result<void> ReadVolume(const Fields& volume) {
    TRY_ASSIGN(const Fields host_path, volume.Find("hostPath"));
    if (host_path.there()) Add("mounts a folder of its host");
    TRY_ASSIGN(const Fields ephemeral, volume.Find("ephemeral"));
    if (ephemeral.there()) Add("has an ephemeral volume");
    return {};
  }

  const Fields& pod_;
  const PodClass& rules_;
  std::vector<std::string> found_;
};

// What placing reads of them, too. A pod of which that cannot be read still takes room where it is.
Result<void> ReadRules(const Fields& pod, PodClass* rules) {
  TRY_ASSIGN(rules->labels, pod.TextMap("metadata.labels"));
  TRY_ASSIGN(rules->object_namespace, pod.Text("metadata.namespace"));
  TRY_ASSIGN(rules->node_selector, pod.TextMap("spec.nodeSelector"));
  const auto try_to = [&](auto read) {
    if (const Result<void> done = read(pod, rules); !done)
      rules->unmodelled.push_back(fmt::format("cannot be judged: {}", done.error().message));
  };
  try_to(internal::ReadTolerations);
  try_to(internal::ReadAffinity);
  try_to(internal::ReadSpread);
  return {};
}

Result<PodPhase> PhaseOf(std::string_view text) {
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Pending" || text.empty()) return PodPhase::kPending;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  if (text == "Unknown") return PodPhase::kUnknown;
  return Invalid("status.phase: expected a phase of a pod, found `{}`", text);
}

Result<void> ReadConditions(const Fields& fields, Pod* pod) {
  return fields.ForEach("status.conditions", [&](const Fields& condition) -> Result<void> {
    TRY_ASSIGN(const std::string_view type, condition.Text("type"));
    TRY_ASSIGN(const std::string_view status, condition.Text("status"));
    TRY_ASSIGN(const std::string_view reason, condition.Text("reason"));
    if (type == "Ready") {
      pod->ready = status == "True";
      TRY_ASSIGN(const int64_t since, condition.Time("lastTransitionTime"));
      pod->ready_at = pod->ready ? since : 0;
    }
    if (type == "DisruptionTarget" && status == "True")
      pod->evicted = reason == "EvictionByEvictionAPI";
    if (type == "PodScheduled" && status == "False") pod->unschedulable = reason == "Unschedulable";
    return {};
  });
}

Result<ObjectRef> ReadOwner(const Fields& pod) {
  TRY_ASSIGN(ObjectRef owner, internal::ReadController(pod));
  if (!owner.kind.empty()) return owner;
  TRY_ASSIGN(const Labels annotations, pod.TextMap("metadata.annotations"));
  const std::string* mark = FindLabel(annotations, kDetachedFrom);
  const size_t slash = mark == nullptr ? std::string::npos : mark->find('/');
  if (slash != std::string::npos) owner = {mark->substr(0, slash), mark->substr(slash + 1), ""};
  return owner;
}

Result<PodShape> ReadShape(const Fields& fields) {
  PodShape shape;
  TRY_ASSIGN(shape.labels, fields.TextMap("metadata.labels"));
  TRY_ASSIGN(shape.owner, ReadOwner(fields));
  TRY_ASSIGN(const PodAmounts amounts, ReadPodAmounts(fields));
  shape.requests = amounts.held;
  TRY_ASSIGN(shape.scheduler, fields.Text("spec.schedulerName"));
  TRY_ASSIGN(shape.priority_class, fields.Text("spec.priorityClassName"));
  TRY_ASSIGN(shape.priority, fields.Integer("spec.priority"));
  PodClass rules;
  TRY(ReadRules(fields, &rules));
  // A move of ours chose the node for this pod alone: that holds it nowhere.
  TRY_ASSIGN(const Labels annotations, fields.TextMap("metadata.annotations"));
  if (FindLabel(annotations, kReplacesKey) != nullptr)
    std::erase_if(rules.node_selector, [](const auto& one) { return one.first == kHostnameLabel; });
  shape.tolerations = std::move(rules.tolerations);
  shape.nodes = {std::move(rules.node_selector), std::move(rules.required_nodes)};
  TRY(fields.ForEach("spec.volumes", [&](const Fields& volume) -> Result<void> {
    TRY_ASSIGN(const std::string_view claim, volume.Text("persistentVolumeClaim.claimName"));
    if (!claim.empty()) shape.claims.emplace_back(claim);
    return {};
  }));
  TRY_ASSIGN(shape.obstacles, Obstacles(fields, rules).Read());
  TRY_ASSIGN(shape.opt_outs, ReadOptOuts(fields));
  return shape;
}

Result<Pod> ReadPodFields(const Fields& fields, PodShapes* shapes) {
  Pod pod;
  TRY_ASSIGN(pod.meta, internal::ReadMetadata(fields));
  TRY_ASSIGN(PodShape shape, ReadShape(fields));
  pod.shape = shapes->Shared(std::move(shape));
  TRY_ASSIGN(pod.node, fields.Text("spec.nodeName"));
  TRY_ASSIGN(const std::string_view phase, fields.Text("status.phase"));
  TRY_ASSIGN(pod.phase, PhaseOf(phase));
  TRY_ASSIGN(const std::string_view deleted, fields.Text("metadata.deletionTimestamp"));
  pod.terminating = !deleted.empty();
  TRY_ASSIGN(pod.gated, fields.Has("spec.schedulingGates"));
  TRY_ASSIGN(pod.started_at, fields.Time("status.startTime"));
  TRY(ReadConditions(fields, &pod));
  return pod;
}

size_t HashOf(const PodShape& shape) {
  size_t hash = std::hash<std::string>()(shape.owner.uid);
  const auto mix = [&](size_t more) { hash = hash * 0x9e3779b97f4a7c15u + more; };
  for (const auto& [key, value] : shape.labels) mix(std::hash<std::string>()(value));
  mix(static_cast<size_t>(shape.requests.cpu_millis));
  mix(static_cast<size_t>(shape.requests.memory_bytes));
  return hash;
}

}  // namespace

bool NodeDemand::Allows(std::string_view node, const Labels& labels) const {
  const bool is_selected = std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    const std::string* value = FindLabel(labels, wanted.first);
    return value != nullptr && *value == wanted.second;
  });
  return is_selected && (!terms || AnyMatches(*terms, node, labels));
}

std::shared_ptr<const PodShape> PodShapes::Shared(PodShape shape) {
  const size_t hash = HashOf(shape);
  for (auto [at, end] = shapes_.equal_range(hash); at != end; ++at) {
    std::shared_ptr<const PodShape> known = at->second.lock();
    if (known != nullptr && *known == shape) return known;
  }
  if (shapes_.size() >= sweep_at_) Sweep();
  auto shared = std::make_shared<const PodShape>(std::move(shape));
  shapes_.emplace(hash, shared);
  return shared;
}

void PodShapes::Sweep() {
  std::erase_if(shapes_, [](const auto& entry) { return entry.second.expired(); });
  sweep_at_ = std::max<size_t>(1024, 2 * shapes_.size());
}

Result<Pod> ReadPod(const Element& object, PodShapes* shapes) {
  Result<Pod> pod = ReadPodFields(Fields(object), shapes);
  if (!pod) return internal::Blame("pod", object, pod.error());
  return pod;
}

}  // namespace rudderfish::kube
