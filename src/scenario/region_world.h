// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/yaml_writer.h"
#include "model/region_laws.h"
#include "model/region_network.h"
#include "scenario/traffic.h"

// Regions of several clouds as a scenario describes them: the part `regions:` of its file. What
// policies know is the RegionNetwork; what happens to it by chance stands here, and
// sim/region_simulator.h draws it. Immutable once loaded.

namespace rudderfish {

// Rates are means of exponential times between, for each region, before its own trait.
struct RegionChance {
  double night_share = 0.35;   // Of the peak, at the quietest hour,
  double peak_hour = 20;       // half a day from the busiest, by the clocks of its users.
  double slow_noise = 0.12;    // Standard deviation of two wanderings of demand (in logarithms):
  double fast_noise = 0.05;    // over an hour, and over five minutes.
  double service_noise = 0.1;  // Of what each of several services adds to that, over an hour.
  double flash_per_day = 1;    // Flash crowds of one region,
  double world_flash_per_day = 0.5;          // and of all at once.
  double flash_low = 1.6, flash_high = 3.8;  // Times the demand, at their top.
  double storm_per_day = 4;                  // Times in which spot nodes are scarce,
  double storm_s = 2700;                     // and how long they last.
  double reclaim_per_h = 0.1, storm_reclaim_per_h = 4;
  double storm_grant = 0.3;     // Share of orders of spot nodes that is met in a storm.
  double notice = 0;            // Share of its intervals in which the provider warns of it,
  double false_notice = 0;      // and of all others.
  double outage_per_day = 0.6;  // Of a whole region.
  double brownout_per_day = 1;  // Of a part of one: between these shares of its nodes.
  double brownout_low = 0.3, brownout_high = 0.7;
  double cold_s = 900;         // How long a region warms to traffic that is new to it:
  double cold_delay_s = 0.08;  // what a request takes longer meanwhile,
  double cold_egress = 4;      // and how many times its egress, at least that of its continent.
  double price_noise = 0.35;   // Standard deviation of the price of spot nodes (in logarithms).

  bool operator==(const RegionChance&) const = default;
};

struct ChanceKey {
  std::string_view key;
  double RegionChance::*field;
  double low, high;
  bool is_time = false;  // In seconds, written with its unit.
};
inline constexpr double kMostEventsPerDay = 1000;
inline constexpr ChanceKey kChanceKeys[] = {
    {"night_share", &RegionChance::night_share, 0, 1},
    {"peak_hour", &RegionChance::peak_hour, 0, 24},
    {"slow_noise", &RegionChance::slow_noise, 0, 2},
    {"fast_noise", &RegionChance::fast_noise, 0, 2},
    {"service_noise", &RegionChance::service_noise, 0, 2},
    {"flash_per_day", &RegionChance::flash_per_day, 0, kMostEventsPerDay},
    {"world_flash_per_day", &RegionChance::world_flash_per_day, 0, kMostEventsPerDay},
    {"flash_low", &RegionChance::flash_low, 1, 100},
    {"flash_high", &RegionChance::flash_high, 1, 100},
    {"storm_per_day", &RegionChance::storm_per_day, 0, kMostEventsPerDay},
    {"storm", &RegionChance::storm_s, 60, 86400, true},
    {"reclaim_per_hour", &RegionChance::reclaim_per_h, 0, 60},
    {"storm_reclaim_per_hour", &RegionChance::storm_reclaim_per_h, 0, 60},
    {"storm_grant", &RegionChance::storm_grant, 0, 1},
    {"notice", &RegionChance::notice, 0, 1},
    {"false_notice", &RegionChance::false_notice, 0, 1},
    {"outage_per_day", &RegionChance::outage_per_day, 0, kMostEventsPerDay},
    {"brownout_per_day", &RegionChance::brownout_per_day, 0, kMostEventsPerDay},
    {"brownout_low", &RegionChance::brownout_low, 0, 1},
    {"brownout_high", &RegionChance::brownout_high, 0, 1},
    {"cold", &RegionChance::cold_s, 60, 86400, true},
    {"cold_delay", &RegionChance::cold_delay_s, 0, 10, true},
    {"cold_egress", &RegionChance::cold_egress, 1, 100},
    {"price_noise", &RegionChance::price_noise, 0, 2},
};

// What may disturb an episode, beside demand that comes and goes with the hour.
// kTrace: it does as a trace recorded.
enum class Disturbance { kFlash, kSpot, kOutage, kCache, kPrice, kTrace, kBrownout };
inline constexpr std::string_view kDisturbanceNames[] = {"flash", "spot",  "outage",  "cache",
                                                         "price", "trace", "brownout"};

// Without `spot` there are only on-demand nodes.
struct RegionVariant {
  std::string name;
  unsigned disturbances = 0;  // A bit for each.

  bool Has(Disturbance one) const { return (disturbances >> static_cast<int>(one) & 1) != 0; }
  bool operator==(const RegionVariant&) const = default;
};

// Which requests may be served where, and what they need there.
struct ServiceBounds {
  std::vector<std::string> stays;  // Zones whose users are served there and nowhere else.
  std::string store;               // The region that has the data; empty: every region has it.
  int store_trips = 1;             // Round trips to it of a request.

  bool operator==(const ServiceBounds&) const = default;
};

// One of several services whose pods share the nodes of all regions.
struct SharingService {
  std::string name;
  double demand = 1;  // Requests of it for each of Region::peak_per_s.
  RegionService own;  // As the file says.
  ServiceBounds bounds;
  std::shared_ptr<const RegionNetwork> pods;  // PodsOf the network, and by its bounds.
};
inline constexpr int kMostServices = 32;

struct RegionWorld {
  // A measured round trip between two regions; of others it follows from their distance.
  struct Measured {
    int from = 0, to = 0;
    double rtt_s = 0;
    bool operator==(const Measured&) const = default;
  };

  std::shared_ptr<const RegionNetwork> network;
  ServiceBounds bounds;                  // Of `network->service`.
  std::vector<SharingService> services;  // Empty: that service has the nodes for itself.
  uint64_t seed = 1;                     // Of the traits of regions: the scenario's.
  RegionChance chance;
  double interval_s = 60, duration_s = 14400;
  // What Disturbance::kTrace replays, of a mean of 1. A region is as much later in it as its clock
  // is behind UTC, and has the mean that its day has without.
  std::optional<Traffic> demand;
  std::vector<RegionVariant> variants;
  // Where RegionNetwork::rtt_s and egress_per_gb come from.
  double trip_base_s = 0, trip_per_1000km_s = 0;
  std::vector<Measured> measured;
  double egress_within = 0;                                    // A zone.
  std::vector<std::pair<std::string, double>> egress_of_zone;  // Between two, the dearer one's.
  // Where carbon of regions without `carbon` is read from; empty once it was, or if all have one.
  std::string carbon_file;
  std::vector<int> without_carbon;  // Positions of those regions.

  int steps() const { return static_cast<int>(std::lround(duration_s / interval_s)); }
};

// Of each service in turn: of its pods where several share nodes, else of nodes.
using ServiceLaws = std::vector<std::shared_ptr<const RegionLaws>>;
ServiceLaws LawsOf(const RegionWorld& world);

// The same world with only these regions, in this order; no names: all. kNotFound, by its name, for
// one that it has not.
Result<std::shared_ptr<const RegionWorld>> WithRegions(
    const std::shared_ptr<const RegionWorld>& world, std::span<const std::string> names);

// Positions of variants; no names: all.
Result<std::vector<int>> VariantsNamed(const RegionWorld& world,
                                       std::span<const std::string> names);

// `node` is the value of `regions:`. Messages as ParseScenario's.
Result<RegionWorld> ParseRegions(const YamlNode& node);

// Sets the carbon intensity of regions that have none, from the table of Google's
// region-carbon-info: a row for each region, by name. Messages read file:line:column.
Result<void> ReadRegionCarbon(std::string_view text, std::string_view source_name,
                              RegionWorld* world);

// As ParseRegions reads it back, to the bit.
void WriteRegions(const RegionWorld& world, YamlWriter* out);

}  // namespace rudderfish
