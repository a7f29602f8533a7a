// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "policy/plan.h"
#include "policy/policy.h"

// The best plan there is, proven, where the world is small: the yardstick for "share of the
// optimum".
//
// Best-first branch and bound over placements. A plan from a placement ends at some number of pods
// of each workload on each kind of node, and takes at least one move for every pod that must change
// its kind: the bound of a placement is the least latency by kind plus step costs over all such
// ends. Ends are listed once, without those that no packing of pods onto nodes allows; only those
// that could beat the incumbent, a wide beam search's plan, are kept.
//
// "Proven" means: no plan is better by more than the tolerance, which is how far latency by kind
// may be from the exact one (thousandths of a millisecond under the `reach` law). Under the
// `physical` law, whose transfer and loopback depend on nodes, nothing is ever proven. Beyond the
// limits below the best plan found is returned, unproven.
//
// Made for reports, not for the hot path: unlike other policies it allocates, and a plan may take a
// second.

namespace rudderfish {

struct ExactLimits {
  int64_t ends = 4'000'000;     // Ends that are looked at.
  int64_t placements = 20'000;  // Placements that are expanded.
  int width = 512;              // Of the beam search before.
};

struct ExactResult {
  Plan plan;
  bool proven = false;
  double bound_ms = 0;  // No plan costs less, but for the tolerance. -infinity if nothing is known.
  double tolerance_ms = 0;
  int64_t placements = 0;   // Expanded.
  std::string_view reason;  // Why it is not proven; empty if it is.
};

ExactResult PlanExactly(Evaluator* model, const Task& task, const Question& question,
                        const ExactLimits& limits = {});

class ExactPolicy final : public Policy {
 public:
  explicit ExactPolicy(ExactLimits limits = {}) : limits_(limits) {}

  std::string_view name() const override { return "exact"; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;

  // What is known of the plan that the memory is following.
  static const ExactResult& ResultOf(const Memory& memory);

 private:
  ExactLimits limits_;
};

}  // namespace rudderfish
