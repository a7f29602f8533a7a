// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "kube/mirror.h"

// Nodes whose pods end soon, whatever we do, as the cluster shows it: those that cluster-autoscaler
// or Karpenter deletes, by their taints, and those that are drained. A drain is a cordon and
// evictions; a node that is cordoned and of which nothing was evicted is only closed to new pods,
// and what runs there is to stay. One thread.

namespace rudderfish {

// Which of them are meant. A cordon alone is taken for a drain where the user says so: of pods
// whose PodDisruptionBudgets allow no eviction nothing else shows that a drain waits for them.
enum class Evacuate { kNone, kDraining, kCordoned };

class LeavingNodes {
 public:
  // Both outlive it.
  LeavingNodes(const kube::Mirror* mirror, const Clock* clock) : mirror_(mirror), clock_(clock) {}

  void Configure(Evacuate which);

  // Looks, at most once a second. Does not wait.
  void Turn();

  bool Has(std::string_view node) const { return nodes_.find(node) != nodes_.end(); }
  uint64_t changes() const { return changes_; }  // Of which they are, so far.

 private:
  std::set<std::string, std::less<>> Look() const;

  const kube::Mirror* mirror_;
  const Clock* clock_;
  Evacuate which_ = Evacuate::kDraining;
  std::optional<Instant> looked_;
  std::set<std::string, std::less<>> nodes_;
  uint64_t changes_ = 0;
};

}  // namespace rudderfish
