// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "run/host.h"
#include "run/routing_loop.h"

// What a RoutingLoop tells of itself: health, metrics, its part of `status`, the rights it needs.

namespace rudderfish {

std::string RoutingLoop::ClusterTrouble() const {
  for (size_t i = 0; capacity_ != nullptr && i < capacity_->fleets().size(); ++i) {
    const CapacityDriver::Standing standing = capacity_->Get(i);
    if (!standing.trouble.empty())
      return fmt::format("capacity of {}: {}", capacity_->fleets()[i].region, standing.trouble);
  }
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (!routes_[i].trouble.empty())
      return fmt::format("route {}: {}", config().routes[i].name, routes_[i].trouble);
  }
  return xds_trouble_;
}

void RoutingLoop::Count(ClusterCounts* counts) const {
  if (events_ == nullptr) return;
  counts->events_sent += events_->counts().sent;
  counts->events_lost += events_->counts().dropped + events_->counts().failed;
}

void RoutingLoop::Report() {
  RunMetrics* metrics = host_->metrics();
  metrics->ShowSignals(signals_->Standings());
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    if (route.last) metrics->ShowRoute(*route.last);
    const auto* choice = std::get_if<XdsChoice>(&config().routes[i].path);
    if (choice == nullptr) continue;
    metrics->ShowXdsClients(choice->service, xds_->board().Verdicts(choice->service).size());
    for (const XdsRegionChoice& region : choice->regions) {
      metrics->ShowXdsLoad(choice->service, region.region,
                           xds_->board().LoadOf(choice->service, region.region));
    }
  }
}

OrderedJson RoutingLoop::RegionsStatus(const Service& service, const std::string& name) const {
  OrderedJson list = OrderedJson::array();
  const auto& regions = plan_.world->network->regions;
  const RoutingRound& round = *service.round;
  for (size_t r = 0; r < regions.size(); ++r) {
    const RegionSight& seen = round.view().sights()[r];
    const auto latency = round.view().Latency(static_cast<int>(r));
    const size_t at = r * kNodePrices;
    OrderedJson one{{"name", regions[r].name}, {"service", name}};
    // What could not be looked at is not known, whatever was seen before.
    const bool is_seen = rounds_ > 0 && service.problem.empty();
    const auto show = [&](const char* key, OrderedJson value) {
      one[key] = is_seen ? std::move(value) : OrderedJson(nullptr);
    };
    show("demand_per_s", seen.demand_per_s);
    show("load_per_s", seen.load_per_s);
    show("ready_nodes", seen.ready_nodes());
    show("healthy", seen.reachable);
    show("carbon_g_per_kwh", seen.carbon_g_per_kwh);
    show("latency_ms", latency ? OrderedJson(latency->value * 1000) : OrderedJson(nullptr));
    show("wanted_nodes", round.nodes().empty()
                             ? OrderedJson(nullptr)
                             : OrderedJson(round.nodes()[at] + round.nodes()[at + 1]));
    list.push_back(std::move(one));
  }
  return list;
}

OrderedJson RoutingLoop::Status() const {
  OrderedJson json{{"policy", config().policy},
                   {"baseline", config().baseline},
                   {"problem", Problem()},
                   {"rounds", rounds_},
                   {"decisions", decisions_},
                   {"changes", changes_},
                   {"signals", JsonOf(signals_->Standings())},
                   {"signal_troubles", signals_->Troubles()},
                   {"regions", OrderedJson::array()},
                   {"routes", OrderedJson::array()},
                   {"capacity", CapacityStatus()}};
  for (size_t i = 0; i < services_.size(); ++i) {
    for (OrderedJson& one : RegionsStatus(services_[i], plan_.ServiceName(static_cast<int>(i))))
      json["regions"].push_back(std::move(one));
  }
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    OrderedJson one{{"name", config().routes[i].name},
                    {"origin", config().routes[i].origin},
                    {"target", route.standing ? route.standing->target : ""},
                    {"problem", route.trouble},
                    {"acts", ActsOn(i)},
                    {"held", WhyHeld(i)},
                    {"split", OrderedJson::object()},
                    {"wanted", OrderedJson::object()},
                    {"notes", route.standing ? route.standing->notes : std::vector<std::string>()}};
    one["read_age_s"] =
        route.standing ? OrderedJson(Seconds(clock_->Now() - route.read_at)) : OrderedJson(nullptr);
    if (route.standing) {
      for (const RegionShare& share : SplitOf(*route.standing, config().routes[i].backends))
        one["split"][share.region] = share.share;
    }
    if (route.last) {
      for (const RoutedRegion& region : route.last->regions)
        one["wanted"][region.region] = region.wanted;
      one["fate"] = FateName(route.last->fate);
      one["why"] = route.last->verdict.reason;
      one["gain"] = route.last->gain;
    }
    json["routes"].push_back(std::move(one));
  }
  return json;
}

std::string RoutingLoop::Describe() const {
  return fmt::format("routing {}, policy {}", ModeName(ladder_->mode()), config().policy);
}

std::vector<NeededRight> RoutingRights(const RoutingConfig& config, Mode mode) {
  std::vector<NeededRight> rights;
  const auto add = [&](const char* verb, std::string_view group, std::string_view resource,
                       const ObjectChoice& object, bool is_named, const char* without) {
    rights.push_back({{.verb = verb,
                       .group = std::string(group),
                       .resource = std::string(resource),
                       .name_space = object.name_space,
                       .name = is_named ? object.name : ""},
                      without,
                      true});
  };
  for (const RouteConfig& one : config.routes) {
    const std::optional<PathObject> path = ObjectOf(one.path);
    if (!path || one.cluster) continue;  // Rights in other clusters are for those to say.
    if (path->is_of_clusters) {          // Events have no object to be about.
      add("list", path->group, path->plural, *path->object, false, "without it nothing runs");
      add("list", path->group, "managedclusters", *path->object, false, "without it nothing runs");
      if (mode >= Mode::kCanary)
        add("patch", path->group, "addonplacementscores/status", *path->object, false,
            "no split is set without it");
      continue;
    }
    add("get", path->group, path->plural, *path->object, true, "without it nothing runs");
    if (path->shows_health)
      add("list", "discovery.k8s.io", "endpointslices", *path->object, false,
          "without it nothing runs");
    if (mode < Mode::kAdvise) continue;
    for (const char* verb : {"create", "patch"}) {
      add(verb, "events.k8s.io", "events", *path->object, false, "the mode of routing needs it");
    }
    if (mode < Mode::kCanary) continue;
    add("patch", path->group, path->plural, *path->object, true, "no split is set without it");
  }
  for (const CapacityConfig& one : config.capacity) {
    if (!one.has_pods() || one.cluster->is_named) continue;
    add("get", "apps", "deployments", one.deployment, true, "without it nothing runs");
    add("list", "autoscaling", "horizontalpodautoscalers", one.deployment, false,
        "without it nothing runs");
    if (mode >= Mode::kEnforce)
      add("patch", "apps", "deployments/scale", one.deployment, true,
          "no number of pods is set without it");
  }
  return rights;
}

}  // namespace rudderfish
