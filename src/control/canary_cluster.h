// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cluster/cluster.h"

// A cluster of which only the pods of some workloads may be moved: those that a hash of their names
// picks, the same ones each time. The others are the canary's control group.
//
// Holds the contract of Cluster. Not thread safe; the real cluster outlives it.

namespace rudderfish {

class CanaryCluster final : public Cluster {
 public:
  explicit CanaryCluster(Cluster* real) : real_(real) {}
  CanaryCluster(const CanaryCluster&) = delete;

  // The share of the workloads, 0 to 1; at least one of those that may be moved, and below 1 not
  // all, if there are two. Versions of States do not tell.
  void SetShare(double share) { share_ = share; }

  Result<void> Refresh(State* state) override;
  void Submit(std::span<const Intent> intents, Completions* completions) override {
    real_->Submit(intents, completions);
  }
  std::chrono::nanoseconds Now() const override { return real_->Now(); }

 private:
  void Restrict();

  Cluster* real_;
  double share_ = 1, restricted_by_ = 1;
  // One catalog as long as nothing differs: States are compared by it.
  std::shared_ptr<const Catalog> whole_, restricted_;
};

}  // namespace rudderfish
