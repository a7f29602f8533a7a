// SPDX-License-Identifier: Apache-2.0
#include "cloud/data_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rudderfish {
namespace {

constexpr std::string_view kKinds[kSplitObjectKinds] = {"VirtualService", "DestinationRule",
                                                        "DNSEndpoint", "PropagationPolicy"};

bool HasRules(SplitObjectKind kind) {
  return kind == SplitObjectKind::kVirtualService || kind == SplitObjectKind::kDestinationRule;
}

}  // namespace

Result<DataPath> ObjectPath(std::string_view name, std::string_view object, std::optional<int> rule,
                            std::vector<std::string> may_change) {
  if (name == kObjectPaths.back()) {
    if (rule) return Invalid("{} have no rules to choose one of", name);
    if (!may_change.empty())
      return Invalid("{}: field managers are not asked for there: leave them out", name);
    TRY_ASSIGN(PlacementScoresChoice scores, ParsePlacementScores(object));
    return DataPath(std::move(scores));
  }
  TRY_ASSIGN(ObjectChoice choice, ParseObjectChoice(object));
  choice.may_change = std::move(may_change);
  if (name == kObjectPaths[0]) {
    HttpRouteChoice route;
    static_cast<ObjectChoice&>(route) = std::move(choice);
    route.rule = rule;
    return DataPath(std::move(route));
  }
  SplitObjectChoice split;
  static_cast<ObjectChoice&>(split) = std::move(choice);
  const auto at = std::find(kObjectPaths.begin(), kObjectPaths.end(), name);
  split.kind = static_cast<SplitObjectKind>(at - kObjectPaths.begin() - 1);
  if (rule && !HasRules(split.kind)) return Invalid("a {} has no rules to choose one of", name);
  split.rule = rule;
  return DataPath(std::move(split));
}

std::optional<PathObject> ObjectOf(const DataPath& path) {
  if (const auto* route = std::get_if<HttpRouteChoice>(&path)) {
    return PathObject{route, "gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes", true};
  }
  if (const auto* scores = std::get_if<PlacementScoresChoice>(&path)) {
    return PathObject{scores,
                      "cluster.open-cluster-management.io",
                      "v1alpha1",
                      "AddOnPlacementScore",
                      "addonplacementscores",
                      false,
                      true};
  }
  const auto* split = std::get_if<SplitObjectChoice>(&path);
  if (split == nullptr) return std::nullopt;
  const SplitObjectRow& row = RowOf(split->kind);
  return PathObject{split,       row.group,
                    row.version, kKinds[static_cast<size_t>(split->kind)],
                    row.plural,  split->kind == SplitObjectKind::kVirtualService};
}

std::string DataPathText(const DataPath& path) {
  if (const auto* haproxy = std::get_if<HaproxyChoice>(&path))
    return fmt::format("haproxy {} backend {}", haproxy->socket.Text(), haproxy->backend);
  if (const auto* xds = std::get_if<XdsChoice>(&path)) return "xds " + xds->service;
  if (const auto* scores = std::get_if<PlacementScoresChoice>(&path))
    return fmt::format("{} {}/{}", kObjectPaths.back(), scores->name, scores->score);
  const auto* split = std::get_if<SplitObjectChoice>(&path);
  const ObjectChoice& object = *ObjectOf(path)->object;
  return fmt::format("{} {}/{}", split == nullptr ? kObjectPaths[0] : RowOf(split->kind).name,
                     object.name_space, object.name);
}

std::unique_ptr<SplitEnactor> MakeEnactor(const DataPath& path, kube::ApiClient* client,
                                          XdsServer* xds) {
  if (const auto* choice = std::get_if<XdsChoice>(&path))
    return std::make_unique<XdsEnactor>(xds, *choice);
  if (const auto* scores = std::get_if<PlacementScoresChoice>(&path))
    return std::make_unique<PlacementScoresEnactor>(client, *scores);
  if (const auto* haproxy = std::get_if<HaproxyChoice>(&path))
    return std::make_unique<HaproxyEnactor>(*haproxy);
  if (const auto* route = std::get_if<HttpRouteChoice>(&path))
    return std::make_unique<HttpRouteEnactor>(client, *route);
  return std::make_unique<SplitObjectEnactor>(client, std::get<SplitObjectChoice>(path));
}

}  // namespace rudderfish
