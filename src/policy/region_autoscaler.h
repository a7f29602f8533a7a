// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "policy/routing_policy.h"

// What adds and removes nodes in each region below every rule that routes: as a
// HorizontalPodAutoscaler on requests per second does (policy/hpa.h), with its tolerance and
// stabilization, but of nodes, of which a share is spot.

namespace rudderfish {

struct RegionAutoscaling {
  double use = 0.6;         // Of what ready nodes can serve, to aim at.
  double tolerance = 0.1;   // Relative difference that is ignored.
  double spot_share = 0.5;  // Of nodes, where there is spot.
  double down_s = 300;      // The most nodes of so long ago are kept.
};

class RegionAutoscaler {
 public:
  static constexpr int kIntervalsMax = 120;

  RegionAutoscaler(const RegionAutoscaling& options, int regions);

  // In place of the options' use and share of spot, in one region, from now on.
  void Aim(int region, double use, double spot_share) { aims_[region] = {use, spot_share}; }

  // `load_per_s` [target] to be served.
  void Decide(const RoutingQuestion& question, std::span<const double> load_per_s,
              std::span<int> nodes);

 private:
  struct Aimed {
    double use, spot_share;
  };

  RegionAutoscaling options_;
  std::vector<Aimed> aims_;  // [region]
  std::vector<int> recent_;  // [region][interval] Nodes wanted, a ring.
  int step_ = 0;
};

}  // namespace rudderfish
