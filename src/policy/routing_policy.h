// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "model/region_laws.h"

// Policies that decide where requests of each region's users go, and how many nodes every region is
// to have, once an interval, from what metrics show of the last one.
//
// A RoutingPolicy is immutable and shared; what it remembers of one run is a RoutingMemory. Decide
// allocates nothing.

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
  bool reachable = true;

  int ready_nodes() const { return ready[0] + ready[1]; }
  int nodes() const { return ready_nodes() + pending[0] + pending[1]; }
};

struct RoutingQuestion {
  int step = 0;
  double interval_s = 60;
  bool has_spot = false;  // Whether there are spot nodes at all.
  const RegionLaws* laws = nullptr;
  std::span<const RegionSight> regions;
};

struct RoutingAnswer {
  std::span<double> shares;  // [origin][target] Those of now, and then the new ones; sums of 1.
  std::span<int> nodes;      // [target][NodePrice] To have, ordered ones included.
};

class RoutingMemory {
 public:
  virtual ~RoutingMemory() = default;
};

class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;

  virtual std::unique_ptr<RoutingMemory> NewMemory(
      const std::shared_ptr<const RegionLaws>& laws) const = 0;

  // REQUIRES: `memory` is of the same laws.
  virtual void Decide(const RoutingQuestion& question, RoutingMemory* memory,
                      const RoutingAnswer& answer) const = 0;
};

}  // namespace rudderfish
