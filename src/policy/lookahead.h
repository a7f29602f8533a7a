// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "policy/beam.h"
#include "policy/policy.h"
#include "policy/walks.h"

// Look-ahead over several moves on the Model: plans once, then follows the plan while every
// question comes from where the plan leads, and replans when one does not.
//
// The best plans of a beam search are appraised exactly beside greedy's plan and staying, so that
// the answer is never worse on the Model than either. With a learned stepper the plans of its walks
// (policy/walks.h) stand beside them, and the search also looks around the best.

namespace rudderfish {

struct LookaheadOptions {
  SearchBudget budget;
  std::shared_ptr<const Policy> stepper;  // May be null.
  WalkOptions walks;                      // Of the stepper.
  std::shared_ptr<const Clock> clock =
      std::make_shared<SystemClock>();  // Read only if the budget is of time.
};

class LookaheadPolicy final : public Policy {
 public:
  LookaheadPolicy(std::string name, LookaheadOptions options);

  std::string_view name() const override { return name_; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;

  // Answer::value is what the rest of the plan wins, steps paid, in ms.
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;

  // The plan that the memory holds, for reports.
  static const Plan& PlanOf(const Memory& memory);

 private:
  std::string name_;
  LookaheadOptions options_;
};

}  // namespace rudderfish
