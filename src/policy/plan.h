// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "policy/policy.h"

// Several moves, one after another, and the memory of a policy that plans once and then follows.
// Plans are compared by what the task counts: the latency they end at and the cost of every step on
// the way.

namespace rudderfish {

struct Plan {
  std::vector<Move> moves;
  double latency_ms = 0;  // At the end.
  double cost_ms = 0;     // latency_ms + the cost of all steps.
};

// Room that memories make in a plan at once: longer ones are rare.
inline constexpr int kPlanMovesReserved = 256;

// What `count` decisions from `question` on cost, beside their gains.
double StepCosts(const Task& task, const Question& question, int count);

// Carries the plan out on the model and takes it back. Cuts it before the first move that is not
// allowed and then to the prefix that costs least (the shortest of equals), and fills in what that
// comes to. Exact.
void AppraisePlan(Evaluator* model, const Task& task, const Question& question, Plan* plan);

// Makes a plan of moves that are alternatives of the task's questions. A question may list fewer
// than are allowed: a move that is not among them is replaced by one of the same workload
// between nodes of the same kinds, which does the same for latency, and the nodes are exchanged in
// what follows; where there is none, the plan is cut. The model is left as found. `scratch` is for
// the questions on the way.
void FitPlan(Evaluator* model, const Task& task, const Question& question, ActionSpace* scratch,
             Plan* plan);

// Equal for equal placements with equal room and latency; different, in all likelihood, for others.
uint64_t Fingerprint(const Evaluator& model);

// Follows a plan for as long as every question comes from the placement that the plan leads to. It
// is asked by step, so asking twice gives the same answer.
class PlanMemory : public Memory {
 public:
  void Restart() override { following_ = false; }

  // Answers from the plan at hand; false if there is none for this question.
  bool Follow(const Ask& ask, Answer* answer);

  // Makes `plan` the plan at hand and answers with its first move, or stop if it has none.
  // REQUIRES: the plan is appraised and fitted.
  void Adopt(const Plan& plan, const Ask& ask, Answer* answer);

  // Follows the moves, the rest of a plan that another memory made, if all of them are still
  // allowed and worth making; else nothing.
  void Resume(std::span<const Move> moves, const Ask& ask);

  const Plan& plan() const { return plan_; }
  // What is left of it after the question was answered.
  std::span<const Move> RestAfter(const Question& question) const;

 protected:
  // Whether the plan at hand is followed here for the first time, beyond its first step.
  bool ComesNew(const Ask& ask);
  // Puts `plan` in place of what is left of the plan at hand, and answers with its first move.
  // REQUIRES: as of Adopt; Follow has answered this question.
  void Replace(const Plan& plan, const Ask& ask, Answer* answer);

 private:
  void Append(const Plan& plan, const Ask& ask, double steps_ms);

  bool following_ = false;
  int first_step_ = 0;  // Of the question the plan was made for.
  int last_new_ = 0;    // The furthest place in the plan that was asked about.
  Plan plan_;
  std::vector<uint64_t> fingerprints_;  // [moves + 1], before each move and at the end
  std::vector<double> costs_ms_;        // [moves + 1], in the same places
};

}  // namespace rudderfish
