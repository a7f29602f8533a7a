// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/cluster.h"
#include "cluster/scheduling_observer.h"
#include "run/move_driver.h"

// A live cluster whose pods are moved for real: what is submitted, a MoveDriver carries out. An
// intent completes when its move has ended and what is seen of the cluster shows it.
//
// Holds the contract of Cluster. Not thread safe.

namespace rudderfish {

class MovingCluster final : public Cluster {
 public:
  struct Ended {
    PodIdentity pod;
    WorkloadId workload = 0;
    std::string from, to;  // Names of nodes.
    MoveDriver::End end;
  };
  struct Calls {
    std::function<PodIdentity(PodId)> identity_of;  // In the State that was refreshed last.
    std::function<void(const Ended&)> on_end;
  };

  // `seen` and the driver outlive it.
  MovingCluster(Cluster* seen, MoveDriver* driver, Calls calls)
      : seen_(seen), driver_(driver), calls_(std::move(calls)) {}
  ~MovingCluster() override;
  MovingCluster(const MovingCluster&) = delete;

  // The move that is under way, or has ended and is not seen yet, if there is one. Its end is not
  // asked for here any more.
  struct LetGoMove {
    uint64_t order = 0;
    std::optional<MoveDriver::End> end;                // It has ended, and on_end was called.
    std::function<void(const MoveDriver::End&)> tell;  // Calls on_end, also once this is gone.
  };
  std::optional<LetGoMove> LetGo();

  Result<void> Refresh(State* state) override;
  void Submit(std::span<const Intent> intents, Completions* completions) override;
  std::chrono::nanoseconds Now() const override { return seen_->Now(); }

 private:
  struct Flight {
    uint64_t order = 0;
    Intent intent;
    Completions* completions = nullptr;
    Ended ended;
    bool has_ended = false;
    std::chrono::nanoseconds ended_at{0};
  };

  bool IsSeen(const Flight& flight, const State& state) const;

  Cluster* seen_;
  MoveDriver* driver_;
  Calls calls_;
  State last_;  // Names and workloads of the State that was refreshed last.
  std::vector<Flight> flights_;
};

}  // namespace rudderfish
