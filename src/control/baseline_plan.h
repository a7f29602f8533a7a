// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cluster/state.h"
#include "model/evaluator.h"
#include "policy/policy.h"
#include "task/task.h"

// The plan that a baseline would make, on the Model alone, move for move next to the plan of the
// policy that decides: so that both are compared after as many moves. Not thread safe.

namespace rudderfish {

class BaselinePlan {
 public:
  // Policy and task outlive it.
  BaselinePlan(const Policy* baseline, const Task* task, const LatencyLaw& law, uint64_t seed)
      : baseline_(baseline), task_(task), memory_(baseline->NewMemory(seed)), model_(law) {}

  // The Model from the next plan on.
  void SetLaw(const LatencyLaw& law) { model_ = Evaluator(law); }

  void Begin(const State& state);

  // Goes on until it has made so many moves or stops; never goes back.
  void MoveUpTo(int moves);

  // By how much latency falls, less the cost of its steps.
  double gain_ms() const { return start_ms_ - model_.Now().latency_ms - costs_ms_; }

 private:
  const Policy* baseline_;
  const Task* task_;
  std::unique_ptr<Memory> memory_;
  State state_;
  Evaluator model_;
  ActionSpace space_;
  Answer answer_;
  Question question_;
  double start_ms_ = 0, costs_ms_ = 0;
  bool has_stopped_ = false;
};

}  // namespace rudderfish
