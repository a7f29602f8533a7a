// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json.h"
#include "base/text_table.h"
#include "cli/inspection.h"

namespace rudderfish {
namespace {

double MeanCarbon(const Region& region) {
  const auto& hours = region.carbon_g_per_kwh;
  return std::accumulate(hours.begin(), hours.end(), 0.0) / kHoursOfDay;
}

// The nearest other region, or -1.
int NearestOf(const RegionNetwork& network, int region) {
  int nearest = -1;
  for (int other = 0; other < network.size(); ++other) {
    if (other == region) continue;
    if (nearest < 0 ||
        network.rtt_s[network.At(region, other)] < network.rtt_s[network.At(region, nearest)])
      nearest = other;
  }
  return nearest;
}

std::string DisturbancesText(const RegionVariant& variant) {
  std::string text;
  for (size_t i = 0; i < std::size(kDisturbanceNames); ++i) {
    if (variant.Has(static_cast<Disturbance>(i)))
      text += fmt::format("{}{}", text.empty() ? "" : ", ", kDisturbanceNames[i]);
  }
  return text.empty() ? "none" : text;
}

std::string LimitsText(const RoutingLimits& limits) {
  std::string text;
  const auto add = [&](double most, std::string_view what) {
    if (most < RoutingLimits::kNone)
      text += fmt::format("{}{:g} {}", text.empty() ? "" : ", ", most, what);
  };
  add(limits.late_percent, "% of requests late");
  add(limits.carbon_kg_per_h, "kg of CO2 an hour");
  add(limits.dollars_per_h, "dollars an hour");
  add(limits.provider_percent, "% of requests by one provider");
  return text;
}

// Of those that there are.
OrderedJson LimitsJson(const RoutingLimits& limits) {
  OrderedJson json = OrderedJson::object();
  const auto add = [&](const char* key, double most) {
    if (most < RoutingLimits::kNone) json[key] = most;
  };
  add("late_percent", limits.late_percent);
  add("carbon_kg_per_hour", limits.carbon_kg_per_h);
  add("dollars_per_hour", limits.dollars_per_h);
  add("provider_percent", limits.provider_percent);
  return json;
}

std::string ServicesText(const RegionWorld& world) {
  using Align = TextTable::Align;
  TextTable table({{"SERVICE"},
                   {"DEMAND", Align::kRight},
                   {"POD/s", Align::kRight},
                   {"PODS/NODE", Align::kRight},
                   {"DEADLINE", Align::kRight},
                   {"RESPONSE", Align::kRight},
                   {"STAYS IN"},
                   {"STORE"}});
  for (const SharingService& one : world.services) {
    table.Row({one.name, fmt::format("{:g}", one.demand), fmt::format("{:g}", one.own.pod_per_s),
               std::to_string(one.own.pods_per_node),
               fmt::format("{:.0f} ms", 1000 * one.own.deadline_s),
               fmt::format("{:g} kB", one.own.response_bytes / 1000),
               fmt::format("{}", fmt::join(one.bounds.stays, ", ")), one.bounds.store});
  }
  return table.Text();
}

// What services differ in.
OrderedJson ServicesJson(const RegionWorld& world) {
  OrderedJson services = OrderedJson::array();
  for (const SharingService& one : world.services) {
    services.push_back({{"name", one.name},
                        {"demand", one.demand},
                        {"pod_rate", one.own.pod_per_s},
                        {"pods_per_node", one.own.pods_per_node},
                        {"deadline_s", one.own.deadline_s},
                        {"response_bytes", one.own.response_bytes},
                        {"stays", one.bounds.stays}});
    if (!one.bounds.store.empty())
      services.back()["store"] = {{"region", one.bounds.store}, {"trips", one.bounds.store_trips}};
  }
  return services;
}

std::string RegionsText(const std::filesystem::path& path, const Scenario& scenario) {
  using Align = TextTable::Align;
  const RegionWorld& world = *scenario.regions;
  const RegionNetwork& network = *world.network;
  std::string text =
      fmt::format("{}: {}, {} intervals of {} s\n\n", path.string(),
                  Counted(network.size(), "region"), world.steps(), world.interval_s);
  TextTable table({{"REGION"},
                   {"PEAK/s", Align::kRight},
                   {"ON-DEMAND", Align::kRight},
                   {"SPOT", Align::kRight},
                   {"g CO2/kWh", Align::kRight},
                   {"NODES", Align::kRight},
                   {"NEAREST"}});
  for (int r = 0; r < network.size(); ++r) {
    const Region& region = network.regions[r];
    const int nearest = NearestOf(network, r);
    table.Row({region.name, fmt::format("{:.0f}", region.peak_per_s),
               fmt::format("{:.4f}", region.on_demand_per_h),
               fmt::format("{:.4f}", region.spot_per_h), fmt::format("{:.0f}", MeanCarbon(region)),
               std::to_string(region.nodes_max),
               nearest < 0 ? ""
                           : fmt::format("{}, {:.0f} ms", network.regions[nearest].name,
                                         1000 * network.rtt_s[network.At(r, nearest)])});
  }
  text += table.Text() + "\n";
  if (!world.services.empty()) text += ServicesText(world) + "\n";
  TextTable variants({{"VARIANT"}, {"DISTURBANCES"}});
  for (const RegionVariant& variant : world.variants)
    variants.Row({variant.name, DisturbancesText(variant)});
  text += variants.Text();
  const std::string limits = LimitsText(network.limits);
  return limits.empty() ? text : text + "\nLimits: " + limits + "\n";
}

std::string RegionsJson(const std::filesystem::path& path, const Scenario& scenario) {
  const RegionWorld& world = *scenario.regions;
  const RegionNetwork& network = *world.network;
  OrderedJson regions = OrderedJson::array(), variants = OrderedJson::array();
  for (const Region& region : network.regions) {
    regions.push_back({{"name", region.name},
                       {"zone", region.zone},
                       {"provider", network.providers[static_cast<size_t>(region.provider)]},
                       {"peak_per_s", region.peak_per_s},
                       {"on_demand_per_hour", region.on_demand_per_h},
                       {"spot_per_hour", region.spot_per_h},
                       {"carbon_g_per_kwh", region.carbon_g_per_kwh},
                       {"pue", region.pue},
                       {"nodes_max", region.nodes_max}});
  }
  for (const RegionVariant& variant : world.variants)
    variants.push_back({{"name", variant.name}, {"disturbances", DisturbancesText(variant)}});
  OrderedJson trips = OrderedJson::array();
  for (int from = 0; from < network.size(); ++from) {
    OrderedJson row = OrderedJson::array();
    for (int to = 0; to < network.size(); ++to)
      row.push_back(1000 * network.rtt_s[network.At(from, to)]);
    trips.push_back(std::move(row));
  }
  return OrderedJson{{"schema_version", 1},
                     {"kind", "scenario"},
                     {"file", path.string()},
                     {"name", scenario.name},
                     {"task", "route"},
                     {"intervals", world.steps()},
                     {"interval_s", world.interval_s},
                     {"regions", std::move(regions)},
                     {"round_trip_ms", std::move(trips)},
                     {"services", ServicesJson(world)},
                     {"variants", std::move(variants)},
                     {"limits", LimitsJson(network.limits)}}
             .dump(1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

}  // namespace

std::string InspectRegions(const std::filesystem::path& path, const Scenario& scenario,
                           OutputFormat format) {
  return format == OutputFormat::kJson ? RegionsJson(path, scenario) : RegionsText(path, scenario);
}

}  // namespace rudderfish
