// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "model/region_laws.h"

// What metrics show of regions that serve the same requests, once an interval: the question about
// where requests go and how many nodes every region is to have.

namespace rudderfish {

enum NodePrice { kOnDemand, kSpot };
inline constexpr int kNodePrices = 2;

// One region as metrics show it.
struct RegionSight {
  double demand_per_s = 0;              // Of its users, over the last interval.
  double load_per_s = 0;                // That was sent to it.
  double backlog = 0;                   // Requests that wait beyond what is usual at its use.
  double wait_s = 0;                    // In its queue, in the mean.
  int ready[kNodePrices] = {};          // Nodes that serve,
  int pending[kNodePrices] = {};        // and that were ordered.
  int lost = 0;                         // Spot nodes that were taken away in the last interval.
  double node_per_h[kNodePrices] = {};  // Dollars.
  double carbon_g_per_kwh = 0;
  bool notice = false;  // Its provider warns that spot nodes may be taken away.
  bool reachable = true;

  int ready_nodes() const { return ready[0] + ready[1]; }
  int nodes(int price) const { return ready[price] + pending[price]; }
  int nodes() const { return nodes(0) + nodes(1); }
};

struct RoutingQuestion {
  int step = 0;
  double interval_s = 60;
  bool has_spot = false;     // Whether there are spot nodes at all,
  bool has_notices = false;  // and whether providers warn of their loss.
  const RegionLaws* laws = nullptr;
  std::span<const RegionSight> regions;
  // [interval, from the next one on][region] Demand that is to come, of each second; empty where it
  // is not known, as it never is outside of a simulator.
  std::span<const double> true_demand_per_s;
};

}  // namespace rudderfish
