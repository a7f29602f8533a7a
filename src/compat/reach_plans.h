// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cluster/decision.h"
#include "cluster/state.h"
#include "model/placement.h"

// The plans of clients that remember nothing. REACH's migrator asks after every move as if it asked
// for the first time; a placement that an answer of ours led to goes on with the plan of that
// answer, so that no client is led in a circle and steps cost what they cost in a plan. What is
// free on nodes is no part of a placement: a move need not free what the scenario says.
//
// Thread safe.

namespace rudderfish {

struct ReachPlan {
  struct Cell {
    std::string workload, node;
  };

  struct NamedMove {
    std::string workload, from, to;
  };

  int step = 0;            // Moves made so far.
  std::vector<Cell> left;  // By these moves; not returned to.

  std::vector<NamedMove> rest;  // That it goes on with.

  // The same in ids of the state, less what is not there.
  std::vector<LeftCell> LeftIn(const State& state) const;
  // Nothing unless all of it is there.
  std::vector<Move> RestIn(const State& state) const;
  void SetRest(const State& state, std::span<const Move> moves);
};

class ReachPlans {
 public:
  // The plan that led to the state's placement; a new one if none did.
  ReachPlan At(const State& state) const;

  // The answer is given: the placement that it leads to goes on with the plan.
  void Lead(const State& state, const Migrate& move, ReachPlan plan);

 private:
  static constexpr size_t kPlacementsMax = 4096;  // The oldest is forgotten.

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, ReachPlan> plans_;  // By placement.
  std::deque<uint64_t> order_;                     // Oldest first.
};

}  // namespace rudderfish
