// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "kube/object_reader.h"

namespace rudderfish::kube {
namespace {

// 64 TiB: the pods of a node, and of many, can be added up in 64 bits.
constexpr int64_t kMostRequested = int64_t{1} << 46;

struct Amounts {
  Quantity cpu, memory;

  Amounts& operator+=(const Amounts& other) {
    cpu += other.cpu;
    memory += other.memory;
    return *this;
  }
};

Amounts Most(const Amounts& a, const Amounts& b) {
  return {std::max(a.cpu, b.cpu), std::max(a.memory, b.memory)};
}

Result<Amounts> ReadAmounts(const Fields& object, const std::string& path) {
  Amounts amounts;
  TRY_ASSIGN(amounts.cpu, object.Amount(path + ".cpu"));
  TRY_ASSIGN(amounts.memory, object.Amount(path + ".memory"));
  return amounts;
}

// What the kubelet has given to containers by name: while a resize is under way a pod counts with
// the larger of what it asks and what it has; a resize that can never be done does not count.
struct Granted {
  std::map<std::string, Amounts, std::less<>> containers;
  bool resize_infeasible = false;
};

Result<Granted> ReadGranted(const Fields& pod) {
  Granted granted;
  const auto read = [&](const Fields& status) -> Result<void> {
    TRY_ASSIGN(const std::string_view name, status.Text("name"));
    TRY_ASSIGN(const Amounts actual, ReadAmounts(status, "resources.requests"));
    TRY_ASSIGN(const Amounts allocated, ReadAmounts(status, "allocatedResources"));
    granted.containers[std::string(name)] = Most(actual, allocated);
    return {};
  };
  TRY(pod.ForEach("status.containerStatuses", read));
  TRY(pod.ForEach("status.initContainerStatuses", read));
  TRY(pod.ForEach("status.conditions", [&](const Fields& condition) -> Result<void> {
    TRY_ASSIGN(const std::string_view type, condition.Text("type"));
    TRY_ASSIGN(const std::string_view reason, condition.Text("reason"));
    if (type == "PodResizePending" && reason == "Infeasible") granted.resize_infeasible = true;
    return {};
  }));
  return granted;
}

Result<Amounts> ReadContainer(const Fields& container, const Granted& granted) {
  TRY_ASSIGN(const Amounts asked, ReadAmounts(container, "resources.requests"));
  TRY_ASSIGN(const std::string_view name, container.Text("name"));
  const auto at = granted.containers.find(name);
  if (at == granted.containers.end()) return asked;
  const bool nothing = at->second.cpu == Quantity() && at->second.memory == Quantity();
  if (granted.resize_infeasible && !nothing) return at->second;
  return Most(asked, at->second);
}

constexpr std::string_view kModelled[] = {"cpu", "memory"};

// Notes each thing in the spec that decides where the pod can run and that is not modelled.
class Obstacles {
 public:
  explicit Obstacles(const Fields& pod) : pod_(pod) {}

  Result<std::vector<std::string>> Read() {
    TRY(IfThere("spec.nodeSelector", "has a node selector"));
    TRY(IfThere("spec.affinity", "has affinity rules"));
    TRY(IfThere("spec.topologySpreadConstraints", "has topology spread constraints"));
    TRY(IfThere("spec.resourceClaims", "claims devices"));
    TRY_ASSIGN(const bool host_network, pod_.Flag("spec.hostNetwork"));
    if (host_network) Add("uses the host's network");
    TRY(ReadContainers("spec.containers"));
    TRY(ReadContainers("spec.initContainers"));
    TRY(pod_.ForEach("spec.volumes", [&](const Fields& volume) { return ReadVolume(volume); }));
    TRY(ReadAnnotations());
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

  Result<void> ReadAnnotations() {
    struct OptOut {
      std::string_view key, value;  // No value: any.
    };
    constexpr OptOut kOptOuts[] = {{kDoNotMove, "true"},
                                   {"karpenter.sh/do-not-disrupt", "true"},
                                   {"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
                                   {"descheduler.alpha.kubernetes.io/request-evict-only", ""},
                                   {"kubernetes.io/config.mirror", ""}};
    TRY_ASSIGN(const Labels annotations, pod_.TextMap("metadata.annotations"));
    for (const OptOut& opt_out : kOptOuts) {
      const std::string* value = FindLabel(annotations, opt_out.key);
      if (value == nullptr || (!opt_out.value.empty() && *value != opt_out.value)) continue;
      Add(fmt::format("is annotated {}{}{}", opt_out.key, value->empty() ? "" : "=", *value));
    }
    return {};
  }

  const Fields& pod_;
  std::vector<std::string> found_;
};

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
    if (type == "Ready") pod->ready = status == "True";
    if (type == "PodScheduled" && status == "False") pod->unschedulable = reason == "Unschedulable";
    return {};
  });
}

Result<std::vector<Toleration>> ReadTolerations(const Fields& pod) {
  std::vector<Toleration> tolerations;
  TRY(pod.ForEach("spec.tolerations", [&](const Fields& fields) -> Result<void> {
    Toleration toleration;
    TRY_ASSIGN(toleration.key, fields.Text("key"));
    TRY_ASSIGN(toleration.op, fields.Text("operator"));
    TRY_ASSIGN(toleration.value, fields.Text("value"));
    TRY_ASSIGN(toleration.effect, fields.Text("effect"));
    tolerations.push_back(std::move(toleration));
    return {};
  }));
  return tolerations;
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
  TRY_ASSIGN(shape.requests, internal::ReadPodRequests(fields));
  TRY_ASSIGN(shape.scheduler, fields.Text("spec.schedulerName"));
  TRY_ASSIGN(shape.priority_class, fields.Text("spec.priorityClassName"));
  TRY_ASSIGN(shape.priority, fields.Integer("spec.priority"));
  TRY_ASSIGN(shape.tolerations, ReadTolerations(fields));
  TRY(fields.ForEach("spec.volumes", [&](const Fields& volume) -> Result<void> {
    TRY_ASSIGN(const std::string_view claim, volume.Text("persistentVolumeClaim.claimName"));
    if (!claim.empty()) shape.claims.emplace_back(claim);
    return {};
  }));
  TRY_ASSIGN(shape.obstacles, Obstacles(fields).Read());
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

Result<Resources> internal::ReadPodRequests(const Fields& pod) {
  TRY_ASSIGN(const Granted granted, ReadGranted(pod));
  Amounts total, sidecars, start;
  TRY(pod.ForEach("spec.containers", [&](const Fields& container) -> Result<void> {
    TRY_ASSIGN(const Amounts amounts, ReadContainer(container, granted));
    total += amounts;
    return {};
  }));
  // Init containers run one after another, each beside the sidecars started before it.
  TRY(pod.ForEach("spec.initContainers", [&](const Fields& container) -> Result<void> {
    TRY_ASSIGN(const std::string_view restart, container.Text("restartPolicy"));
    if (restart == "Always") {
      TRY_ASSIGN(const Amounts amounts, ReadContainer(container, granted));
      total += amounts;
      sidecars += amounts;
      start = Most(start, sidecars);
      return {};
    }
    TRY_ASSIGN(Amounts amounts, ReadAmounts(container, "resources.requests"));
    amounts += sidecars;
    start = Most(start, amounts);
    return {};
  }));
  total = Most(total, start);
  // What is given for the pod as a whole replaces what its containers add up to.
  TRY_ASSIGN(const bool cpu_of_pod, pod.Has("spec.resources.requests.cpu"));
  TRY_ASSIGN(const bool memory_of_pod, pod.Has("spec.resources.requests.memory"));
  TRY_ASSIGN(const Amounts of_pod, ReadAmounts(pod, "spec.resources.requests"));
  if (cpu_of_pod) total.cpu = of_pod.cpu;
  if (memory_of_pod) total.memory = of_pod.memory;
  TRY_ASSIGN(const Amounts overhead, ReadAmounts(pod, "spec.overhead"));
  total += overhead;
  const Result<int64_t> cpu = total.cpu.MilliValue(), memory = total.memory.Value();
  if (!cpu) return Invalid("its requests of cpu together: {}", cpu.error().message);
  if (!memory) return Invalid("its requests of memory together: {}", memory.error().message);
  if (*cpu > kMostRequested || *memory > kMostRequested) {
    return Invalid("it requests more than any node has: {} milli-cores, {} bytes", *cpu, *memory);
  }
  return Resources{*cpu, *memory};
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
