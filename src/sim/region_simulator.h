// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/region_laws.h"
#include "policy/routing_policy.h"
#include "scenario/region_world.h"
#include "sim/region_nodes.h"
#include "sim/region_weather.h"

// Regions that serve requests, interval by interval: what policies see, what follows from what they
// answer, and what it costs. Queues are in equilibrium or overflow (RunQueue); nodes are paid from
// their order on (RegionNodes).
//
// One service has the nodes for itself, or several share them. Then each is asked about on its own,
// with pods in the place of nodes: there are nodes for all pods that are wanted, pods fill them
// without gaps, and where nodes lack, each service has the same part of its pods. Pods move and
// start within an interval; nodes do not. Allocates nothing once built; one thread at a time.

namespace rudderfish {

// Sums of an episode. Costs in units of RegionNetwork::unit_dollars.
struct RoutingFigures {
  double requests = 0, hours = 0;
  double nodes = 0, egress = 0, carbon = 0, late = 0, wait = 0, change = 0;  // Costs.
  double late_requests = 0;
  double node_hours = 0, spot_hours = 0, carbon_kg = 0, dollars = 0;
  double changes = 0;  // Nodes ordered and given back.
  double foreign = 0;  // Requests served elsewhere than where they came from.

  struct OfService {
    double requests = 0, late_requests = 0;
  };
  std::array<OfService, kMostServices> services{};   // Those there are; the only one has the first.
  std::array<double, kMostProviders> of_provider{};  // Requests.

  double objective() const {
    return requests > 0 ? (nodes + egress + carbon + late + wait + change) / requests : 0;
  }
  double PerRequest(double sum) const { return requests > 0 ? sum / requests : 0; }
  // Of the provider that serves most.
  double provider_share() const {
    return PerRequest(*std::max_element(of_provider.begin(), of_provider.end()));
  }
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
  // `laws`: LawsOf the world.
  RegionSimulator(std::shared_ptr<const RegionWorld> world, ServiceLaws laws);

  // Whether questions tell what demand is to come: for policies that foresee.
  enum class Foresight { kNone, kDemand };

  // All requests are served at home, by on-demand nodes that are 60 % in use.
  void Start(const RegionEpisode& episode, Foresight foresight = Foresight::kNone);

  int services() const { return static_cast<int>(services_.size()); }
  const std::shared_ptr<const RegionLaws>& laws(int service) const {
    return services_[static_cast<size_t>(service)].laws;
  }

  // About one service: its nodes, or its pods where several share nodes.
  RoutingQuestion Question(int service) const;

  // Its split and its nodes or pods of now, which a policy changes.
  RoutingAnswer Answer(int service);

  // An interval under all answers.
  void Step();

  // Adds every further interval to `tally`, at some cost; nullptr: to none. It outlives that.
  void Watch(LatencyTally* tally) { tally_ = tally; }

  const RoutingFigures& figures() const { return figures_; }
  const RegionWorld& world() const { return *world_; }
  const RegionNodes& nodes() const { return nodes_; }

 private:
  static constexpr int kForeseen = 16;  // Intervals.

  struct Service {
    std::shared_ptr<const RegionLaws> laws;
    int per_node = 1;                         // Pods of it; 1 where it has nodes for itself.
    double unit = 1;                          // Of its laws, in those of the figures.
    std::vector<double> shares, flow;         // [origin][target] Shares; requests per second.
    std::vector<double> warm;                 // [origin][target] What it is used to, the same.
    std::vector<double> served, served_cold;  // [origin][target] exp(-rate x time left).
    std::vector<double> backlog, load;        // [region]
    std::vector<int> wanted, ready, held;     // [region][NodePrice] Nodes or pods.
    std::vector<double> to_come;              // [interval][region] Empty without foresight.
    std::vector<RegionSight> sights;          // [region]
  };

  Service ServiceBy(const std::shared_ptr<const RegionLaws>& laws) const;
  void StartService(int service);
  void OrderNodes(int region);
  void StartNodes(int region);
  int Serving(int region, int price) const;
  void Fill(int region, int price, int nodes, std::vector<int> Service::*to);
  void Serve(int service);
  void ServePair(int service, int from, int to, const QueueInterval& queue);
  void Tally(const RegionService& service, double requests, double trip_s, double cold,
             const QueueInterval& queue);
  void Pay(int region);
  void Look();
  void Foresee();

  std::shared_ptr<const RegionWorld> world_;
  double unit_, mean_on_demand_per_h_ = 0;
  RegionVariant variant_;
  RegionWeatherSource source_;
  RegionWeatherSource ahead_;  // The same, kForeseen intervals on.
  RegionNodes nodes_;
  RoutingFigures figures_;
  LatencyTally* tally_ = nullptr;
  int step_ = 0;
  std::vector<Service> services_;
  std::vector<double> remainders_;  // [service] Of pods that nodes lack for.
};

}  // namespace rudderfish
