// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/region_laws.h"
#include "policy/routing_policy.h"
#include "scenario/region_world.h"
#include "sim/region_weather.h"

// Regions that serve requests, interval by interval: what policies see, what follows from what they
// answer, and what it costs. Queues are in equilibrium or overflow (RunQueue); nodes that are
// ordered serve once they have started, and are paid from their order on; those given back stop at
// once. Allocates nothing once built; one thread at a time.

namespace rudderfish {

// Sums of an episode. Costs in units of RegionNetwork::unit_dollars.
struct RoutingFigures {
  double requests = 0, hours = 0;
  double nodes = 0, egress = 0, carbon = 0, late = 0, wait = 0, change = 0;  // Costs.
  double late_requests = 0;
  double node_hours = 0, spot_hours = 0, carbon_kg = 0, dollars = 0;
  double changes = 0;  // Nodes ordered and given back.
  double foreign = 0;  // Requests served elsewhere than where they came from.

  double objective() const {
    return requests > 0 ? (nodes + egress + carbon + late + wait + change) / requests : 0;
  }
  double PerRequest(double sum) const { return requests > 0 ? sum / requests : 0; }
  double late_share() const { return PerRequest(late_requests); }
  double carbon_kg_per_h() const { return hours > 0 ? carbon_kg / hours : 0; }
  double dollars_per_h() const { return hours > 0 ? dollars / hours : 0; }
};

// How many requests were answered later than each of some times, summed over episodes.
struct LatencyTally {
  std::vector<double> times_s;
  std::vector<double> later;  // [time] Requests.
  double requests = 0;
};

class RegionSimulator {
 public:
  RegionSimulator(std::shared_ptr<const RegionWorld> world, std::shared_ptr<const RegionLaws> laws);

  // Whether questions tell what demand is to come: for policies that foresee.
  enum class Foresight { kNone, kDemand };

  // Everybody is served at home, by on-demand nodes that are 60 % in use.
  void Start(const RegionEpisode& episode, Foresight foresight = Foresight::kNone);

  RoutingQuestion Question() const;

  // The split and the nodes of now, which a policy changes.
  RoutingAnswer Answer() { return {.shares = shares_, .nodes = nodes_}; }

  // An interval under Answer().
  void Step();

  // Adds every further interval to `tally`, at some cost; nullptr: to none. It outlives that.
  void Watch(LatencyTally* tally) { tally_ = tally; }

  const RoutingFigures& figures() const { return figures_; }
  const RegionWorld& world() const { return *world_; }

 private:
  static constexpr int kStartStepsMax = 64;
  static constexpr int kForeseen = 16;  // Intervals.

  // Nodes of one price in one region.
  struct Crew {
    int ready = 0;
    int starting[kStartStepsMax] = {};  // [steps until it serves]
    int pending() const;
  };

  void Order(int region, NodePrice price, int wanted);
  void StartNodes(int region);
  void Serve();
  void ServePair(int from, int to, const QueueInterval& queue);
  void Tally(double requests, double trip_s, double cold, const QueueInterval& queue);
  void Pay(int region, double use);
  void Look();
  void Foresee();
  Crew& crew(int region, int price) { return crews_[region * kNodePrices + price]; }

  std::shared_ptr<const RegionWorld> world_;
  std::shared_ptr<const RegionLaws> laws_;
  RegionVariant variant_;
  RegionWeatherSource source_;
  RegionWeatherSource ahead_;           // The same, kForeseen intervals on.
  std::vector<double> demand_to_come_;  // [interval][region] Empty without foresight.
  RoutingFigures figures_;
  LatencyTally* tally_ = nullptr;
  int step_ = 0;
  std::vector<double> shares_, flow_;         // [origin][target] Shares; requests per second.
  std::vector<double> warm_;                  // [origin][target] What it is used to, the same.
  std::vector<double> served_, served_cold_;  // [origin][target] exp(-rate x time left).
  std::vector<double> backlog_, load_;        // [region]
  std::vector<int> nodes_;                    // [region][NodePrice]
  std::vector<Crew> crews_;                   // [region][NodePrice]
  std::vector<RegionSight> sights_;
};

}  // namespace rudderfish
