// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_amounts.h"

#include <algorithm>
#include <vector>

namespace rudderfish::kube {
namespace {

// So that the pods of a node can be added up, and shares of them multiplied by a hundred. No node
// has as much: a pod that asks for more counts with this and so fits none, as with kube-scheduler.
constexpr int64_t kMostOfAResource = int64_t{1} << 50;

const Quantity kAssumedCpu = *Quantity::Parse("100m");
const Quantity kAssumedMemory = *Quantity::Parse("200Mi");

void Add(const ResourceList& more, ResourceList* sum) {
  for (const auto& [name, amount] : more) (*sum)[name] += amount;
}

void RaiseTo(const ResourceList& other, ResourceList* list) {
  for (const auto& [name, amount] : other) {
    const auto [at, is_new] = list->emplace(name, amount);
    if (!is_new) at->second = std::max(at->second, amount);
  }
}

// While a resize is under way a container, or the pod, counts with the most of what it asks, what
// it has and what was granted; a resize that can never be done does not count.
struct Container {
  ResourceList asked, granted;
  bool has_status = false;
  bool is_sidecar = false;
};

struct Requests {
  std::vector<Container> containers, init_containers;
  Container whole;  // Of the pod; only resources that can be given so.
  ResourceList overhead;
  bool resize_is_infeasible = false;
};

// Which of the ways of counting.
struct Counting {
  bool with_status = false;
  bool with_whole = false;
  ResourceList assumed;  // Of containers that do not name them.
};

ResourceList Effective(const Container& container, const Requests& pod, const Counting& how) {
  if (!how.with_status || !container.has_status) return container.asked;
  ResourceList list = container.granted;
  if (!pod.resize_is_infeasible) RaiseTo(container.asked, &list);
  return list;
}

ResourceList Total(const Requests& pod, const Counting& how) {
  ResourceList total, sidecars, start;
  const auto list_of = [&](const Container& container) {
    ResourceList list = Effective(container, pod, how);
    list.insert(how.assumed.begin(), how.assumed.end());
    return list;
  };
  for (const Container& container : pod.containers) Add(list_of(container), &total);
  for (const Container& container : pod.init_containers) {
    ResourceList list = list_of(container);
    if (container.is_sidecar) {
      Add(list, &total);
      Add(list, &sidecars);
      list = sidecars;
    } else {
      Add(sidecars, &list);
    }
    RaiseTo(list, &start);
  }
  RaiseTo(start, &total);
  if (how.with_whole) {
    const ResourceList effective = Effective(pod.whole, pod, how);
    for (const auto& [name, asked] : pod.whole.asked) {
      const auto at = effective.find(name);
      total[name] = at == effective.end() ? Quantity() : at->second;
    }
  }
  Add(pod.overhead, &total);
  return total;
}

bool CanBeGivenToAPod(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

Result<std::vector<Container>> ReadContainerRequests(const Fields& pod, std::string_view path) {
  std::vector<Container> containers;
  TRY(pod.ForEach(path, [&](const Fields& fields) -> Result<void> {
    Container& container = containers.emplace_back();
    TRY_ASSIGN(container.asked, ReadResourceList(fields, "resources.requests"));
    TRY_ASSIGN(const std::string_view restart, fields.Text("restartPolicy"));
    container.is_sidecar = restart == "Always";
    return {};
  }));
  return containers;
}

// Joins what the status says to containers by their names.
Result<void> ReadStatuses(const Fields& pod, std::string_view spec, std::string_view status,
                          std::vector<Container>* containers) {
  std::vector<std::string> names;
  TRY(pod.ForEach(spec, [&](const Fields& fields) -> Result<void> {
    TRY_ASSIGN(const std::string_view name, fields.Text("name"));
    names.emplace_back(name);
    return {};
  }));
  return pod.ForEach(status, [&](const Fields& fields) -> Result<void> {
    TRY_ASSIGN(const std::string_view name, fields.Text("name"));
    const auto at = std::find(names.begin(), names.end(), name);
    TRY_ASSIGN(const Fields resources, fields.Find("resources"));
    if (at == names.end() || !resources.there()) return {};
    Container& container = (*containers)[at - names.begin()];
    container.has_status = true;
    TRY_ASSIGN(container.granted, ReadResourceList(fields, "resources.requests"));
    TRY_ASSIGN(const ResourceList allocated, ReadResourceList(fields, "allocatedResources"));
    RaiseTo(allocated, &container.granted);
    return {};
  });
}

Result<void> ReadWhole(const Fields& pod, Container* whole) {
  TRY_ASSIGN(const ResourceList asked, ReadResourceList(pod, "spec.resources.requests"));
  for (const auto& [name, amount] : asked) {
    if (CanBeGivenToAPod(name)) whole->asked.emplace(name, amount);
  }
  TRY_ASSIGN(const Fields status, pod.Find("status.resources"));
  whole->has_status = status.there();
  TRY_ASSIGN(whole->granted, ReadResourceList(pod, "status.resources.requests"));
  TRY_ASSIGN(const ResourceList allocated, ReadResourceList(pod, "status.allocatedResources"));
  RaiseTo(allocated, &whole->granted);
  return {};
}

Result<Requests> ReadRequests(const Fields& pod) {
  Requests made;
  TRY_ASSIGN(made.containers, ReadContainerRequests(pod, "spec.containers"));
  TRY_ASSIGN(made.init_containers, ReadContainerRequests(pod, "spec.initContainers"));
  for (Container& container : made.containers) container.is_sidecar = false;
  TRY(ReadStatuses(pod, "spec.containers", "status.containerStatuses", &made.containers));
  TRY(ReadStatuses(pod, "spec.initContainers", "status.initContainerStatuses",
                   &made.init_containers));
  for (Container& container : made.init_containers) container.has_status &= container.is_sidecar;
  TRY(ReadWhole(pod, &made.whole));
  TRY_ASSIGN(made.overhead, ReadResourceList(pod, "spec.overhead"));
  TRY(pod.ForEach("status.conditions", [&](const Fields& condition) -> Result<void> {
    TRY_ASSIGN(const std::string_view type, condition.Text("type"));
    TRY_ASSIGN(const std::string_view reason, condition.Text("reason"));
    if (type == "PodResizePending") made.resize_is_infeasible = reason == "Infeasible";
    return {};
  }));
  return made;
}

int64_t Bounded(int64_t amount) { return std::min(amount, kMostOfAResource); }

Resources CpuAndMemory(const ResourceList& list) {
  Resources made;
  if (const auto at = list.find("cpu"); at != list.end())
    made.cpu_millis = Bounded(at->second.MilliValue());
  if (const auto at = list.find("memory"); at != list.end())
    made.memory_bytes = Bounded(at->second.Value());
  return made;
}

// Extended resources, huge pages, attachable volumes; a name such as "storage" is nothing a node
// would be asked for.
bool IsCounted(std::string_view name) {
  if (name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")) return true;
  if (name.find('/') == std::string_view::npos) return false;
  return name.find("kubernetes.io/") != std::string_view::npos || !name.starts_with("requests.");
}

}  // namespace

Result<ResourceList> ReadResourceList(const Fields& object, std::string_view path) {
  TRY_ASSIGN(const Fields field, object.Find(path));
  ResourceList list;
  if (!field.there()) return list;
  simdjson::dom::object members;
  if (field.element().get(members) != simdjson::SUCCESS)
    return Invalid("{}: expected a map of resources", path);
  for (const auto member : members) {
    std::string_view text;
    int64_t whole = 0;  // Bare numbers are accepted; the API server writes text.
    Result<Quantity> amount;
    if (member.value.get(text) == simdjson::SUCCESS) {
      amount = Quantity::Parse(text);
    } else if (member.value.get(whole) == simdjson::SUCCESS) {
      amount = Quantity::Parse(std::to_string(whole));
    } else {
      return Invalid("{}.{}: expected a quantity such as 500m, 2 or 1.5Gi", path, member.key);
    }
    if (!amount) return Invalid("{}.{}: {}", path, member.key, amount.error().message);
    if (!list.emplace(member.key, *amount).second)
      return Invalid("{}.{}: stands there twice", path, member.key);
  }
  return list;
}

ScalarAmounts ScalarsOf(const ResourceList& list) {
  ScalarAmounts scalars;
  for (const auto& [name, amount] : list) {
    if (!IsCounted(name)) continue;
    const int64_t count = Bounded(amount.Value());
    if (count != 0) scalars.emplace_back(name, count);  // To ask for none is not to ask.
  }
  return scalars;
}

Result<PodAmounts> ReadPodAmounts(const Fields& pod) {
  TRY_ASSIGN(const Requests requests, ReadRequests(pod));
  PodAmounts made;
  const ResourceList asked = Total(requests, {false, true, {}});
  made.requests = CpuAndMemory(asked);
  if (const auto at = asked.find("ephemeral-storage"); at != asked.end())
    made.ephemeral_bytes = Bounded(at->second.Value());
  made.scalars = ScalarsOf(asked);
  const ResourceList held = Total(requests, {true, true, {}});
  made.held = CpuAndMemory(held);
  // What is given for the pod as a whole leaves nothing to assume of that resource.
  const bool has_whole = !requests.whole.asked.empty();
  ResourceList assumed;
  if (!has_whole || !held.contains("cpu")) assumed.emplace("cpu", kAssumedCpu);
  if (!has_whole || !held.contains("memory")) assumed.emplace("memory", kAssumedMemory);
  made.held_assumed = CpuAndMemory(Total(requests, {true, true, assumed}));
  assumed = {{"cpu", kAssumedCpu}, {"memory", kAssumedMemory}};
  made.scored_assumed = CpuAndMemory(Total(requests, {false, false, assumed}));
  return made;
}

}  // namespace rudderfish::kube
