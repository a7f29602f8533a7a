// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model/region_laws.h"

// Three regions in a row: `near` is 20 ms from `home`, `far` 200 ms from both. All alike but for
// what a test changes.

namespace rudderfish::testing {

inline RegionNetwork SmallRegions() {
  RegionNetwork network;
  network.service = {.pod_per_s = 20,
                     .pods_per_node = 4,
                     .deadline_s = 0.4,
                     .response_bytes = 8000,
                     .idle_watts = 10,
                     .busy_watts = 15};
  network.objective = {.carbon_per_kg = 6.5, .late = 20, .wait_per_s = 1};
  for (const char* name : {"home", "near", "far"}) {
    Region region{.name = name, .zone = "z", .peak_per_s = 400};
    region.on_demand_per_h = 0.15;
    region.spot_per_h = 0.05;
    region.carbon_g_per_kwh.fill(300);
    region.start_low_s = 120;
    region.start_high_s = 240;
    region.nodes_max = 40;
    network.regions.push_back(region);
  }
  network.rtt_s = {0, 0.02, 0.2, 0.02, 0, 0.2, 0.2, 0.2, 0};
  network.egress_per_gb = {0, 0.02, 0.02, 0.02, 0, 0.02, 0.02, 0.02, 0};
  return network;
}

inline std::shared_ptr<const RegionLaws> LawsOf(RegionNetwork network) {
  return std::make_shared<const RegionLaws>(
      std::make_shared<const RegionNetwork>(std::move(network)));
}

}  // namespace rudderfish::testing
