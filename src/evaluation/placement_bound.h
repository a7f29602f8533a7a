// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "cluster/state.h"
#include "scenario/scenario.h"

// How even a small cluster can at best be used while pods come and go: at every moment, the least
// that the objective `balance` is over all ways to split the pods that are there over the nodes.
// No way to place them comes below. It is a bound and no way: whoever places cannot move a pod
// later, and does not know how long one stays.
//
// What pods are there at a moment is the same for all ways under which none waits.

namespace rudderfish {

// The least imbalance of some pods on some nodes, all splits tried; remembered by counts of pods.
// One thread at a time.
class LeastImbalance {
 public:
  // REQUIRES: `state` has no devices; it outlives this.
  explicit LeastImbalance(const State& state);

  // Standard deviations of the nodes' utilisation of CPU and of memory, added: the objective. As
  // many pods of each workload. Infinite if they do not fit.
  double Of(std::span<const int32_t> pods);

  // How many splits `Of` tries at most.
  double Splits(std::span<const int32_t> pods) const;

 private:
  struct Sums {
    double cpu = 0, cpu_squared = 0, memory = 0, memory_squared = 0;
  };

  void Fill(size_t node, size_t workload, Resources used, const Sums& sums);
  void Close(size_t node, const Resources& used, const Sums& sums);

  const State* state_;
  std::vector<int32_t> left_;  // [workload] Not yet on a node.
  double best_ = 0;
  std::map<std::vector<int32_t>, double> known_;
};

// The bound of the mean over time of `balance` in one episode. kFailedPrecondition, and why: the
// objective is another, nodes come and go, pods may not run everywhere, a pod has to wait, or there
// are more than kMostSplits ways to split them.
Result<double> LeastBalance(std::shared_ptr<const Scenario> scenario, uint64_t seed);
inline constexpr double kMostSplits = 2e7;

}  // namespace rudderfish
