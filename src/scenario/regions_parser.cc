// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>

#include "base/suggest.h"
#include "base/units.h"
#include "scenario/arrivals_parser.h"
#include "scenario/load_parser.h"
#include "scenario/name_index.h"
#include "scenario/region_world.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

constexpr double kMostPerS = 1e7, kMostDollars = 1e6, kMostCarbon = 1e5, kMostRegionWatts = 1e6;
constexpr int kMostPodsPerNode = 1000;
constexpr int kMostServers = 4096;  // Of a region: what queues are tabulated for.
constexpr int kMostVariants = 32;
constexpr double kMostSteps = 100'000;

Result<double> SecondsOf(const YamlNode& node, double low_s, double high_s) {
  TRY_ASSIGN(const SimTime time, SimTimeOf(node));
  const double seconds = static_cast<double>(time.count()) / 1e9;
  if (seconds < low_s || seconds > high_s)
    return node.Expected(fmt::format("{}s to {}s", low_s, high_s));
  return seconds;
}

Result<double> RequiredSeconds(YamlMap* map, std::string_view key, double low_s, double high_s) {
  TRY_ASSIGN(const YamlNode node, map->Required(key));
  return SecondsOf(node, low_s, high_s);
}

Result<double> OptionalSeconds(YamlMap* map, std::string_view key, double low_s, double high_s,
                               double fallback_s) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return fallback_s;
  return SecondsOf(*node, low_s, high_s);
}

Result<double> BytesOf(const YamlNode& node) {
  TRY_ASSIGN(const std::string text, node.AsString());
  const Result<double> bytes = ParseDataSizeBytes(text);
  if (!bytes) return node.Refuse(bytes.error().message);
  if (*bytes > 1e12) return node.Expected("at most 1TB");
  return *bytes;
}

// Reads the part from the top; round trips refer to the regions before them.
class RegionsReader {
 public:
  Result<RegionWorld> Read(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(world_.duration_s, OptionalSeconds(&map, "duration", 60, 30 * 86400.0, 14400));
    TRY_ASSIGN(world_.interval_s, OptionalSeconds(&map, "interval", 1, 3600, 60));
    if (world_.duration_s < world_.interval_s || world_.duration_s / world_.interval_s > kMostSteps)
      return node.Refuse(fmt::format("expected 1 to {} intervals in `duration`", kMostSteps));
    TRY_ASSIGN(const YamlNode service, map.Required("service"));
    TRY(ReadService(service));
    const std::optional<YamlNode> services = map.Optional("services");
    if (services) TRY(ReadServices(*services));
    TRY(ReadObjective(map.Optional("objective")));
    TRY(ReadLimits(map.Optional("limits")));
    TRY_ASSIGN(const YamlNode egress, map.Required("egress_per_gb"));
    TRY(ReadEgress(egress));
    TRY_ASSIGN(world_.carbon_file, map.OptionalString("carbon_file", ""));
    TRY_ASSIGN(const YamlNode at, map.Required("at"));
    TRY(ReadPlaces(at));
    TRY_ASSIGN(const YamlNode trips, map.Required("round_trips"));
    TRY(ReadTrips(trips));
    TRY(Bind());
    TRY(ReadChance(map.Optional("chance")));
    if (const std::optional<YamlNode> demand = map.Optional("demand")) TRY(ReadDemand(*demand));
    TRY_ASSIGN(const YamlNode variants, map.Required("variants"));
    TRY(ReadVariants(variants));
    TRY(map.Finish());
    world_.network = std::make_shared<const RegionNetwork>(std::move(network_));
    return std::move(world_);
  }

 private:
  Result<void> ReadService(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    RegionService& service = network_.service;
    TRY_ASSIGN(service.pod_per_s, map.RequiredDouble("pod_rate", 1e-3, kMostPerS));
    TRY_ASSIGN(const int64_t pods, map.RequiredInt("pods_per_node", 1, kMostPodsPerNode));
    service.pods_per_node = static_cast<int>(pods);
    TRY_ASSIGN(service.deadline_s, RequiredSeconds(&map, "deadline", 1e-3, 3600));
    TRY_ASSIGN(service.patience_s, OptionalSeconds(&map, "patience", 1e-3, 3600, 8));
    TRY_ASSIGN(service.last_mile_s, OptionalSeconds(&map, "last_mile", 0, 10, 0));
    TRY_ASSIGN(const YamlNode response, map.Required("response"));
    TRY_ASSIGN(service.response_bytes, BytesOf(response));
    TRY_ASSIGN(service.idle_watts, map.RequiredDouble("idle_watts", 0, kMostRegionWatts));
    TRY_ASSIGN(service.busy_watts, map.RequiredDouble("busy_watts", 0, kMostRegionWatts));
    TRY_ASSIGN(BoundNodes bounds, ReadBounds(&map));
    bounds_.push_back(std::move(bounds));
    most_pods_ = service.pods_per_node;
    return map.Finish();
  }

  // Each has what it differs in from `service`; power and the last mile are those of all.
  Result<void> ReadServices(const YamlNode& node) {
    if (bounds_[0].stays || bounds_[0].store)
      return node.Refuse("`stays` and `store` belong to one of `services`, not to `service`");
    TRY_ASSIGN(YamlMap services, node.AsMap());
    for (const auto& [name, value] : services.Entries()) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      TRY_ASSIGN(YamlMap map, value.AsMap());
      SharingService one{.name = name, .own = network_.service};
      RegionService& own = one.own;
      TRY_ASSIGN(one.demand, map.OptionalDouble("demand", 1e-6, 1e6, 1));
      TRY_ASSIGN(own.pod_per_s, map.OptionalDouble("pod_rate", 1e-3, kMostPerS, own.pod_per_s));
      TRY_ASSIGN(const int64_t pods,
                 map.OptionalInt("pods_per_node", 1, kMostPodsPerNode, own.pods_per_node));
      own.pods_per_node = static_cast<int>(pods);
      TRY_ASSIGN(own.deadline_s, OptionalSeconds(&map, "deadline", 1e-3, 3600, own.deadline_s));
      TRY_ASSIGN(own.patience_s, OptionalSeconds(&map, "patience", 1e-3, 3600, own.patience_s));
      if (const std::optional<YamlNode> response = map.Optional("response")) {
        TRY_ASSIGN(own.response_bytes, BytesOf(*response));
      }
      TRY_ASSIGN(BoundNodes bounds, ReadBounds(&map));
      bounds_.push_back(std::move(bounds));
      TRY(map.Finish());
      most_pods_ = std::max(most_pods_, own.pods_per_node);
      world_.services.push_back(std::move(one));
    }
    if (world_.services.empty() || world_.services.size() > kMostServices)
      return node.Refuse(fmt::format("expected 1 to {} services", kMostServices));
    return {};
  }

  // What a service says of zones and regions, which the file names further down.
  struct BoundNodes {
    std::optional<YamlNode> stays, store;
  };

  static Result<BoundNodes> ReadBounds(YamlMap* map) {
    return BoundNodes{.stays = map->Optional("stays"), .store = map->Optional("store")};
  }

  Result<ServiceBounds> BoundsOf(const BoundNodes& nodes) {
    ServiceBounds bounds;
    if (nodes.stays) {
      TRY_ASSIGN(const std::vector<YamlNode> zones, nodes.stays->AsList());
      for (const YamlNode& item : zones) {
        TRY_ASSIGN(std::string zone, item.AsString());
        if (zones_.Find(zone) == kNone) return item.Refuse(zones_.Unknown(zone));
        bounds.stays.push_back(std::move(zone));
      }
    }
    if (nodes.store) {
      TRY_ASSIGN(YamlMap map, nodes.store->AsMap());
      TRY_ASSIGN(const YamlNode region, map.Required("region"));
      TRY_ASSIGN(bounds.store, region.AsString());
      if (names_.Find(bounds.store) == kNone) return region.Refuse(names_.Unknown(bounds.store));
      TRY_ASSIGN(const int64_t trips, map.OptionalInt("trips", 1, 100, 1));
      bounds.store_trips = static_cast<int>(trips);
      TRY(map.Finish());
    }
    return bounds;
  }

  // What services say of zones and regions, once these are known.
  Result<void> Bind() {
    TRY_ASSIGN(world_.bounds, BoundsOf(bounds_[0]));
    for (size_t i = 0; i < world_.services.size(); ++i) {
      SharingService& one = world_.services[i];
      TRY_ASSIGN(one.bounds, BoundsOf(bounds_[i + 1]));
      RegionNetwork pods = PodsOf(network_, one.own);
      Bind(one.bounds, &pods);
      one.pods = std::make_shared<const RegionNetwork>(std::move(pods));
    }
    Bind(world_.bounds, &network_);
    return {};
  }

  void Bind(const ServiceBounds& bounds, RegionNetwork* network) const {
    if (!bounds.store.empty()) {
      const int store = names_.Find(bounds.store);
      for (int to = 0; to < network->size(); ++to)
        network->store_s.push_back(bounds.store_trips * network->rtt_s[network->At(to, store)]);
    }
    if (bounds.stays.empty()) return;
    for (const Region& user : network->regions) {
      const bool stays =
          std::find(bounds.stays.begin(), bounds.stays.end(), user.zone) != bounds.stays.end();
      for (const Region& server : network->regions)
        network->closed.push_back(stays && server.zone != user.zone ? 1 : 0);
    }
  }

  Result<void> ReadObjective(const std::optional<YamlNode>& node) {
    if (!node) return {};
    TRY_ASSIGN(YamlMap map, node->AsMap());
    RoutingObjective& objective = network_.objective;
    TRY_ASSIGN(objective.carbon_per_kg, map.OptionalDouble("carbon_per_kg", 0, kMostDollars, 0));
    TRY_ASSIGN(objective.late, map.OptionalDouble("late", 0, kMostDollars, 20));
    TRY_ASSIGN(objective.wait_per_s, map.OptionalDouble("wait", 0, kMostDollars, 1));
    TRY_ASSIGN(objective.queue_per_s, map.OptionalDouble("queue", 0, kMostDollars, 0));
    TRY_ASSIGN(objective.change, map.OptionalDouble("change", 0, kMostDollars, 0));
    return map.Finish();
  }

  Result<void> ReadLimits(const std::optional<YamlNode>& node) {
    if (!node) return {};
    TRY_ASSIGN(YamlMap map, node->AsMap());
    RoutingLimits& limits = network_.limits;
    constexpr double kNone = RoutingLimits::kNone;
    TRY_ASSIGN(limits.late_percent, map.OptionalDouble("late_percent", 0, 100, kNone));
    TRY_ASSIGN(limits.carbon_kg_per_h,
               map.OptionalDouble("carbon_kg_per_hour", 0, kMostDollars, kNone));
    TRY_ASSIGN(limits.provider_percent, map.OptionalDouble("provider_percent", 0, 100, kNone));
    TRY_ASSIGN(limits.dollars_per_h,
               map.OptionalDouble("dollars_per_hour", 0, kMostDollars, kNone));
    return map.Finish();
  }

  Result<void> ReadEgress(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(world_.egress_within, map.RequiredDouble("within", 0, kMostDollars));
    TRY_ASSIGN(YamlMap zones, map.RequiredMap("zones"));
    for (const auto& [name, value] : zones.Entries()) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      TRY_ASSIGN(const double price, value.AsDouble(0, kMostDollars));
      zones_.Add(name);
      world_.egress_of_zone.emplace_back(name, price);
    }
    return map.Finish();
  }

  Result<void> ReadPlaces(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    for (const auto& [name, value] : map.Entries()) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      TRY_ASSIGN(Region region, ReadPlace(name, value));
      names_.Add(name);
      network_.regions.push_back(std::move(region));
    }
    const int n = network_.size();
    if (n < 1 || n > kMaxRegions)
      return node.Refuse(fmt::format("expected 1 to {} regions, found {}", kMaxRegions, n));
    for (const Region& server : network_.regions) {
      for (const Region& user : network_.regions) {
        const double price = server.zone == user.zone
                                 ? world_.egress_within
                                 : std::max(world_.egress_of_zone[zones_.Find(server.zone)].second,
                                            world_.egress_of_zone[zones_.Find(user.zone)].second);
        network_.egress_per_gb.push_back(&server == &user ? 0 : price);
      }
    }
    return {};
  }

  Result<Region> ReadPlace(const std::string& name, const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    Region region{.name = name};
    TRY_ASSIGN(const YamlNode zone, map.Required("zone"));
    TRY_ASSIGN(region.zone, zone.AsString());
    if (zones_.Find(region.zone) == kNone) return zone.Refuse(zones_.Unknown(region.zone));
    if (const std::optional<YamlNode> provider = map.Optional("provider")) {
      TRY_ASSIGN(region.provider, ProviderOf(*provider));
    }
    TRY_ASSIGN(region.latitude, map.RequiredDouble("latitude", -90, 90));
    TRY_ASSIGN(region.longitude, map.RequiredDouble("longitude", -180, 180));
    TRY_ASSIGN(region.utc_offset_h, map.RequiredDouble("utc_offset", -12, 14));
    TRY_ASSIGN(region.peak_per_s, map.RequiredDouble("peak_rate", 0, kMostPerS));
    TRY_ASSIGN(region.on_demand_per_h, map.RequiredDouble("on_demand", 1e-6, kMostDollars));
    TRY_ASSIGN(region.spot_per_h, map.RequiredDouble("spot", 1e-6, kMostDollars));
    const std::optional<YamlNode> carbon = map.Optional("carbon");
    if (carbon) {
      TRY_ASSIGN(region.carbon_g_per_kwh, CarbonOf(*carbon));
    } else if (!world_.carbon_file.empty()) {
      world_.without_carbon.push_back(network_.size());
    } else {
      TRY(map.Required("carbon"));
    }
    TRY_ASSIGN(region.pue, map.OptionalDouble("pue", 1, 10, 1));
    TRY_ASSIGN(const YamlNode start, map.Required("start"));
    TRY(ReadStart(start, &region));
    TRY_ASSIGN(const int64_t most, map.RequiredInt("nodes_max", 1, kMostServers / most_pods_));
    region.nodes_max = static_cast<int>(most);
    TRY(map.Finish());
    return region;
  }

  // Its position; the first one is of regions that name none.
  Result<int> ProviderOf(const YamlNode& node) {
    TRY_ASSIGN(std::string name, node.AsString());
    if (!IsName(name)) return node.Refuse(fmt::format("expected {}", kNameInWords));
    std::vector<std::string>& all = network_.providers;
    const auto found = std::find(all.begin(), all.end(), name);
    if (found != all.end()) return static_cast<int>(found - all.begin());
    if (all.size() == kMostProviders)
      return node.Refuse(fmt::format("expected at most {} providers", kMostProviders - 1));
    all.push_back(std::move(name));
    return static_cast<int>(all.size()) - 1;
  }

  // One value for the whole day, or one for each hour of UTC.
  static Result<std::array<double, kHoursOfDay>> CarbonOf(const YamlNode& node) {
    std::array<double, kHoursOfDay> hours;
    if (!node.IsList()) {
      TRY_ASSIGN(const double all, node.AsDouble(0, kMostCarbon));
      hours.fill(all);
      return hours;
    }
    TRY_ASSIGN(const std::vector<YamlNode> items, node.AsList());
    if (items.size() != kHoursOfDay)
      return node.Expected("a number, or 24 of them: one for each hour of UTC");
    for (int hour = 0; hour < kHoursOfDay; ++hour) {
      TRY_ASSIGN(hours[hour], items[hour].AsDouble(0, kMostCarbon));
    }
    return hours;
  }

  static Result<void> ReadStart(const YamlNode& node, Region* region) {
    TRY_ASSIGN(const std::vector<YamlNode> ends, node.AsList());
    if (ends.size() != 2) return node.Expected("the shortest and the longest time: [2min, 4min]");
    TRY_ASSIGN(region->start_low_s, SecondsOf(ends[0], 0, 3600));
    TRY_ASSIGN(region->start_high_s, SecondsOf(ends[1], 0, 3600));
    if (region->start_high_s < region->start_low_s)
      return node.Refuse("the longest time is below the shortest");
    return {};
  }

  Result<void> ReadTrips(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    TRY_ASSIGN(world_.trip_base_s, RequiredSeconds(&map, "base", 0, 10));
    TRY_ASSIGN(world_.trip_per_1000km_s, RequiredSeconds(&map, "per_1000km", 0, 1));
    for (int from = 0; from < network_.size(); ++from) {
      for (int to = 0; to < network_.size(); ++to) {
        const double km = DistanceKm(network_.regions[from], network_.regions[to]);
        network_.rtt_s.push_back(
            from == to ? 0 : world_.trip_base_s + world_.trip_per_1000km_s * km / 1000);
      }
    }
    if (const std::optional<YamlNode> measured = map.Optional("measured"))
      TRY(ReadMeasured(*measured));
    return map.Finish();
  }

  Result<void> ReadMeasured(const YamlNode& node) {
    TRY_ASSIGN(YamlMap rows, node.AsMap());
    std::vector<char> seen(network_.rtt_s.size(), 0);
    for (const auto& [from_name, row] : rows.Entries()) {
      const int from = names_.Find(from_name);
      if (from == kNone) return row.Refuse(names_.Unknown(from_name));
      TRY_ASSIGN(YamlMap cells, row.AsMap());
      for (const auto& [to_name, cell] : cells.Entries()) {
        const int to = names_.Find(to_name);
        if (to == kNone) return cell.Refuse(names_.Unknown(to_name));
        TRY_ASSIGN(const double rtt_s, SecondsOf(cell, 0, 10));
        if (from == to || seen[network_.At(from, to)] != 0)
          return cell.Refuse("each pair of two regions stands once, in either order");
        for (const size_t at : {network_.At(from, to), network_.At(to, from)}) {
          seen[at] = 1;
          network_.rtt_s[at] = rtt_s;
        }
        world_.measured.push_back({from, to, rtt_s});
      }
    }
    return {};
  }

  Result<void> ReadChance(const std::optional<YamlNode>& node) {
    if (!node) return {};
    TRY_ASSIGN(YamlMap map, node->AsMap());
    for (const ChanceKey& one : kChanceKeys) {
      double& value = world_.chance.*one.field;
      if (one.is_time) {
        TRY_ASSIGN(value, OptionalSeconds(&map, one.key, one.low, one.high, value));
      } else {
        TRY_ASSIGN(value, map.OptionalDouble(one.key, one.low, one.high, value));
      }
    }
    if (world_.chance.flash_high < world_.chance.flash_low)
      return node->Refuse("`flash_high` is below `flash_low`");
    if (world_.chance.brownout_high < world_.chance.brownout_low)
      return node->Refuse("`brownout_high` is below `brownout_low`");
    return map.Finish();
  }

  Result<void> ReadDemand(const YamlNode& node) {
    TRY_ASSIGN(Traffic traffic, ParseTraffic(node));
    if (traffic.shape != Traffic::Shape::kReplay) return node.Expected("a map `replay`");
    if (traffic.scale_per_s > 0)
      return node.Refuse("`rate`: not here; each region has the mean of its own day");
    traffic.scale_per_s = 1;
    world_.demand = std::move(traffic);
    return {};
  }

  Result<void> ReadVariants(const YamlNode& node) {
    TRY_ASSIGN(YamlMap map, node.AsMap());
    for (const auto& [name, value] : map.Entries()) {
      if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
      RegionVariant variant{.name = name};
      TRY_ASSIGN(const std::vector<YamlNode> items, value.AsList());
      for (const YamlNode& item : items) {
        TRY_ASSIGN(const std::string word, item.AsString());
        const auto* at =
            std::find(std::begin(kDisturbanceNames), std::end(kDisturbanceNames), word);
        if (at == std::end(kDisturbanceNames)) {
          return item.Expected(fmt::format("{}{}", fmt::join(kDisturbanceNames, ", "),
                                           DidYouMean(word, kDisturbanceNames)));
        }
        if (word == kDisturbanceNames[static_cast<int>(Disturbance::kTrace)] && !world_.demand)
          return item.Refuse("there is no trace; name one in `demand: {replay: ...}`");
        variant.disturbances |= 1U << (at - std::begin(kDisturbanceNames));
      }
      world_.variants.push_back(std::move(variant));
    }
    if (world_.variants.empty() || world_.variants.size() > kMostVariants)
      return node.Refuse(fmt::format("expected 1 to {} variants", kMostVariants));
    return {};
  }

  RegionWorld world_;
  RegionNetwork network_;
  NameIndex zones_{"zone"}, names_{"region"};
  std::vector<BoundNodes> bounds_;  // Of `service`, and of each of `services`.
  int most_pods_ = 1;               // Of a node.
};

}  // namespace

Result<RegionWorld> ParseRegions(const YamlNode& node) { return RegionsReader().Read(node); }

}  // namespace rudderfish
