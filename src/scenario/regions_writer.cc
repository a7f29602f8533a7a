// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "scenario/arrivals_writer.h"
#include "scenario/load_parser.h"
#include "scenario/region_world.h"

namespace rudderfish {
namespace {

std::string SecondsText(double seconds) {
  return SimTimeText(SimTime(std::llround(seconds * 1e9)));
}

// What services differ in.
void WriteOwn(const RegionService& service, YamlWriter* out) {
  out->Field("pod_rate", service.pod_per_s);
  out->Field("pods_per_node", service.pods_per_node);
  out->Field("deadline", SecondsText(service.deadline_s));
  out->Field("patience", SecondsText(service.patience_s));
  out->Field("response", fmt::format("{}B", service.response_bytes));
}

void WriteBounds(const ServiceBounds& bounds, YamlWriter* out) {
  if (!bounds.stays.empty()) {
    out->FlowList("stays", std::vector<YamlScalar>(bounds.stays.begin(), bounds.stays.end()));
  }
  if (!bounds.store.empty())
    out->FlowMap("store", {{"region", bounds.store}, {"trips", bounds.store_trips}});
}

void WriteServices(const RegionWorld& world, YamlWriter* out) {
  const RegionService& service = world.network->service;
  out->BeginMap("service");
  WriteOwn(service, out);
  out->Field("last_mile", SecondsText(service.last_mile_s));
  out->Field("idle_watts", service.idle_watts);
  out->Field("busy_watts", service.busy_watts);
  WriteBounds(world.bounds, out);
  out->End();
  if (world.services.empty()) return;
  out->BeginMap("services");
  for (const SharingService& one : world.services) {
    out->BeginMap(one.name);
    out->Field("demand", one.demand);
    WriteOwn(one.own, out);
    WriteBounds(one.bounds, out);
    out->End();
  }
  out->End();
}

void WriteObjective(const RegionNetwork& network, YamlWriter* out) {
  const RoutingObjective& objective = network.objective;
  out->FlowMap("objective", {{"carbon_per_kg", objective.carbon_per_kg},
                             {"late", objective.late},
                             {"wait", objective.wait_per_s},
                             {"queue", objective.queue_per_s},
                             {"change", objective.change}});
  const RoutingLimits& limits = network.limits;
  YamlWriter::Fields kept;
  if (limits.late_percent < RoutingLimits::kNone)
    kept.emplace_back("late_percent", limits.late_percent);
  if (limits.carbon_kg_per_h < RoutingLimits::kNone)
    kept.emplace_back("carbon_kg_per_hour", limits.carbon_kg_per_h);
  if (limits.dollars_per_h < RoutingLimits::kNone)
    kept.emplace_back("dollars_per_hour", limits.dollars_per_h);
  if (limits.provider_percent < RoutingLimits::kNone)
    kept.emplace_back("provider_percent", limits.provider_percent);
  if (!kept.empty()) out->FlowMap("limits", kept);
}

enum class CarbonIs { kHere, kInFile };

void WritePlace(const RegionNetwork& network, int position, CarbonIs carbon, YamlWriter* out) {
  const Region& region = network.regions[position];
  out->BeginMap(region.name);
  out->Field("zone", region.zone);
  if (region.provider > 0)
    out->Field("provider", network.providers[static_cast<size_t>(region.provider)]);
  out->Field("latitude", region.latitude);
  out->Field("longitude", region.longitude);
  out->Field("utc_offset", region.utc_offset_h);
  out->Field("peak_rate", region.peak_per_s);
  out->Field("on_demand", region.on_demand_per_h);
  out->Field("spot", region.spot_per_h);
  const auto& hours = region.carbon_g_per_kwh;
  if (carbon == CarbonIs::kInFile) {
    // Its row has it.
  } else if (std::all_of(hours.begin(), hours.end(), [&](double one) { return one == hours[0]; })) {
    out->Field("carbon", hours[0]);
  } else {
    out->FlowList("carbon", std::vector<YamlScalar>(hours.begin(), hours.end()));
  }
  out->Field("pue", region.pue);
  out->FlowList("start", {SecondsText(region.start_low_s), SecondsText(region.start_high_s)});
  out->Field("nodes_max", region.nodes_max);
  out->End();
}

void WriteTrips(const RegionWorld& world, YamlWriter* out) {
  out->BeginMap("round_trips");
  out->Field("base", SecondsText(world.trip_base_s));
  out->Field("per_1000km", SecondsText(world.trip_per_1000km_s));
  if (!world.measured.empty()) {
    out->BeginMap("measured");
    const std::vector<Region>& regions = world.network->regions;
    for (size_t i = 0; i < world.measured.size();) {
      const int from = world.measured[i].from;
      YamlWriter::Fields row;
      for (; i < world.measured.size() && world.measured[i].from == from; ++i) {
        row.emplace_back(regions[world.measured[i].to].name, SecondsText(world.measured[i].rtt_s));
      }
      out->FlowMap(regions[from].name, row);
    }
    out->End();
  }
  out->End();
}

}  // namespace

void WriteRegions(const RegionWorld& world, YamlWriter* out) {
  out->BlankLine();
  out->BeginMap("regions");
  out->Field("duration", SecondsText(world.duration_s));
  out->Field("interval", SecondsText(world.interval_s));
  WriteServices(world, out);
  WriteObjective(*world.network, out);
  out->BeginMap("egress_per_gb");
  out->Field("within", world.egress_within);
  YamlWriter::Fields zones;
  for (const auto& [name, price] : world.egress_of_zone) zones.emplace_back(name, price);
  out->FlowMap("zones", zones);
  out->End();
  if (!world.carbon_file.empty()) out->Field("carbon_file", world.carbon_file);
  out->BeginMap("at");
  for (int r = 0; r < world.network->size(); ++r) {
    const auto& missing = world.without_carbon;
    const bool is_in_file = std::find(missing.begin(), missing.end(), r) != missing.end();
    WritePlace(*world.network, r, is_in_file ? CarbonIs::kInFile : CarbonIs::kHere, out);
  }
  out->End();
  WriteTrips(world, out);
  YamlWriter::Fields chance;
  for (const ChanceKey& one : kChanceKeys) {
    const double value = world.chance.*one.field;
    chance.emplace_back(std::string(one.key),
                        one.is_time ? YamlScalar(SecondsText(value)) : YamlScalar(value));
  }
  out->FlowMap("chance", chance);
  if (world.demand) {
    Traffic demand = *world.demand;
    demand.scale_per_s = 0;
    out->BeginMap("demand");
    WriteTraffic(demand, out);
    out->End();
  }
  out->BeginMap("variants");
  for (const RegionVariant& variant : world.variants) {
    std::vector<YamlScalar> words;
    for (size_t i = 0; i < std::size(kDisturbanceNames); ++i) {
      if (variant.Has(static_cast<Disturbance>(i))) words.emplace_back(kDisturbanceNames[i]);
    }
    out->FlowList(variant.name, words);
  }
  out->End();
  out->End();
}

}  // namespace rudderfish
