// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/decision.h"
#include "cluster/state.h"

// A cluster can be observed and acted upon. There are two: the simulated one (sim/sim_cluster.h)
// and the live one; tests/contract holds what both must keep. Not thread safe: one driver owns a
// Cluster.

namespace rudderfish {

// What became of one submitted intent, in the order in which they finished.
struct Completion {
  Intent intent;
  Result<void>
      outcome;  // kConflict: what the intent touches has changed; kFailedPrecondition: no room.
  std::string move = {};  // The id of the move of a pod (cluster/pod_move.h), where there was one.
};

using Completions = std::vector<Completion>;

class Cluster {
 public:
  virtual ~Cluster() = default;

  // Brings `state` up to date. The first call fills an empty State; later calls apply what changed.
  virtual Result<void> Refresh(State* state) = 0;

  // Starts carrying out `intents`; results arrive in `completions`, now or during a later call. An
  // intent whose preconditions no longer hold is refused and changes nothing.
  virtual void Submit(std::span<const Intent> intents, Completions* completions) = 0;

  // The cluster's own time: simulated or real, never going back.
  virtual std::chrono::nanoseconds Now() const = 0;
};

}  // namespace rudderfish
