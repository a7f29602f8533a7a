// SPDX-License-Identifier: Apache-2.0
#include "run/routing_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/suggest.h"
#include "base/units.h"
#include "net/listen_address.h"
#include "policy/registry.h"
#include "run/placement_config.h"

namespace rudderfish {
namespace {

constexpr double kIntervalMsMin = 1000;
constexpr double kIntervalMsMax = 3'600'000;
constexpr int kMostRoutes = 100;
constexpr int kRuleMax = 15;
constexpr std::string_view kHaproxyKey = "haproxy";
constexpr std::string_view kXdsKey = "xds";
constexpr size_t kMostEndpoints = 1000;
constexpr std::string_view kWeightsFile = "rudderfish-xds.json";
constexpr size_t kRouteNameMax = 100;

Result<void> ReadTime(YamlMap* map, std::string_view key, std::chrono::nanoseconds* time) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return {};
  TRY_ASSIGN(const std::string text, node->AsString());
  const Result<double> ms = ParseDurationMs(text);
  if (!ms) return node->Refuse(ms.error().message);
  if (*ms < kIntervalMsMin || *ms > kIntervalMsMax) return node->Expected("from 1s to 1h");
  *time = std::chrono::nanoseconds(static_cast<int64_t>(*ms * 1e6));
  return {};
}

// A run folder or a checkpoint is beside the file.
Result<std::string> RoutingPolicyOf(const YamlNode& node, const std::filesystem::path& folder) {
  TRY_ASSIGN(const std::string text, node.AsString());
  Result<PolicySpec> named = ParsePolicySpec(text);
  if (!named) return node.Refuse(named.error().message);
  const PolicySpec spec = WithinFolder(*std::move(named), folder);
  if (const Result<void> known = CheckPolicy(spec, TaskKind::kRoute); !known)
    return node.Refuse(known.error().message);
  return spec.text();
}

// A percentage as a share.
Result<void> ReadPercent(YamlMap* map, std::string_view key, double low, double* share) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return {};
  TRY_ASSIGN(const double percent, node->AsDouble(low, 100));
  *share = percent / 100;
  return {};
}

Result<void> ReadRouteBudgets(const YamlNode& node, RoutingConfig* routing) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY(ReadPercent(&map, "step", 0.1, &routing->limits.step));
  TRY(ReadPercent(&map, "floor", 0, &routing->limits.floor));
  TRY(ReadPercent(&map, "gain", 0, &routing->gain_min));
  std::chrono::nanoseconds age = routing->limits.signals_max_age;
  TRY(ReadTime(&map, "signals_max_age", &age));
  routing->limits.signals_max_age = age;
  return map.Finish();
}

Result<DataPath> ObjectPathAt(std::string_view key, const YamlNode& node, YamlMap* map) {
  TRY_ASSIGN(const std::string text, node.AsString());
  std::optional<int> rule;
  if (const auto at = map->Optional("rule")) {
    TRY_ASSIGN(const int64_t number, at->AsInt(0, kRuleMax));
    rule = static_cast<int>(number);
  }
  std::vector<std::string> may_change;
  TRY_ASSIGN(const std::vector<YamlNode> managers, map->OptionalList("may_change"));
  for (const YamlNode& one : managers) {
    TRY_ASSIGN(std::string manager, one.AsString());
    may_change.push_back(std::move(manager));
  }
  Result<DataPath> path = ObjectPath(key, text, rule, std::move(may_change));
  if (!path) return node.Refuse(path.error().message);
  return path;
}

Result<HaproxyChoice> HaproxyOf(const YamlNode& node, const std::filesystem::path& folder,
                                YamlMap* map) {
  TRY_ASSIGN(const std::string text, node.AsString());
  Result<StreamPeer> peer = ParseStreamPeer(text);
  if (!peer) return node.Refuse(peer.error().message);
  if (peer->path.is_relative() && !peer->path.empty()) peer->path = folder / peer->path;
  TRY_ASSIGN(const YamlNode backend, map->Required("backend"));
  TRY_ASSIGN(const std::string name, backend.AsString());
  if (const Result<void> is_name = CheckHaproxyName(name); !is_name)
    return backend.Refuse(is_name.error().message);
  return HaproxyChoice{.socket = *std::move(peer), .backend = name};
}

// "xds: web, endpoints: {eu: [...], us: [...]}"
Result<XdsChoice> XdsOf(const YamlNode& node, YamlMap* map) {
  XdsChoice choice;
  TRY_ASSIGN(choice.service, node.AsString());
  if (choice.service.empty() || choice.service.size() > kRouteNameMax)
    return node.Expected(fmt::format("1 to {} letters", kRouteNameMax));
  TRY_ASSIGN(const YamlNode endpoints, map->Required("endpoints"));
  TRY_ASSIGN(YamlMap regions, endpoints.AsMap());
  for (const auto& [region, list] : regions.Entries()) {
    TRY_ASSIGN(const std::vector<YamlNode> addresses, list.AsList());
    if (addresses.empty() || addresses.size() > kMostEndpoints)
      return list.Expected(fmt::format("1 to {} endpoints", kMostEndpoints));
    XdsRegionChoice one{.region = region, .endpoints = {}};
    for (const YamlNode& address : addresses) {
      TRY_ASSIGN(const std::string text, address.AsString());
      const Result<SocketAddress> endpoint = ParseXdsEndpoint(text);
      if (!endpoint) return address.Refuse(endpoint.error().message);
      one.endpoints.push_back(*endpoint);
    }
    choice.regions.push_back(std::move(one));
  }
  TRY(regions.Finish());
  if (choice.regions.empty()) return endpoints.Expected("a list of endpoints for each region");
  return choice;
}

// The one key that names the data path.
Result<DataPath> PathAt(const YamlNode& node, const std::filesystem::path& folder, YamlMap* map) {
  std::string_view named;
  std::optional<YamlNode> at;
  std::vector<std::string_view> keys(kObjectPaths.begin(), kObjectPaths.end());
  keys.push_back(kHaproxyKey);
  keys.push_back(kXdsKey);
  for (const std::string_view key : keys) {
    auto found = map->Optional(key);
    if (!found) continue;
    if (at) return node.Refuse(fmt::format("`{}` and `{}`: name one data path", named, key));
    at = std::move(found);
    named = key;
  }
  if (!at) return node.Refuse(fmt::format("name one data path: `{}`", fmt::join(keys, "`, `")));
  if (named == kXdsKey) {
    TRY_ASSIGN(XdsChoice choice, XdsOf(*at, map));
    return DataPath(std::move(choice));
  }
  if (named != kHaproxyKey) return ObjectPathAt(named, *at, map);
  TRY_ASSIGN(HaproxyChoice choice, HaproxyOf(*at, folder, map));
  return DataPath(std::move(choice));
}

Result<RouteConfig> RouteOf(const YamlNode& node, const std::filesystem::path& folder) {
  RouteConfig route{.name = {}, .origin = {}, .path = {}, .backends = {}, .node = node};
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const YamlNode name, map.Required("name"));
  TRY_ASSIGN(route.name, name.AsString());
  if (route.name.empty() || route.name.size() > kRouteNameMax)
    return name.Expected(fmt::format("1 to {} letters", kRouteNameMax));
  TRY_ASSIGN(route.service, map.OptionalString("service", ""));
  TRY_ASSIGN(route.origin, map.OptionalString("origin", ""));
  TRY_ASSIGN(route.path, PathAt(node, folder, &map));
  if (const auto cluster = map.Optional("cluster")) {
    if (!ObjectOf(route.path)) return cluster->Refuse("this data path is in no cluster");
    TRY_ASSIGN(route.cluster, ReadOtherCluster(*cluster, folder));
  }
  const auto* xds = std::get_if<XdsChoice>(&route.path);
  for (const XdsRegionChoice& one : xds == nullptr ? std::vector<XdsRegionChoice>() : xds->regions)
    route.backends.push_back({.region = one.region, .backend = one.region});
  const auto backends = xds == nullptr ? map.Optional("backends") : std::nullopt;
  if (backends) {
    TRY_ASSIGN(YamlMap named, backends->AsMap());
    for (const auto& [region, value] : named.Entries()) {
      TRY_ASSIGN(std::string backend, value.AsString());
      route.backends.push_back({.region = region, .backend = std::move(backend)});
    }
    TRY(named.Finish());
  }
  TRY(map.Finish());
  return route;
}

Result<XdsConfig> ReadXds(const YamlNode& node, const std::filesystem::path& folder) {
  XdsConfig xds;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const YamlNode listen, map.Required("listen"));
  TRY_ASSIGN(xds.listen.address, listen.AsString());
  const Result<ListenAddress> address = ParseListenAddress(xds.listen.address);
  if (!address) return listen.Refuse(address.error().message);
  if (address->is_unix()) return listen.Expected("HOST:PORT");
  TRY_ASSIGN(const std::string kept, map.OptionalString("weights", kWeightsFile));
  xds.kept = folder / kept;
  const std::pair<std::string_view, std::filesystem::path*> files[] = {
      {"certificate", &xds.listen.certificate},
      {"key", &xds.listen.key},
      {"client_ca", &xds.listen.client_ca}};
  for (const auto& [key, path] : files) {
    TRY_ASSIGN(const std::string text, map.OptionalString(key, ""));
    if (!text.empty()) *path = folder / text;
  }
  TRY(map.Finish());
  const XdsListen& tls = xds.listen;
  if (tls.certificate.empty() != tls.key.empty())
    return node.Refuse("`certificate` and `key` belong together");
  if (tls.certificate.empty() && !tls.client_ca.empty())
    return node.Refuse("`client_ca` needs `certificate` and `key`");
  return xds;
}

// A route of xDS has a server, and a service of its own.
Result<void> CheckXds(const RoutingConfig& config) {
  std::vector<std::string> services;
  for (const RouteConfig& route : config.routes) {
    const auto* xds = std::get_if<XdsChoice>(&route.path);
    if (xds == nullptr) continue;
    if (!config.xds)
      return route.node.Refuse("`decisions.routing.xds` is missing: it says where to listen");
    if (std::find(services.begin(), services.end(), xds->service) != services.end())
      return route.node.Refuse(fmt::format("another route is of \"{}\" as well", xds->service));
    services.push_back(xds->service);
  }
  return {};
}

Result<void> ReadRoutes(YamlMap* map, const std::filesystem::path& folder,
                        std::vector<RouteConfig>* routes) {
  TRY_ASSIGN(const YamlNode list, map->Required("routes"));
  TRY_ASSIGN(const std::vector<YamlNode> nodes, list.AsList());
  if (nodes.empty() || nodes.size() > kMostRoutes)
    return list.Expected(fmt::format("1 to {} routes", kMostRoutes));
  for (const YamlNode& node : nodes) {
    TRY_ASSIGN(RouteConfig route, RouteOf(node, folder));
    const auto same = std::find_if(routes->begin(), routes->end(),
                                   [&](const auto& one) { return one.name == route.name; });
    if (same != routes->end())
      return node.Refuse(fmt::format("another route is called \"{}\" as well", route.name));
    routes->push_back(std::move(route));
  }
  return {};
}

}  // namespace

bool RoutingConfig::NeedsCluster() const {
  return std::any_of(routes.begin(), routes.end(),
                     [](const RouteConfig& one) { return ObjectOf(one.path) && !one.cluster; }) ||
         std::any_of(capacity.begin(), capacity.end(), [](const CapacityConfig& one) {
           return one.has_pods() && !one.cluster->is_named;
         });
}

std::vector<XdsService> RoutingConfig::XdsServices() const {
  std::vector<XdsService> services;
  for (const RouteConfig& route : routes) {
    if (const auto* choice = std::get_if<XdsChoice>(&route.path))
      services.push_back(ServiceOf(*choice));
  }
  return services;
}

Result<RoutingConfig> ParseRouting(const YamlNode& node, const std::filesystem::path& folder) {
  RoutingConfig routing;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  if (const auto mode = map.Optional("mode")) {
    TRY_ASSIGN(routing.mode, ReadMode(*mode));
  }
  TRY_ASSIGN(routing.scenario_node, map.Required("regions"));
  TRY_ASSIGN(const std::string scenario, routing.scenario_node.AsString());
  if (scenario.empty()) return routing.scenario_node.Expected("a scenario that has `regions`");
  routing.scenario = folder / scenario;
  if (const auto policy = map.Optional("policy")) {
    TRY_ASSIGN(routing.policy, RoutingPolicyOf(*policy, folder));
    routing.policy_node = *policy;
  }
  if (const auto baseline = map.Optional("baseline")) {
    TRY_ASSIGN(routing.baseline, RoutingPolicyOf(*baseline, folder));
    routing.baseline_node = *baseline;
  }
  TRY(ReadTime(&map, "interval", &routing.interval));
  TRY(ReadTime(&map, "settle", &routing.settle));
  if (const auto canary = map.Optional("canary")) {
    TRY_ASSIGN(routing.canary, ReadCanary(*canary));
  }
  if (const auto budgets = map.Optional("budgets")) TRY(ReadRouteBudgets(*budgets, &routing));
  if (const auto xds = map.Optional("xds")) {
    TRY_ASSIGN(routing.xds, ReadXds(*xds, folder));
  }
  if (const auto capacity = map.Optional("capacity")) {
    TRY_ASSIGN(routing.capacity, ParseCapacity(*capacity, folder));
  }
  TRY(ReadRoutes(&map, folder, &routing.routes));
  TRY(CheckXds(routing));
  TRY(map.Finish());
  return routing;
}

}  // namespace rudderfish
