// SPDX-License-Identifier: Apache-2.0
#include "run/routing_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/suggest.h"
#include "base/units.h"
#include "policy/registry.h"
#include "scenario/scenario.h"

namespace rudderfish {
namespace {

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
  // `service` is empty for the only one; a node of `network` is `part` of one.
  const auto bound = [&](const std::shared_ptr<const RegionNetwork>& network,
                         const std::string& service, int part) {
    auto copy = std::make_shared<RegionNetwork>(*network);
    for (Region& region : copy->regions) {
      for (const CapacityConfig& one : capacity) {
        if (one.region != region.name || one.service != (one.has_pods() ? service : "")) continue;
        const int most =
            one.has_pods() ? one.most / network->service.pods_per_node : one.most * part;
        region.nodes_max = std::clamp(most, 1, region.nodes_max);
      }
    }
    return copy;
  };
  auto bounded = std::make_shared<RegionWorld>(*world);
  bounded->network = bound(world->network, "", 1);
  for (SharingService& one : bounded->services)
    one.pods = bound(one.pods, one.name, one.own.pods_per_node);
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
  for (const CapacityConfig& one : plan.config.capacity) {
    const bool is_named = std::find(names.begin(), names.end(), one.service) != names.end();
    if (!one.has_pods() || (names.empty() ? one.service.empty() : is_named)) continue;
    return one.node.Refuse(names.empty() ? fmt::format("`{}/{}`: {} has no `services`", one.region,
                                                       one.service, plan.config.scenario.string())
                                         : fmt::format("name a service as well, such as `{}/{}`",
                                                       one.region, names[0]));
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
  for (RouteConfig& route : plan.config.routes) {
    if (route.cluster) TRY(FindOtherCluster(route.node, &*route.cluster));
  }
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
    line("capacity", fmt::format("{}{}: {} to {} of {}; at most {} more or fewer at a decision{}",
                                 one.region, one.service.empty() ? "" : "/" + one.service,
                                 one.least, one.Unit(one.most), one.Target(), one.step,
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
