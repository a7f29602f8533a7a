// SPDX-License-Identifier: Apache-2.0
#include "run/trace_places.h"

#include <algorithm>

namespace rudderfish {
namespace {

WorkloadId WorkloadOf(const Application& application, const kube::Mirror& mirror,
                      const kube::Pod& pod) {
  const kube::ObjectRef top = mirror.WorkloadOf(pod);
  const WorkloadObject object{top.kind, pod.meta.key.object_namespace, top.name};
  const auto& objects = application.objects;
  const auto at = std::find(objects.begin(), objects.end(), object);
  return at == objects.end() ? kNone : static_cast<WorkloadId>(at - objects.begin());
}

int SpeedOfNode(const Application& application, const std::vector<std::string>& types,
                const kube::Node& node) {
  for (KindId k = 0; k < application.catalog->kind_count(); ++k) {
    if (!application.kind_nodes[k].Matches(node.labels)) continue;
    return static_cast<int>(
        std::find(types.begin(), types.end(), application.catalog->kinds[k].cpu_type) -
        types.begin());
  }
  return kNone;
}

}  // namespace

TracePlaces::TracePlaces(std::shared_ptr<const Application> application, const kube::Mirror& mirror)
    : application_(std::move(application)) {
  AddNames();
  const std::vector<std::string> types = CpuTypes(*application_->catalog);
  for (const auto& [key, node] : mirror.nodes.objects())
    nodes_.emplace(key.name, SpeedOfNode(*application_, types, node));
  AddPods(mirror);
}

void TracePlaces::AddNames() {
  for (WorkloadId w = 0; w < application_->catalog->workload_count(); ++w) {
    const WorkloadObject& object = application_->objects[w];
    AddName(application_->catalog->workloads[w].name, w);
    if (object.is_external()) continue;
    namespaces_.insert(object.object_namespace);
    AddName(object.name, w);
    AddName(object.name + "." + object.object_namespace, w);
    AddName(object.object_namespace + "/" + object.name, w);
  }
  for (const std::string& name : ambiguous_) services_.erase(name);
}

void TracePlaces::AddName(const std::string& name, WorkloadId workload) {
  const auto [at, is_new] = services_.emplace(name, workload);
  if (!is_new && at->second != workload) ambiguous_.insert(name);
}

// Where all pods of a workload run on nodes of one speed, its spans need not say which.
void TracePlaces::AddPods(const kube::Mirror& mirror) {
  std::vector<std::set<int>> seen(application_->objects.size());
  for (const auto& [key, pod] : mirror.pods.objects()) {
    if (!namespaces_.contains(key.object_namespace)) continue;
    const WorkloadId workload = WorkloadOf(*application_, mirror, pod);
    pods_.emplace(std::pair(key.object_namespace, key.name), PodPlace{workload, pod.node});
    if (workload != kNone && pod.counts()) seen[workload].insert(SpeedOf(pod.node));
  }
  for (const std::set<int>& speeds : seen)
    speeds_.push_back(speeds.size() == 1 ? *speeds.begin() : kNone);
}

int TracePlaces::SpeedOf(const std::string& node) const {
  const auto at = nodes_.find(node);
  return at == nodes_.end() ? kNone : at->second;
}

const TracePlaces::PodPlace* TracePlaces::PodOf(const SpanSource& source) const {
  if (source.pod.empty()) return nullptr;
  const auto in = [&](const std::string& space) {
    const auto at = pods_.find({space, source.pod});
    return at == pods_.end() ? nullptr : &at->second;
  };
  if (!source.object_namespace.empty()) return in(source.object_namespace);
  for (const std::string& space : namespaces_) {
    if (const PodPlace* pod = in(space)) return pod;
  }
  return nullptr;
}

// "web-7d4b-bx9k" was of web, unless there is a web-7d4b.
WorkloadId TracePlaces::WorkloadByPodName(const SpanSource& source) const {
  WorkloadId best = kNone;
  size_t longest = 0;
  for (WorkloadId w = 0; w < application_->catalog->workload_count(); ++w) {
    const WorkloadObject& object = application_->objects[w];
    const bool fits =
        !object.is_external() && source.pod.starts_with(object.name + "-") &&
        (source.object_namespace.empty() || source.object_namespace == object.object_namespace);
    if (!fits || object.name.size() <= longest) continue;
    best = w;
    longest = object.name.size();
  }
  return best;
}

SpanPlace TracePlaces::Find(const SpanSource& source) const {
  SpanPlace place;
  std::string node = source.node;
  if (const PodPlace* pod = PodOf(source)) {
    place.workload = pod->workload;
    if (!nodes_.contains(node)) node = pod->node;
  } else if (!source.pod.empty()) {
    place.workload = WorkloadByPodName(source);
  }
  if (place.workload == kNone) {
    const auto at = services_.find(source.service);
    if (at != services_.end()) place.workload = at->second;
  }
  place.speed = SpeedOf(node);
  if (place.workload != kNone) {
    place.is_outside = application_->objects[place.workload].is_external();
    if (place.speed == kNone) place.speed = speeds_[place.workload];
  }
  place.clock = !node.empty()         ? node
                : !source.pod.empty() ? "pod " + source.pod
                                      : "service " + source.service;
  return place;
}

SpanPlaces TracePlaces::Of(const SpanSet& set, std::vector<std::string>* unknown) const {
  SpanPlaces places{.sources = {}, .services = services_};
  std::set<std::string> names;
  for (const SpanSource& source : set.sources) {
    places.sources.push_back(Find(source));
    if (places.sources.back().workload == kNone) names.insert(source.service);
  }
  unknown->assign(names.begin(), names.end());
  return places;
}

std::vector<std::string> CpuTypes(const Catalog& catalog) {
  std::vector<std::string> types;
  for (const NodeKind& kind : catalog.kinds) {
    if (std::find(types.begin(), types.end(), kind.cpu_type) == types.end())
      types.push_back(kind.cpu_type);
  }
  return types;
}

}  // namespace rudderfish
