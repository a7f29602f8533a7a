// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cluster/cluster.h"

// The cluster that can be observed and acted upon without there being one. Moves are made before
// they are broken: the replacement takes its room on the target at once, the old pod stays where it
// is until the replacement has started. Time stands still until Advance. Deterministic. Not thread
// safe.

namespace rudderfish {

class SimCluster final : public Cluster {
 public:
  // `start_delay`: from Submit until a replacement serves; zero finishes a move within Submit.
  explicit SimCluster(State start,
                      std::chrono::nanoseconds start_delay = std::chrono::nanoseconds(0));

  // Applies what changed to the State it refreshed last, if its holder has not changed it; refills
  // any other State.
  Result<void> Refresh(State* state) override;

  // REQUIRES: `completions` outlives the intents.
  void Submit(std::span<const Intent> intents, Completions* completions) override;

  std::chrono::nanoseconds Now() const override { return state_.at; }

  // Lets time pass; replacements whose time has come take over, in the order of submission.
  // REQUIRES: by >= 0.
  void Advance(std::chrono::nanoseconds by);

  int moves_in_flight() const { return static_cast<int>(in_flight_.size()); }
  const State& state() const { return state_; }

 private:
  struct MoveInFlight {
    Intent intent;
    std::chrono::nanoseconds ready_at;
    Completions* completions;
  };

  Result<void> Review(const Intent& intent) const;
  void Finish(const MoveInFlight& move);

  State state_;
  std::chrono::nanoseconds start_delay_;
  std::vector<MoveInFlight> in_flight_;  // In the order of submission, which is that of ready_at.
  std::vector<Resources> reserved_;      // [node] for replacements that have not taken over yet.
  std::vector<Migrate> unseen_;          // Finished since the last Refresh.
  const State* observer_ =
      nullptr;  // The State of the last Refresh, and its version then. Never followed.
  uint64_t observed_version_ = 0;
};

}  // namespace rudderfish
