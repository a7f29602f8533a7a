// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <semaphore>
#include <span>
#include <string_view>

#include "policy/greedy.h"

// A policy that thinks for as long as a test wants.

namespace rudderfish {

// Greedy, but each question waits until it is told to go on. Thread-safe.
class SlowGreedy final : public Policy {
 public:
  std::string_view name() const override { return "slow"; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override {
    return greedy_.NewMemory(seed);
  }
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override {
    go_on_.acquire();
    greedy_.Decide(asks, answers);
  }
  // With so many questions.
  void GoOn(int questions = 1) const { go_on_.release(questions); }

 private:
  GreedyPolicy greedy_;
  mutable std::counting_semaphore<> go_on_{0};
};

}  // namespace rudderfish
