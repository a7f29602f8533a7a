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
// No way to place them comes below. It is a bound, not a plan: a placement policy cannot move a pod
// later, and does not know how long one stays.
//
// What pods are there at a moment is the same for all ways under which none waits.

namespace rudderfish {

// The objective `balance` of nodes without devices, which are added one by one: the standard
// deviations of their utilisation of CPU and of memory, added.
class Imbalance {
 public:
  void Add(const Resources& used, const Resources& allocatable);
  double Of(int nodes) const;

 private:
  double cpu_ = 0, cpu_squared_ = 0, memory_ = 0, memory_squared_ = 0;
};

// The least imbalance of some pods on some nodes, all splits tried; remembered by counts of pods.
// One thread at a time.
class LeastImbalance {
 public:
  // REQUIRES: `state` has no devices; it outlives this.
  explicit LeastImbalance(const State& state);

  // So many pods of each workload. Infinite if they do not fit.
  double Of(std::span<const int32_t> pods);

  // How many splits `Of` tries at most.
  double Splits(std::span<const int32_t> pods) const;

 private:
  void Fill(size_t node, size_t workload, Resources used, const Imbalance& before);
  void Close(size_t node, const Resources& used, Imbalance nodes);

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
