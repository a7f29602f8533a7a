// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "model/mmc_table.h"
#include "model/region_network.h"

// What follows from a RegionNetwork once and for all: queues by table, and what a request costs by
// where it comes from and where it goes. Immutable; shared by all simulators and policies.
// "Units" are RegionNetwork::unit_dollars.

namespace rudderfish {

class RegionLaws {
 public:
  explicit RegionLaws(std::shared_ptr<const RegionNetwork> network);

  // The same regions by other prices; queues are shared.
  RegionLaws(const RegionLaws& laws, const RoutingPrices& prices);

  const RegionNetwork& network() const { return *network_; }
  const std::shared_ptr<const RegionNetwork>& shared_network() const { return network_; }
  const MmcTable& queue() const { return *queue_; }

  // Of one request more, what it makes others wait and be late, in units: the derivative of
  // rate x (price of late + price of waiting) in M/M/c, and no more than being late and waiting
  // until patience ends. In a full region every request is late already, so that it costs no more
  // to overload it further than to overload another one.
  double CongestionOf(int nodes, double per_s) const { return CongestionRow(nodes).At(per_s); }

  // The same of one number of nodes, for many loads.
  struct Congestion {
    const double* row = nullptr;
    double steps_per_load = 0;

    double At(double per_s) const {
      const double at = per_s * steps_per_load;
      if (at >= kCongestionSteps) return row[kCongestionSteps];
      const int low = static_cast<int>(at);
      return row[low] + (at - low) * (row[low + 1] - row[low]);
    }
  };
  Congestion CongestionRow(int nodes) const {
    return {congestion_.data() + static_cast<size_t>(nodes - 1) * (kCongestionSteps + 1),
            kCongestionSteps / (nodes * network_->service.node_per_s())};
  }

  // What all requests of a second cost there by waiting and by being late, in units, beyond an idle
  // region: what CongestionOf is the derivative of.
  double QueueCost(int nodes, double per_s) const;

  // Distance and egress of a pair, in units, and how many are late however idle the region is.
  double DistanceCost(int from, int to) const { return distance_[network_->At(from, to)]; }
  double BaseLate(int from, int to) const { return base_late_[network_->At(from, to)]; }

  // Nodes and carbon of a request in region `to`, in units, at this use and these prices.
  double ServingCost(int to, double use, double node_per_h, double carbon_g_per_kwh) const;

  double unit() const { return unit_; }
  double mean_on_demand_per_h() const { return mean_on_demand_per_h_; }  // Dollars, over regions.

 private:
  static constexpr int kCongestionSteps = 64;  // Of utilisation, from 0 to 1.

  void TabulateCongestion();

  std::shared_ptr<const RegionNetwork> network_;
  std::shared_ptr<const MmcTable> queue_;
  double unit_, mean_on_demand_per_h_ = 0;
  std::vector<double> congestion_;            // [node][utilisation]
  std::vector<double> queue_cost_;            // The same.
  std::vector<double> distance_, base_late_;  // [from][to]
};

// A minute, or another interval, of the queue of one region.
//
// Below saturation it is in equilibrium. Above, and until what gathered is served, a fluid backlog
// stands before it: who arrives waits for all of that. Utilisations so near 1 that equilibrium is
// further than the interval away count as that which it can reach (relaxation of M/M/1 sped up c
// times: 1 / (c mu (1 - sqrt(rho))^2), Morse: "Stochastic properties of waiting lines", 1955).
struct QueueInterval {
  // A part of the interval in which the wait goes straight from one value to another.
  struct Ramp {
    double share = 0;  // Of the interval.
    double from_s = 0, to_s = 0;
  };

  double waits = 0, spare_per_s = 0;  // Of who meets no backlog (MmcTail).
  Ramp backlog[2];         // Until it is gone or as long as patience; and while it is that long.
  double gave_up = 0;      // Share of those who came.
  double mean_wait_s = 0;  // Of those who are served.

  // Share that is later than t after coming, service included.
  double LateShare(double service_per_s, double t_s, double served) const;
};

// `backlog`: requests that wait, before and after. `nodes` 0: no request is served.
QueueInterval RunQueue(const RegionLaws& laws, int nodes, double per_s, double seconds,
                       double* backlog);

}  // namespace rudderfish
