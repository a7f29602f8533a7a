// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/evaluator.h"

// A walk in the Model from a placement that is to be improved: the way in which a plan of moves is
// looked for. Nothing that it does is done. What counts is the best placement that it has been in:
//
//   objective(placement) = latency + the cost of as many moves as pods are not where they were
//   reward(step)         = fall of the best objective so far - kStepMs; 0 for stop, which ends it
//
// So the way there may lead uphill, past placements from which no single move gains anything, and
// costs kStepMs a step and no more. A placement that the walk has been in is not entered again.
//
// Placements are equal if the pods of each workload on each node are as many. Allocates nothing
// once it has begun from the largest placement.

namespace rudderfish {

class Task;
struct Question;

class Walk {
 public:
  static const double kStepMs;

  // From the model's placement, in which `question` asks for a move. REQUIRES: `task` outlives the
  // walk.
  void Begin(const Evaluator& model, const Task& task, const Question& question);

  // The model has made the move. Returns the reward in ms.
  double Note(const Evaluator& model, const Move& move);

  // What is asked in the placement that the walk has come to; valid as long as the walk.
  Question question() const;

  // Whether the move leads to a placement that the walk has been in.
  bool Returns(const Move& move) const;

  // All steps that a walk may have: one for each pod, 30 at least, but no more than the task has.
  int steps_max() const { return steps_max_; }
  int steps() const { return static_cast<int>(moves_.size()); }
  std::span<const Move> moves() const { return moves_; }

  // How many steps led to the best placement; 0: none is better than the one it began from.
  int best_steps() const { return best_steps_; }
  int best_displaced() const { return best_displaced_; }
  double best_latency_ms() const { return best_latency_ms_; }
  double best_objective_ms() const { return best_objective_ms_; }
  double start_ms() const { return start_ms_; }

  // Of the placement that it has come to.
  double objective_ms() const { return objective_ms_; }
  int displaced() const { return displaced_; }  // Pods that are not where they were.
  int PodsAtStart(WorkloadId workload, NodeId node) const {
    return start_[static_cast<size_t>(workload) * nodes_ + node];
  }

 private:
  double CostOf(int moves);

  const Task* task_ = nullptr;
  int first_step_ = 0;
  int nodes_ = 0;
  int steps_max_ = 0;
  double start_ms_ = 0;
  std::vector<uint16_t> start_;   // [workload][node]
  std::vector<double> costs_ms_;  // [moves] of the first so many, as far as they were needed
  std::vector<Move> moves_;
  std::vector<uint64_t> been_in_;
  uint64_t key_ = 0;
  int displaced_ = 0;
  double objective_ms_ = 0;
  int best_steps_ = 0, best_displaced_ = 0;
  double best_latency_ms_ = 0, best_objective_ms_ = 0;
};

}  // namespace rudderfish
