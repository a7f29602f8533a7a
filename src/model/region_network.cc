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
  RegionNetwork part{
      .service = network.service, .objective = network.objective, .limits = network.limits};
  for (const int from : positions) {
    part.regions.push_back(network.regions[from]);
    for (const int to : positions) {
      part.rtt_s.push_back(network.rtt_s[network.At(from, to)]);
      part.egress_per_gb.push_back(network.egress_per_gb[network.At(from, to)]);
    }
  }
  return part;
}

}  // namespace rudderfish
