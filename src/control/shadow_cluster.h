// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/cluster.h"

// A recorder in place of the actuator: a cluster that is observed as it is and never touched. What
// is submitted is imagined: from then on the State is the real one with those moves made, so that
// a plan's later steps are decided on what its earlier ones would have led to. When the real
// cluster changes, what was imagined is given up, and TakeChange says so: a plan begun before is no
// plan for what is there now.
//
// Holds the contract of Cluster (tests/contract). Not thread safe; the real cluster outlives it.

namespace rudderfish {

class ShadowCluster final : public Cluster {
 public:
  explicit ShadowCluster(Cluster* real) : real_(real) {}
  ShadowCluster(const ShadowCluster&) = delete;

  // Brings the real state up to date without showing it: gives up what was imagined if it changed.
  Result<void> Look();

  // Whether the real cluster has changed since this was asked last; true the first time.
  bool TakeChange();

  // Back to what is real: before a new plan.
  void Forget();

  Result<void> Refresh(State* state) override;
  void Submit(std::span<const Intent> intents, Completions* completions) override;
  std::chrono::nanoseconds Now() const override { return real_->Now(); }

  // As of the last Look or Refresh.
  const State& real_state() const { return real_state_; }

 private:
  Result<void> Review(const Intent& intent) const;

  Cluster* real_;
  State real_state_;
  State imagined_;  // What is shown. Its version counts what was shown, not the real one's.
  bool looked_ = false;
  bool changed_ = true;
  uint64_t real_version_ = 0;
  const State* observer_ = nullptr;  // The State of the last Refresh. Never followed.
};

}  // namespace rudderfish
