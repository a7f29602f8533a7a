// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "policy/policy.h"

// The two policies that know nothing, against which every other must show its worth.

namespace rudderfish {

// Never moves anything.
class StayPolicy final : public Policy {
 public:
  std::string_view name() const override { return "stay"; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;
};

// Any allowed cell of the matrix pods x nodes, or stop, each as likely as any other. Where a
// question lists representatives only, any cell of those.
class RandomPolicy final : public Policy {
 public:
  std::string_view name() const override { return "random"; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;
};

}  // namespace rudderfish
