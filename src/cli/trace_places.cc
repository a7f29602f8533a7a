// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_places.h"

#include <algorithm>
#include <set>

namespace rudderfish {
namespace {

class PlaceFinder {
 public:
  PlaceFinder(const Application& application, const kube::Mirror& mirror)
      : application_(application), mirror_(mirror), types_(CpuTypes(*application.catalog)) {
    for (WorkloadId w = 0; w < application.catalog->workload_count(); ++w) {
      const WorkloadObject& object = application.objects[w];
      AddName(application.catalog->workloads[w].name, w);
      if (object.is_external()) continue;
      namespaces_.insert(object.object_namespace);
      AddName(object.name, w);
      AddName(object.name + "." + object.object_namespace, w);
      AddName(object.object_namespace + "/" + object.name, w);
    }
    for (const std::string& name : ambiguous_) services_.erase(name);
    FindSpeeds();
  }

  SpanPlace Find(const SpanSource& source) const {
    SpanPlace place;
    std::string node = source.node;
    if (const kube::Pod* pod = PodOf(source)) {
      place.workload = WorkloadOf(*pod);
      if (mirror_.nodes.Find({"", node}) == nullptr) node = pod->node;
    } else if (!source.pod.empty()) {
      place.workload = WorkloadByPodName(source);
    }
    if (place.workload == kNone) {
      const auto at = services_.find(source.service);
      if (at != services_.end()) place.workload = at->second;
    }
    place.speed = SpeedOf(node);
    if (place.workload != kNone) {
      place.is_outside = application_.objects[place.workload].is_external();
      if (place.speed == kNone) place.speed = speeds_[place.workload];
    }
    place.clock = !node.empty()         ? node
                  : !source.pod.empty() ? "pod " + source.pod
                                        : "service " + source.service;
    return place;
  }

  const std::map<std::string, WorkloadId, std::less<>>& services() const { return services_; }

 private:
  void AddName(const std::string& name, WorkloadId workload) {
    const auto [at, is_new] = services_.emplace(name, workload);
    if (!is_new && at->second != workload) ambiguous_.insert(name);
  }

  const kube::Pod* PodOf(const SpanSource& source) const {
    if (source.pod.empty()) return nullptr;
    if (!source.object_namespace.empty())
      return mirror_.pods.Find({source.object_namespace, source.pod});
    for (const std::string& space : namespaces_) {
      if (const kube::Pod* pod = mirror_.pods.Find({space, source.pod})) return pod;
    }
    return nullptr;
  }

  WorkloadId WorkloadOf(const kube::Pod& pod) const {
    const kube::ObjectRef top = mirror_.WorkloadOf(pod);
    const WorkloadObject object{top.kind, pod.meta.key.object_namespace, top.name};
    const auto& objects = application_.objects;
    const auto at = std::find(objects.begin(), objects.end(), object);
    return at == objects.end() ? kNone : static_cast<WorkloadId>(at - objects.begin());
  }

  // "web-7d4b-bx9k" was of web, unless there is a web-7d4b.
  WorkloadId WorkloadByPodName(const SpanSource& source) const {
    WorkloadId best = kNone;
    size_t longest = 0;
    for (WorkloadId w = 0; w < application_.catalog->workload_count(); ++w) {
      const WorkloadObject& object = application_.objects[w];
      const bool fits =
          !object.is_external() && source.pod.starts_with(object.name + "-") &&
          (source.object_namespace.empty() || source.object_namespace == object.object_namespace);
      if (!fits || object.name.size() <= longest) continue;
      best = w;
      longest = object.name.size();
    }
    return best;
  }

  int SpeedOf(const std::string& name) const {
    const kube::Node* node = name.empty() ? nullptr : mirror_.nodes.Find({"", name});
    if (node == nullptr) return kNone;
    for (KindId k = 0; k < application_.catalog->kind_count(); ++k) {
      if (!application_.kind_nodes[k].Matches(node->labels)) continue;
      return static_cast<int>(
          std::find(types_.begin(), types_.end(), application_.catalog->kinds[k].cpu_type) -
          types_.begin());
    }
    return kNone;
  }

  // Where all pods of a workload run on nodes of one speed, its spans need not say which.
  void FindSpeeds() {
    std::vector<std::set<int>> seen(application_.objects.size());
    for (const auto& [key, pod] : mirror_.pods.objects()) {
      const WorkloadId workload = pod.counts() ? WorkloadOf(pod) : kNone;
      if (workload != kNone) seen[workload].insert(SpeedOf(pod.node));
    }
    for (const std::set<int>& speeds : seen)
      speeds_.push_back(speeds.size() == 1 ? *speeds.begin() : kNone);
  }

  const Application& application_;
  const kube::Mirror& mirror_;
  const std::vector<std::string> types_;
  std::map<std::string, WorkloadId, std::less<>> services_;
  std::set<std::string> ambiguous_, namespaces_;
  std::vector<int> speeds_;  // [workload]
};

}  // namespace

std::vector<std::string> CpuTypes(const Catalog& catalog) {
  std::vector<std::string> types;
  for (const NodeKind& kind : catalog.kinds) {
    if (std::find(types.begin(), types.end(), kind.cpu_type) == types.end())
      types.push_back(kind.cpu_type);
  }
  return types;
}

SpanPlaces PlacesOf(const SpanSet& set, const Application& application, const kube::Mirror& mirror,
                    std::vector<std::string>* unknown) {
  const PlaceFinder finder(application, mirror);
  SpanPlaces places{.sources = {}, .services = finder.services()};
  std::set<std::string> names;
  for (const SpanSource& source : set.sources) {
    places.sources.push_back(finder.Find(source));
    if (places.sources.back().workload == kNone) names.insert(source.service);
  }
  unknown->assign(names.begin(), names.end());
  return places;
}

}  // namespace rudderfish
