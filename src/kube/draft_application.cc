// SPDX-License-Identifier: Apache-2.0
#include "kube/draft_application.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace rudderfish::kube {
namespace {

constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kInstanceType = "node.kubernetes.io/instance-type";
constexpr const char* kOutside = "outside";
constexpr size_t kMostLayers = 31;  // And the one outside.
constexpr size_t kMostKinds = 63;

std::string LabelOr(const Node& node, const char* key, const char* otherwise) {
  const std::string* value = FindLabel(node.labels, key);
  return value == nullptr || value->empty() ? otherwise : *value;
}

// Nodes whose label has the value, or that have no such label.
LabelRequirement Requirement(const char* key, const std::string& value, const char* otherwise) {
  using Operator = LabelRequirement::Operator;
  if (value == otherwise) return {.key = key, .op = Operator::kDoesNotExist};
  return {.key = key, .op = Operator::kIn, .values = {value}};
}

Result<void> DraftKinds(const Mirror& mirror, Catalog* catalog, Application* application) {
  constexpr const char* kNoZone = "cluster";
  constexpr const char* kNoType = "node";
  std::map<std::string, LayerId> layers;
  std::set<std::pair<std::string, std::string>> kinds;  // Zone and type.
  for (const auto& [key, node] : mirror.nodes.objects()) {
    kinds.emplace(LabelOr(node, kZone, kNoZone), LabelOr(node, kInstanceType, kNoType));
    layers[LabelOr(node, kZone, kNoZone)] = 0;
  }
  if (layers.size() > kMostLayers || kinds.size() > kMostKinds) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{} zones with {} kinds of node are more than a scenario can have ({} and {}); "
                "describe an application with fewer",
                layers.size(), kinds.size(), kMostLayers, kMostKinds);
  }
  for (auto& [name, layer] : layers) {
    layer = catalog->layer_count();
    catalog->layers.push_back({name});
  }
  for (const auto& [zone, type] : kinds) {
    catalog->kinds.push_back({.name = layers.size() == 1 ? type : fmt::format("{}-{}", zone, type),
                              .layer = layers[zone],
                              .cpu_type = type,
                              .bandwidth_mbytes_per_s = kDraftBandwidthMbytesPerS});
    application->kind_nodes.push_back(
        {{Requirement(kZone, zone, kNoZone), Requirement(kInstanceType, type, kNoType)}});
  }
  catalog->layers.push_back({kOutside, false});
  catalog->kinds.push_back({.name = kOutside,
                            .layer = catalog->layer_count() - 1,
                            .cpu_type = kOutside,
                            .bandwidth_mbytes_per_s = kDraftBandwidthMbytesPerS});
  application->kind_nodes.push_back({{{.key = kOutside, .op = LabelRequirement::Operator::kIn}}});
  application->kind_costs.resize(catalog->kinds.size());
  return {};
}

void DraftWorkloads(const Mirror& mirror, const std::set<std::string>& namespaces, Catalog* catalog,
                    Application* application) {
  std::set<std::tuple<std::string, std::string, std::string>> found;  // Namespace, name, kind.
  std::set<std::string> places;
  for (const auto& [key, pod] : mirror.pods.objects()) {
    const std::string& place = key.object_namespace;
    const bool chosen =
        namespaces.empty() ? !place.starts_with("kube-") : namespaces.contains(place);
    const ObjectRef top = mirror.WorkloadOf(pod);
    if (!chosen || !pod.counts() || top.kind.empty()) continue;
    if (mirror.nodes.Find({"", pod.node}) == nullptr) continue;
    found.emplace(place, top.name, top.kind);
    places.insert(place);
  }
  std::set<std::string> names{kOutside};
  for (const auto& [place, name, kind] : found) {
    std::string text = places.size() == 1 ? name : fmt::format("{}/{}", place, name);
    if (!names.insert(text).second) text = fmt::format("{}/{}/{}", place, kind, name);
    catalog->workloads.push_back({.name = std::move(text)});
    application->objects.push_back({kind, place, name});
    application->external_layers.push_back(kNone);
  }
}

}  // namespace

Result<Application> DraftApplication(const Mirror& mirror,
                                     const std::set<std::string>& namespaces) {
  Application application;
  application.name = "cluster";
  Catalog catalog;
  TRY(DraftKinds(mirror, &catalog, &application));
  DraftWorkloads(mirror, namespaces, &catalog, &application);
  if (catalog.workloads.empty()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "no running pods owned by a controller in the selected namespaces");
  }
  CallGraph calls;
  calls.name = "no-calls";
  calls.calls.push_back({.workload = catalog.workload_count()});
  calls.endpoints.push_back(
      {.name = "none", .root = 0, .end = 1, .rate_per_second = 1, .qos_ms = 1});
  calls.kind_count = catalog.kind_count();
  calls.execution_ms.assign(catalog.kinds.size(), 0.0);
  catalog.workloads.push_back({.name = kOutside, .movable = false});
  application.objects.emplace_back();
  application.external_layers.push_back(catalog.layer_count() - 1);
  const int layers = catalog.layer_count();
  application.network = {layers, std::vector<double>(static_cast<size_t>(layers) * layers, 0.0)};
  application.catalog = std::make_shared<const Catalog>(std::move(catalog));
  application.calls = std::make_shared<const CallGraph>(std::move(calls));
  return application;
}

}  // namespace rudderfish::kube
