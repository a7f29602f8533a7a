// SPDX-License-Identifier: Apache-2.0
#include "sim/region_nodes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace rudderfish {

int RegionNodes::Crew::pending() const {
  return std::accumulate(std::begin(starting), std::end(starting), 0);
}

RegionNodes::RegionNodes(std::shared_ptr<const RegionWorld> world)
    : world_(std::move(world)),
      crews_(static_cast<size_t>(world_->network->size()) * kNodePrices) {}

void RegionNodes::Clear() { std::fill(crews_.begin(), crews_.end(), Crew{}); }

int RegionNodes::held(int region, int price) const {
  const Crew& own = crew(region, price);
  return own.ready + own.pending();
}

void RegionNodes::Give(int region, NodePrice price, int nodes) {
  const int most = world_->network->regions[region].nodes_max - held(region, 0) - held(region, 1);
  crew(region, price).ready += std::clamp(nodes, 0, most);
}

int RegionNodes::Order(int region, int on_demand, int spot, const RegionWeather& weather) {
  const int most = world_->network->regions[region].nodes_max;
  const int dear = std::clamp(on_demand, 0, most);
  return OrderOf(region, kOnDemand, dear, weather) +
         OrderOf(region, kSpot, std::clamp(spot, 0, most - dear), weather);
}

int RegionNodes::OrderOf(int region, NodePrice price, int wanted, const RegionWeather& weather) {
  Crew& own = crew(region, price);
  const int now = own.ready + own.pending();
  if (wanted > now) {
    int granted = wanted - now;
    if (price == kSpot) granted = static_cast<int>(std::lround(granted * weather.spot_granted));
    const int steps = std::clamp(
        static_cast<int>(std::lround(weather.start_s / world_->interval_s)), 0, kStartStepsMax - 1);
    own.starting[steps] += granted;
    return granted;
  }
  int surplus = now - wanted;
  const int given_back = surplus;
  for (int steps = kStartStepsMax - 1; steps >= 0 && surplus > 0; --steps) {
    const int cancelled = std::min(surplus, own.starting[steps]);
    own.starting[steps] -= cancelled;
    surplus -= cancelled;
  }
  own.ready -= surplus;
  return given_back;
}

void RegionNodes::Start(int region) {
  for (int price = 0; price < kNodePrices; ++price) {
    Crew& own = crew(region, price);
    own.ready += own.starting[0];
    std::copy(std::begin(own.starting) + 1, std::end(own.starting), std::begin(own.starting));
    own.starting[kStartStepsMax - 1] = 0;
  }
}

int RegionNodes::Lose(int region, const RegionWeather& weather) {
  Crew& spot = crew(region, kSpot);
  const int lost =
      std::min(spot.ready, static_cast<int>(std::ceil(spot.ready * weather.reclaimed)));
  spot.ready -= lost;
  return lost;
}

}  // namespace rudderfish
