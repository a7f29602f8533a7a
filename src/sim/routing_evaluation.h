// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "policy/routing_policy.h"
#include "scenario/region_world.h"
#include "sim/region_simulator.h"

// Many episodes of policies that route: every policy on the same episodes of the variants of a
// scenario. What follows from it is evaluation's business.

namespace rudderfish {

struct NamedRoutingPolicy {
  std::string name;
  std::vector<std::shared_ptr<const RoutingPolicy>> members;  // One for each training seed.
};

// Episode `episode` of those that policies are judged by. REQUIRES: the variant outlives it.
RegionEpisode JudgedEpisode(const RegionVariant& variant, uint64_t seed, int episode);

// A policy in a simulator, interval by interval. Each service has its own memory.
class RoutingRun {
 public:
  // From the beginning of an episode, as the policy is to see it. Both outlive this.
  RoutingRun(const RoutingPolicy& policy, const RegionEpisode& episode, RegionSimulator* simulator);

  void Step();

 private:
  const RoutingPolicy& policy_;
  RegionSimulator* simulator_;
  std::vector<std::unique_ptr<RoutingMemory>> memories_;  // [service]
};

// A whole episode.
RoutingFigures RunRouting(const RoutingPolicy& policy, const RegionEpisode& episode,
                          RegionSimulator* simulator);

// Over episodes.
struct RoutingMeans {
  double objective = 0, late_share = 0, carbon_kg_per_h = 0, dollars_per_h = 0;
  double provider_share = 0;  // Of the provider that serves most.

  void Add(const RoutingFigures& figures, double weight);
  bool operator==(const RoutingMeans&) const = default;
};

// How far beyond limits, each as a share of itself; 0: all are kept.
double BeyondLimits(const RoutingLimits& limits, const RoutingMeans& means);

struct RoutingEvaluation {
  std::string scenario;
  uint64_t seed = 1;
  int regions = 0, episodes = 0;
  RoutingLimits limits;
  std::vector<std::string> services;  // That share nodes; empty: there is one.
  std::vector<std::string> variants, policies;
  std::vector<bool> foresees;           // [policy] Knows what comes: no baseline.
  std::vector<int> first_member;        // [policy], and how many there are of all.
  std::vector<RoutingFigures> figures;  // [variant][member of a policy][episode]
  // [variant][policy] On episodes of their own, by which the baseline is chosen.
  std::vector<RoutingMeans> trials;

  int seeds(int policy) const { return first_member[policy + 1] - first_member[policy]; }
  const RoutingFigures& at(int variant, int policy, int seed, int episode) const {
    const int row = variant * first_member.back() + first_member[policy] + seed;
    return figures[static_cast<size_t>(row) * episodes + episode];
  }
  const RoutingMeans& TrialOf(int variant, int policy) const {
    return trials[static_cast<size_t>(variant) * policies.size() + policy];
  }
};

struct RoutingEvaluationOptions {
  std::vector<int> variants;  // Positions in RegionWorld::variants.
  int episodes = 20;
  int trials = 16;  // 0: no baseline will be chosen.
  uint64_t seed = 1;
  std::function<void(double fraction)> progress;  // May be empty; on this thread.
  // Where it becomes true, no further episode begins: there are then fewer, maybe none.
  const std::atomic<bool>* stop = nullptr;
};

// On HeldOutSeed's episodes; trials on TrialSeed's. Does not depend on the number of threads.
RoutingEvaluation EvaluateRouting(const std::string& scenario,
                                  const std::shared_ptr<const RegionWorld>& world,
                                  const std::vector<NamedRoutingPolicy>& policies,
                                  const RoutingEvaluationOptions& options, ThreadPool* pool);

}  // namespace rudderfish
