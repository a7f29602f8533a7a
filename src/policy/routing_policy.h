// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "task/region_sight.h"

// Policies that decide where requests of each region's users go, and how many nodes every region is
// to have, once an interval, from what metrics show of the last one.
//
// A RoutingPolicy is immutable and shared; what it remembers of one run is a RoutingMemory. Decide
// allocates nothing.

namespace rudderfish {

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

  // Whether it reads RoutingQuestion::true_demand_per_s: a bound for others, and no rival of
  // theirs.
  virtual bool foresees() const { return false; }
};

}  // namespace rudderfish
