// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "policy/policy.h"

// A learned policy that never does knowingly worse than the simple thing. It rolls the inner policy
// out on the Model, once with its most likely answers and `samples` times with answers drawn from
// its probabilities, rolls greedy out beside them, and follows the plan that costs least, cut to
// its best prefix; or stays, if that is cheapest.
//
// The inner policy ranks candidates by log-probability, stop last (Answer::scores). All rollouts go
// side by side: each step asks the inner policy about all of them as one batch. Chance comes from
// the memory's seed.

namespace rudderfish {

struct RolloutOptions {
  int samples = 16;
};

class BestOfPolicy final : public Policy {
 public:
  BestOfPolicy(std::string name, std::shared_ptr<const Policy> inner, RolloutOptions options);

  std::string_view name() const override { return name_; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;

 private:
  std::string name_;
  std::shared_ptr<const Policy> inner_;
  RolloutOptions options_;
};

}  // namespace rudderfish
