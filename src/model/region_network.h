// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

// Regions of several clouds that serve the same requests: what is known of them to a policy that
// decides where requests go. Random events belong to a scenario (scenario/region_world.h).
// Immutable once built. Money is in dollars, carbon in grams or kilograms of CO2 as names say.

namespace rudderfish {

inline constexpr int kMaxRegions = 64;
inline constexpr int kMostProviders = 8;
inline constexpr int kHoursOfDay = 24;

struct Region {
  std::string name;
  std::string zone;  // For the price of egress: a continent.
  int provider = 0;  // RegionNetwork::providers.
  double latitude = 0, longitude = 0;
  double utc_offset_h = 0;  // What its users' clocks show beyond UTC.
  double peak_per_s = 0;    // Requests of its users at the busiest hour, in the mean.
  double on_demand_per_h = 0, spot_per_h = 0;          // Dollars for a node.
  std::array<double, kHoursOfDay> carbon_g_per_kwh{};  // By hour of UTC.
  double pue = 1;  // Power usage effectiveness: energy of the site over that of its servers.
  double start_low_s = 0, start_high_s = 0;  // From the order of a node until it serves.
  int nodes_max = 1;                         // Quota.

  bool operator==(const Region&) const = default;
};

// Pods and nodes are alike in all regions.
struct RegionService {
  double pod_per_s = 20;  // Requests that a busy pod serves; exponential service times.
  int pods_per_node = 4;
  double deadline_s = 0.4;  // Of a response, end to end: later ones are late.
  double patience_s = 8;    // After so long in a queue clients give up.
  double last_mile_s = 0;   // Between users and the nearest region, there and back.
  double response_bytes = 0;
  double idle_watts = 0, busy_watts = 0;  // Of a node; between them by its use.

  double node_per_s() const { return pod_per_s * pods_per_node; }
  double WattsAt(double use) const { return idle_watts + (busy_watts - idle_watts) * use; }
  bool operator==(const RegionService&) const = default;
};

// What is to be made small, per request: dollars of nodes and egress, and by price carbon, late
// requests and waiting. `late`, `wait_per_s` and `queue_per_s` are in units of
// RegionNetwork::unit_dollars.
struct RoutingObjective {
  double carbon_per_kg = 0;  // Dollars.
  double late = 20;
  double wait_per_s = 1;   // Of response time.
  double queue_per_s = 0;  // Of that in a queue, beside.
  double change = 0;       // Minutes of an on-demand node that a node more or fewer costs.

  bool operator==(const RoutingObjective&) const = default;
};

// What is to be kept whatever that costs, in the mean of an episode over all regions together.
struct RoutingLimits {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double late_percent = kNone;  // Of requests.
  double carbon_kg_per_h = kNone, dollars_per_h = kNone;
  double provider_percent = kNone;  // Of requests, that one provider serves.

  bool any() const {
    return std::min({late_percent, carbon_kg_per_h, dollars_per_h, provider_percent}) < kNone;
  }
  bool operator==(const RoutingLimits&) const = default;
};

// What a rule decides by, where that is not what the objective says: the multipliers of limits.
struct RoutingPrices {
  std::optional<double> late;           // Units.
  std::optional<double> carbon_per_kg;  // Dollars.
  // By how many units a provider's requests grow dearer at each decision while it serves a tenth of
  // all more than its limit; in proportion else, and back. No price without that limit.
  double provider = 0;

  bool any() const { return late || carbon_per_kg; }
};

struct RegionNetwork {
  std::vector<Region> regions;
  std::vector<std::string> providers = {""};  // At most kMostProviders.
  RegionService service;
  RoutingObjective objective;
  RoutingLimits limits;
  std::vector<double> rtt_s;          // [from][to] Round trip, without the last mile.
  std::vector<double> egress_per_gb;  // [from][to] Dollars; 0 within a region.
  // [server] What a request waits for the data that it needs; empty: nothing.
  std::vector<double> store_s;
  // [from][to] Whether requests of these users may not be served there; empty: all may. Users may
  // always be served in their own region.
  std::vector<char> closed;

  int size() const { return static_cast<int>(regions.size()); }
  size_t At(int from, int to) const { return static_cast<size_t>(from) * regions.size() + to; }

  // From a user of region `from` to region `to` and back, and from there to the data and back.
  double TripS(int from, int to) const {
    const double store = store_s.empty() ? 0 : store_s[static_cast<size_t>(to)];
    return rtt_s[At(from, to)] + service.last_mile_s + store;
  }
  bool Allows(int from, int to) const { return closed.empty() || closed[At(from, to)] == 0; }
  // Dollars for the response to a request.
  double EgressOf(int server, int user) const {
    return egress_per_gb[At(server, user)] * service.response_bytes * 1e-9;
  }

  // What a request costs on an on-demand node of the mean price that is 60 % in use: the unit in
  // which the objective is told.
  double unit_dollars() const;

  bool operator==(const RegionNetwork&) const = default;
};

inline constexpr double kUnitUse = 0.6;

// Along the surface of the earth, in km.
double DistanceKm(const Region& a, const Region& b);

// The same network with only these regions, in this order. REQUIRES: positions of it, each once.
RegionNetwork WithRegions(const RegionNetwork& network, std::span<const int> positions);

// The same regions to a service that shares their nodes with others: its pods are in the place of
// nodes, with the part of a node's price, power and quota that `service.pods_per_node` leaves them.
RegionNetwork PodsOf(const RegionNetwork& network, const RegionService& service);

// Of shares [from][to] that sum to 1 for each origin: those that are not allowed go to the regions
// that are, as they are shared among these; home, if none has any.
void KeepAllowed(const RegionNetwork& network, std::span<double> shares);

}  // namespace rudderfish
