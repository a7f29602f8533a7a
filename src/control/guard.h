// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cluster/decision.h"
#include "cluster/state.h"
#include "model/evaluator.h"
#include "task/task.h"

// The last word before a cluster is touched: whoever decided, a decision is carried out only if it
// is feasible in the newest state, worth its cost by the Model's own prediction, and within what
// may be disturbed. "No" is an answer with a reason, not an error. What is known to be refused
// before anybody has decided is held: it is no alternative, so that a plan goes on with what is
// left. Not thread safe: one Guard per Controller.

namespace rudderfish {

struct Verdict {
  bool allowed = false;
  std::string reason;  // Why not, in words; empty if allowed.
};

struct GuardOptions {
  // The predicted gain must reach the task's step cost times this. Without a value the gain is not
  // asked: for policies that give up something now to win more later.
  std::optional<double> benefit_factor = 1.0;

  // How long a pod is left alone after it was moved.
  std::chrono::nanoseconds pod_cooldown{0};

  // Moves that one plan may make.
  int moves_per_plan = 100;
};

class Guard {
 public:
  explicit Guard(const GuardOptions& options) : options_(options) {}

  // The budget of moves starts anew; cooldowns go on.
  void BeginPlan() { moves_in_plan_ = 0; }

  // Marks in `state` the pods that are held now: those that rest, and all once the plan has made
  // its moves. True if they are others than were marked before: a model of the state is to be
  // reset.
  bool Hold(State* state);

  // Why a pod is held, in words that follow its name; empty if it does not rest.
  std::string WhyResting(const State& state, PodId pod) const;

  // Why nothing at all may be moved for now; empty if something may.
  std::string WhyNothingMoves() const;

  // REQUIRES: `model` was reset to `newest`; it is left as it was found.
  Verdict Review(const State& newest, Evaluator* model, const Task& task, const Question& question,
                 const Decision& decision) const;

  // A decision that was allowed is under way: it counts against the budget and its pods cool down.
  void Note(const State& state, const Decision& decision);

  // What was noted has not happened after all: nothing rests.
  void ForgetMoves() { resting_.clear(); }

  const GuardOptions& options() const { return options_; }

 private:
  // Pods are known by name: their places in a State change.
  struct Rest {
    std::string pod;
    std::chrono::nanoseconds moved_at{0};
    PodId place = kNone;  // Where it stood last, to look there first.
  };

  Verdict ReviewMove(const State& newest, const Evaluator& model, const Migrate& migrate) const;

  GuardOptions options_;
  int moves_in_plan_ = 0;
  std::vector<Rest> resting_;
  std::vector<uint8_t> held_, held_before_;  // [pod] as marked last; empty: none.
};

// "payment-2 from edge-1 to cloud-3", or "stay".
std::string DescribeDecision(const State& state, const Decision& decision);

}  // namespace rudderfish
