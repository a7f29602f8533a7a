// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/region_laws.h"

// Where the requests of each region's users are best served: a convex problem, since congestion
// grows with load, solved by giving out twentieths of each origin's requests one after another to
// where one more is cheapest, origin by origin (Gauss and Seidel), from the last split on: asked
// every interval, once a time is enough. What a pair costs, its caller says; congestion is
// RegionLaws'. Allocates nothing once built; one thread at a time.

namespace rudderfish {

class TrafficSplitSolver {
 public:
  static constexpr int kChunks = 20;  // A share is a multiple of a twentieth.

  struct Problem {
    std::span<const double> per_s;  // [origin] Requests.
    // [origin][target] In units; infinite: not there.
    std::span<const double> pair_cost;
    std::span<const int> nodes;  // [target] That serve; 0: none does.
    // [target] Load that is there in any case, such as what waits from before; empty: none.
    std::span<const double> standing_per_s = {};
    double moving_cost = 0;  // Beside that, of what goes elsewhere than `shares` says before.
  };

  explicit TrafficSplitSolver(std::shared_ptr<const RegionLaws> laws);

  // `shares` [origin][target] holds the last split, which sums to 1 for each origin, and then the
  // new one. An origin that no target can serve keeps its last one.
  void Solve(const Problem& problem, std::span<double> shares);

  // Requests per second at each target, by the last split solved, standing ones included.
  std::span<const double> load_per_s() const { return load_; }

 private:
  void Place(const Problem& problem, int origin, std::span<const double> before,
             std::span<double> shares);

  std::shared_ptr<const RegionLaws> laws_;
  std::vector<double> load_, price_, before_;
  std::vector<RegionLaws::Congestion> congestion_;  // [target] Of the nodes that serve.
  std::vector<int> chunks_, open_;                  // Targets that an origin may use.
};

}  // namespace rudderfish
