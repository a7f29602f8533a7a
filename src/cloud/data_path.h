// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "cloud/haproxy.h"
#include "cloud/http_route.h"
#include "cloud/placement_scores.h"
#include "cloud/split_objects.h"
#include "cloud/xds_enactor.h"

// Which data path carries out a split, as options and configurations name it.

namespace rudderfish {

using DataPath = std::variant<HttpRouteChoice, SplitObjectChoice, PlacementScoresChoice,
                              HaproxyChoice, XdsChoice>;

// Options, and keys of a configuration, that name an object NAMESPACE/NAME of an API server; the
// last one objects of one name in all namespaces, NAME or NAME/SCORE.
inline constexpr std::array<std::string_view, 2 + kSplitObjectKinds> kObjectPaths = {
    "httproute",   "virtualservice",    "destinationrule",
    "dnsendpoint", "propagationpolicy", "placementscores"};

// `name` is one of kObjectPaths. kInvalidArgument: no such name, or a rule where there are none.
Result<DataPath> ObjectPath(std::string_view name, std::string_view object, std::optional<int> rule,
                            std::vector<std::string> may_change);

// The object, if it is one of an API server, and where that is: group and plural.
struct PathObject {
  const ObjectChoice* object = nullptr;
  std::string_view group, version, kind, plural;
  bool shows_health = true;     // By endpoints of Services.
  bool is_of_clusters = false;  // One in the namespace of each cluster of Open Cluster Management.
};
std::optional<PathObject> ObjectOf(const DataPath& path);

std::string DataPathText(const DataPath& path);  // "httproute shop/web".

// REQUIRES: `client` is not null where ObjectOf is not; `xds` is not null where the path is an
// XdsChoice, and has its service; both outlive the enactor.
std::unique_ptr<SplitEnactor> MakeEnactor(const DataPath& path, kube::ApiClient* client,
                                          XdsServer* xds);

}  // namespace rudderfish
