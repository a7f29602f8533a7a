// SPDX-License-Identifier: Apache-2.0
#include "policy/baselines.h"

#include "base/check.h"
#include "base/rng.h"

namespace rudderfish {
namespace {

struct RandomMemory final : Memory {
  explicit RandomMemory(uint64_t seed) : rng(seed) {}
  Rng rng;
};

}  // namespace

std::unique_ptr<Memory> StayPolicy::NewMemory(uint64_t) const { return std::make_unique<Memory>(); }

void StayPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (Answer& answer : answers) {
    answer.choice = kStop;
    answer.value = 0;
    answer.scores.clear();
  }
}

std::unique_ptr<Memory> RandomPolicy::NewMemory(uint64_t seed) const {
  return std::make_unique<RandomMemory>(seed);
}

void RandomPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    uint32_t cells = 1;
    for (const Candidate& candidate : asks[i].space->candidates) cells += candidate.pods;
    uint32_t drawn = static_cast<RandomMemory*>(asks[i].memory)->rng.Below(cells);
    answers[i].choice = kStop;
    answers[i].value = 0;
    answers[i].scores.clear();
    for (int c = 0; c < asks[i].space->count(); ++c) {
      const uint32_t pods = asks[i].space->candidates[c].pods;
      if (drawn < pods) {
        answers[i].choice = c;
        break;
      }
      drawn -= pods;
    }
  }
}

}  // namespace rudderfish
