// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "scenario/region_world.h"
#include "sim/region_weather.h"
#include "task/region_sight.h"

// The nodes of all regions: ordered, started, taken away, given back. Those that are ordered serve
// once they have started; those given back stop at once. Allocates nothing once built.

namespace rudderfish {

class RegionNodes {
 public:
  explicit RegionNodes(std::shared_ptr<const RegionWorld> world);

  // None at all.
  void Clear();

  // To have so many, within the quota; on-demand ones come first. Returns how many were ordered and
  // given back.
  int Order(int region, int on_demand, int spot, const RegionWeather& weather);

  // Nodes that serve at once, however long that takes others.
  void Give(int region, NodePrice price, int nodes);

  // An interval on: nodes that have started serve.
  void Start(int region);

  // Spot nodes that are taken away; returns how many.
  int Lose(int region, const RegionWeather& weather);

  int ready(int region, int price) const { return crew(region, price).ready; }
  int ready(int region) const { return ready(region, kOnDemand) + ready(region, kSpot); }
  // Ordered ones included.
  int held(int region, int price) const;

 private:
  static constexpr int kStartStepsMax = 64;

  // Nodes of one price in one region.
  struct Crew {
    int ready = 0;
    int starting[kStartStepsMax] = {};  // [steps until it serves]
    int pending() const;
  };

  int OrderOf(int region, NodePrice price, int wanted, const RegionWeather& weather);
  Crew& crew(int region, int price) { return crews_[region * kNodePrices + price]; }
  const Crew& crew(int region, int price) const { return crews_[region * kNodePrices + price]; }

  std::shared_ptr<const RegionWorld> world_;
  std::vector<Crew> crews_;  // [region][NodePrice]
};

}  // namespace rudderfish
