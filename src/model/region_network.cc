// SPDX-License-Identifier: Apache-2.0
#include "model/region_network.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rudderfish {

double RegionNetwork::unit_dollars() const {
  double per_h = 0;
  for (const Region& region : regions) per_h += region.on_demand_per_h;
  return per_h / size() / (3600 * service.node_per_s() * kUnitUse);
}

double DistanceKm(const Region& a, const Region& b) {
  constexpr double kEarthKm = 6371, kRadians = std::numbers::pi / 180;
  // Haversine: exact where two places are close.
  const double up = std::sin((b.latitude - a.latitude) * kRadians / 2);
  const double along = std::sin((b.longitude - a.longitude) * kRadians / 2);
  const double h =
      up * up + std::cos(a.latitude * kRadians) * std::cos(b.latitude * kRadians) * along * along;
  return 2 * kEarthKm * std::asin(std::sqrt(std::min(1.0, h)));
}

RegionNetwork WithRegions(const RegionNetwork& network, std::span<const int> positions) {
  RegionNetwork part{.providers = network.providers,
                     .service = network.service,
                     .objective = network.objective,
                     .limits = network.limits};
  for (const int from : positions) {
    part.regions.push_back(network.regions[from]);
    if (!network.store_s.empty()) part.store_s.push_back(network.store_s[from]);
    for (const int to : positions) {
      part.rtt_s.push_back(network.rtt_s[network.At(from, to)]);
      part.egress_per_gb.push_back(network.egress_per_gb[network.At(from, to)]);
      if (!network.closed.empty()) part.closed.push_back(network.closed[network.At(from, to)]);
    }
  }
  return part;
}

RegionNetwork PodsOf(const RegionNetwork& network, const RegionService& service) {
  RegionNetwork pods = network;
  pods.service = service;
  pods.service.pods_per_node = 1;
  const int each = service.pods_per_node;
  pods.service.idle_watts /= each;
  pods.service.busy_watts /= each;
  for (Region& region : pods.regions) {
    region.on_demand_per_h /= each;
    region.spot_per_h /= each;
    region.nodes_max *= each;
  }
  return pods;
}

void KeepAllowed(const RegionNetwork& network, std::span<double> shares) {
  if (network.closed.empty()) return;
  for (int from = 0; from < network.size(); ++from) {
    double allowed = 0;
    for (int to = 0; to < network.size(); ++to) {
      double& share = shares[network.At(from, to)];
      if (!network.Allows(from, to)) share = 0;
      allowed += share;
    }
    if (allowed <= 0) shares[network.At(from, from)] = allowed = 1;
    for (int to = 0; to < network.size(); ++to) shares[network.At(from, to)] /= allowed;
  }
}

}  // namespace rudderfish
