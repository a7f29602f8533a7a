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
#include "scenario/scenario.h"

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

// Nothing would say which part of an origin's requests to a service comes by which of two routes.
Result<void> CheckOrigins(const RoutingConfig& config) {
  for (size_t i = 0; i < config.routes.size(); ++i) {
    for (size_t before = 0; before < i; ++before) {
      const RouteConfig &one = config.routes[i], &other = config.routes[before];
      if (one.service != other.service) continue;
      if (one.origin != other.origin && !one.origin.empty() && !other.origin.empty()) continue;
      return one.node.Refuse(fmt::format(
          "route {} brings requests of {} as well; name one route for each origin, or one for all",
          other.name, one.origin.empty() ? "all regions" : one.origin));
    }
  }
  return {};
}

// More VMs than allowed are no place for requests to go. Regions that there are not are refused
// later.
std::shared_ptr<const RegionWorld> WithQuotas(const std::shared_ptr<const RegionWorld>& world,
                                              const std::vector<CapacityConfig>& capacity) {
  if (capacity.empty()) return world;
  const auto bound = [&](const std::shared_ptr<const RegionNetwork>& network, int pods_of_node) {
    auto copy = std::make_shared<RegionNetwork>(*network);
    for (Region& region : copy->regions) {
      for (const CapacityConfig& one : capacity) {
        if (one.region == region.name)
          region.nodes_max = std::min(region.nodes_max, one.vms_max * pods_of_node);
      }
    }
    return copy;
  };
  auto bounded = std::make_shared<RegionWorld>(*world);
  bounded->network = bound(world->network, 1);
  for (SharingService& one : bounded->services) one.pods = bound(one.pods, one.own.pods_per_node);
  return bounded;
}

// Where several services share nodes, each route is of one, and each service has a route: what is
// not decided on would be missing in what regions are to have.
Result<void> CheckServices(const RoutingPlan& plan) {
  std::vector<std::string_view> names;
  for (const SharingService& one : plan.world->services) names.push_back(one.name);
  for (const RouteConfig& route : plan.config.routes) {
    if (names.empty() && !route.service.empty()) {
      return route.node.Refuse(
          fmt::format("`service`: {} has no `services`", plan.config.scenario.string()));
    }
    if (!names.empty() && route.service.empty())
      return route.node.Refuse(fmt::format("`service` is missing: {}", fmt::join(names, ", ")));
    if (!names.empty() && std::find(names.begin(), names.end(), route.service) == names.end()) {
      return route.node.Refuse(fmt::format("`{}`: no service of {} is called so{}", route.service,
                                           plan.config.scenario.string(),
                                           DidYouMean(route.service, names)));
    }
    bool is_open = false;
    for (int to = 0; to < plan.world->network->size(); ++to) is_open |= plan.Allows(route, to);
    if (!is_open) {
      return route.node.Refuse(
          "no region may serve requests of all regions (`stays`); name a route for each origin");
    }
  }
  for (const std::string_view name : names) {
    const auto& routes = plan.config.routes;
    if (std::any_of(routes.begin(), routes.end(),
                    [&](const RouteConfig& one) { return one.service == name; }))
      continue;
    return plan.config.scenario_node.Refuse(fmt::format("service {} has no route", name));
  }
  return {};
}

// Each route names regions that there are.
Result<void> CheckRegions(const RoutingPlan& plan) {
  std::vector<std::string_view> names;
  for (const Region& region : plan.world->network->regions) names.push_back(region.name);
  const auto check = [&](const RouteConfig& route, const std::string& name) -> Result<void> {
    if (plan.RegionOf(name) >= 0) return {};
    return route.node.Refuse(fmt::format("`{}`: no region of {} is called so{}", name,
                                         plan.config.scenario.string(), DidYouMean(name, names)));
  };
  for (const RouteConfig& route : plan.config.routes) {
    if (!route.origin.empty()) TRY(check(route, route.origin));
    for (const RegionBackend& one : route.backends) TRY(check(route, one.region));
  }
  for (const CapacityConfig& one : plan.config.capacity) {
    if (plan.RegionOf(one.region) >= 0) continue;
    return one.node.Refuse(fmt::format("`{}`: no region of {} is called so{}", one.region,
                                       plan.config.scenario.string(),
                                       DidYouMean(one.region, names)));
  }
  const double floors = plan.config.limits.floor * static_cast<double>(names.size());
  if (floors <= 1) return {};
  return Invalid("`budgets.floor`: {:g} % for each of {} regions is more than all requests",
                 100 * plan.config.limits.floor, names.size());
}

Result<std::shared_ptr<const RoutingPolicy>> RoutingPolicyNamed(const std::string& name,
                                                                const YamlNode& at) {
  TRY_ASSIGN(const PolicySpec spec, ParsePolicySpec(name));
  Result<std::unique_ptr<RoutingPolicy>> policy = MakeRoutingPolicy(spec);
  if (policy && (*policy)->foresees()) {
    policy = Invalid("{} knows the demand to come, and can run in the simulator only", spec.name);
  }
  if (policy) return std::shared_ptr<const RoutingPolicy>(*std::move(policy));
  if (at.IsNull()) return tl::unexpected(std::move(policy).error());
  return at.Refuse(policy.error().message);
}

}  // namespace

bool RoutingConfig::NeedsCluster() const {
  return std::any_of(routes.begin(), routes.end(),
                     [](const RouteConfig& one) { return ObjectOf(one.path).has_value(); });
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

int RoutingPlan::RegionOf(std::string_view name) const {
  const auto& regions = world->network->regions;
  const auto found = std::find_if(regions.begin(), regions.end(),
                                  [&](const Region& one) { return one.name == name; });
  return found == regions.end() ? -1 : static_cast<int>(found - regions.begin());
}

int RoutingPlan::ServiceOf(const RouteConfig& route) const {
  for (int s = 0; s < services(); ++s) {
    if (ServiceName(s) == route.service) return s;
  }
  return 0;
}

std::string RoutingPlan::ServiceName(int service) const {
  return world->services.empty() ? "" : world->services[static_cast<size_t>(service)].name;
}

int RoutingPlan::PodsOfNode(int service) const {
  if (world->services.empty()) return 1;
  return world->services[static_cast<size_t>(service)].own.pods_per_node;
}

bool RoutingPlan::Allows(const RouteConfig& route, int region) const {
  const RegionNetwork& network = laws[static_cast<size_t>(ServiceOf(route))]->network();
  const int origin = route.origin.empty() ? -1 : RegionOf(route.origin);
  for (int from = 0; from < network.size(); ++from) {
    if ((origin < 0 || from == origin) && !network.Allows(from, region)) return false;
  }
  return true;
}

Result<RoutingPlan> RoutingPlan::Make(const RoutingConfig& config) {
  RoutingPlan plan{.config = config};
  TRY_ASSIGN(const Scenario scenario, LoadScenario(config.scenario));
  if (scenario.regions == nullptr) {
    return config.scenario_node.Refuse(
        fmt::format("{}: has no `regions`; `rudderfish scenario schema` says what belongs there",
                    config.scenario.string()));
  }
  plan.world = WithQuotas(scenario.regions, config.capacity);
  plan.laws = LawsOf(*plan.world);
  TRY(CheckRegions(plan));
  TRY(CheckServices(plan));
  TRY(ReadClouds(&plan.config.capacity));
  TRY(CheckOrigins(config));
  TRY_ASSIGN(plan.policy, RoutingPolicyNamed(config.policy, config.policy_node));
  TRY_ASSIGN(plan.policy_name, NameOfPolicy(config.policy));
  if (!config.baseline.empty()) {
    TRY_ASSIGN(plan.baseline, RoutingPolicyNamed(config.baseline, config.baseline_node));
    TRY_ASSIGN(plan.baseline_name, NameOfPolicy(config.baseline));
  }
  const RoutingObjective& objective = plan.world->network->objective;
  plan.objective = fmt::format("cost, carbon {:g} $/kg, late {:g}, wait {:g}/s, queue {:g}/s",
                               objective.carbon_per_kg, objective.late, objective.wait_per_s,
                               objective.queue_per_s);
  return plan;
}

std::string RoutingPlan::Describe() const {
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("{:<14}{}\n", what, value);
  };
  std::vector<std::string_view> names;
  for (const Region& region : world->network->regions) names.push_back(region.name);
  line("regions", fmt::format("{} of {}", fmt::join(names, ", "), config.scenario.string()));
  line("routing",
       fmt::format("{}; {} decides every {}{}", ModeName(config.mode), config.policy,
                   FormatDuration(config.interval),
                   config.baseline.empty() ? "" : "; baseline for comparison: " + config.baseline));
  for (const RouteConfig& route : config.routes) {
    line("route", fmt::format("{}: {}, {}{}", route.name, DataPathText(route.path),
                              route.service.empty() ? "" : "service " + route.service + ", ",
                              route.origin.empty() ? "requests of all regions"
                                                   : fmt::format("requests of {}", route.origin)));
  }
  if (config.xds) {
    line("xds", fmt::format("served on {}, {}; weights are kept in {}", config.xds->listen.address,
                            config.xds->listen.certificate.empty() ? "without TLS"
                            : config.xds->listen.client_ca.empty() ? "TLS"
                                                                   : "TLS with client certificates",
                            config.xds->kept.string()));
  }
  for (const CapacityConfig& one : config.capacity) {
    line("capacity",
         fmt::format("{}: {} to {} VMs of fleet {}, cloud {}; at most {} more or fewer "
                     "at a decision{}",
                     one.region, one.vms_min, one.vms_max, one.fleet, one.cloud_name, one.step,
                     config.mode < Mode::kEnforce ? "; set in enforce only" : ""));
  }
  line("limits", fmt::format("{:g} points a change, {:g} % for probing, changes that gain {:g} %, "
                             "nothing on signals older than {}",
                             100 * config.limits.step, 100 * config.limits.floor,
                             100 * config.gain_min, FormatDuration(config.limits.signals_max_age)));
  line("touches",
       config.mode < Mode::kCanary
           ? fmt::format("nothing: in {} splits are recorded, not set", ModeName(config.mode))
       : config.mode == Mode::kCanary
           ? fmt::format("{:g} % of the routes, at least one", 100 * config.canary)
           : "all routes");
  return text;
}

}  // namespace rudderfish
