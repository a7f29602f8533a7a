// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "task/task.h"

// A policy answers questions: heuristics, search and networks alike. Batch first: a network answers
// a thousand environments in one pass, a heuristic loops.
//
// A Policy is immutable and shared; what it remembers of one running instance (a plan it is
// following, a random stream) lives in a Memory, one per environment or controller. Decide may be
// called from several threads with different memories. It allocates nothing once memories and
// answers have seen the largest question.

namespace rudderfish {

class Memory {
 public:
  virtual ~Memory() = default;

  // A new plan begins: forget what was remembered of the last one.
  virtual void Restart() {}
};

struct Ask {
  Evaluator* model = nullptr;  // In the state asked about; left as it was found.
  const Task* task = nullptr;
  Question question;
  ActionSpace* space = nullptr;  // Filled by task->Space for this state.
  Memory* memory = nullptr;      // From NewMemory of the same policy.
};

struct Answer {
  int choice = kStop;  // Index into Ask::space->candidates, or kStop.
  double value = 0;    // The policy's own estimate of what is still to be won; 0 if it has none.
  std::vector<float>
      scores;  // One per candidate, stop last, larger is better; empty if it ranks nothing.
};

class Policy {
 public:
  virtual ~Policy() = default;

  virtual std::string_view name() const = 0;

  // `seed` keys the policy's own chance, if it has any.
  virtual std::unique_ptr<Memory> NewMemory(uint64_t seed) const = 0;

  // REQUIRES: asks.size() == answers.size().
  virtual void Decide(std::span<Ask> asks, std::span<Answer> answers) const = 0;
};

}  // namespace rudderfish
