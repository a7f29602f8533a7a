// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/worker.h"
#include "cluster/cluster.h"
#include "control/baseline_plan.h"
#include "control/guard.h"
#include "control/journal.h"
#include "control/mode.h"
#include "model/evaluator.h"
#include "policy/policy.h"
#include "task/task.h"

// Drives a cluster: refresh, ask, decide, review, act, write down. The other driver of the same
// Task, Policy and Evaluator is the training environment (learn/env.h); tests/contract holds that
// both decide alike. A plan is a sequence of decisions that ends when the policy stops, the guard
// refuses, or the task's steps are used up. At most one decision is in flight: the next one is
// taken in the state that it led to. What the guard holds is no alternative: a plan goes on with
// other pods while one rests.
//
// Not thread safe. Everything passed in outlives the controller.

namespace rudderfish {

enum class TurnResult {
  kThinking,   // The policy is being asked (ControllerOptions::thinker).
  kMoved,      // A decision was submitted; its outcome is known.
  kWaiting,    // A decision is in flight.
  kStopped,    // The policy chose to stay: the plan has ended.
  kRefused,    // By the guard: the plan has ended.
  kExhausted,  // The plan has used up its steps.
};

struct ControllerOptions {
  uint64_t seed = 0;                          // Of the policy's own chance.
  int max_steps = 0;                          // Of a plan; 0: the task's.
  int alternatives_kept = 5;                  // In the journal.
  bool alternative_of_each_workload = false;  // Its best, beside those.
  int refusals_kept = 0;                      // The same, of moves that are not allowed.
  const Policy* baseline = nullptr;           // Asked as well, for the journal only.
  std::string application;                    // Named in the journal.
  std::string policy;                         // Its name there; empty: its own name.
  std::string objective;                      // Named in the journal.

  // Below kCanary the cluster is one that records (control/shadow_cluster.h), and rows say so.
  Mode mode = Mode::kEnforce;

  // Of all controllers that move pods of the cluster; null: moves of this one alone are counted.
  MoveLedger* ledger = nullptr;

  // On which the policies are asked, so that a slow one delays nothing: Turn returns kThinking
  // until they have answered. Null: they are asked in Turn. It outlives the controller.
  Worker* thinker = nullptr;

  // Lets time pass while a decision is in flight. Without it RunPlan returns kWaiting.
  std::function<void()> wait;
};

class Controller {
 public:
  Controller(Cluster* cluster, const Task* task, const LatencyLaw& law, const Policy* policy,
             const GuardOptions& guard, Journal* journal, ControllerOptions options);
  ~Controller();  // Waits for a policy that is being asked.
  Controller(const Controller&) = delete;

  // Gives up the plan that is open, if one is, and begins another. Waits for a policy that is being
  // asked. REQUIRES: nothing is in flight.
  void BeginPlan();

  // REQUIRES: both the earlier mode and this one record, or both act.
  void SetMode(Mode mode) {
    if (mode != options_.mode) observed_ = false;  // Other pods may be moved.
    options_.mode = mode;
  }

  // The Model from now on; a plan that is open ends. REQUIRES: nothing is in flight.
  void SetLaw(const LatencyLaw& law);

  // Before the first turn: moves of an earlier process, as Guard::Recall.
  void Recall(WorkloadId workload, MoveLedger::Entry move) {
    guard_.Recall(workload, std::move(move));
  }
  void RecallPod(std::string pod, std::chrono::nanoseconds at) {
    guard_.RecallPod(std::move(pod), at);
  }

  // For a cluster on which nothing that was decided has happened: no pod rests because of it.
  void ForgetMoves() { guard_.ForgetMoves(); }

  // One turn. An error is the cluster's, which could not be observed, or the journal's, which could
  // not be written: nothing was decided, and nothing done. Another turn may follow.
  Result<TurnResult> Turn();

  // A plan from beginning to end, or until something is in flight and there is no `wait`; then
  // another call goes on with it.
  Result<TurnResult> RunPlan();

  // While a policy is asked, nothing but the cluster and the mode may change.
  bool is_thinking() const { return thought_.valid(); }

  // What it will answer is of no use any more. False: it has not answered yet, and still is asked.
  bool DropThought();

  // Whether a decision was submitted of which nothing is in the journal yet.
  bool in_flight() const { return in_flight_; }

  // Why the last decision that was submitted was not carried out; empty: it was.
  const std::string& failure() const { return failure_; }

  // The controller ends, and somebody else concludes the decision in flight: its row in the
  // journal; nothing: none is in flight.
  std::optional<int64_t> HandOver();
  // The controller ends, and will not hear what becomes of the decision in flight: the journal says
  // so. The cluster must not answer it any more.
  Result<void> Abandon(std::string_view why);

  const State& state() const { return state_; }
  const Terms& terms() const { return model_.Now(); }
  int steps() const { return question_.step; }  // Decisions carried out in this plan.

 private:
  struct Flight {
    int64_t row = 0;  // In the journal.
    size_t intents = 0;
  };

  Result<void> Observe();
  void Think();
  void AskPolicies();
  void EndThought();
  void Consult(const Policy& policy, Memory* memory, ActionSpace* space, Answer* answer);
  std::optional<Move> Foresee(const Question& question);
  std::string Rename(const Names* before, Decision* decision) const;
  Result<void> LeaveAnyway();
  JournalRow Describe(const Decision& decision);
  void DescribeAlternatives(JournalRow* row);
  void DescribePlan(JournalRow* row);
  void KeepAlternative(int candidate, JournalRow* row);  // Or to stop: after the last.
  Result<void> Submit(const Decision& decision, JournalRow row);
  Result<TurnResult> Conclude();  // kMoved once all that was in flight has landed.
  TurnResult EndPlan(TurnResult why);

  Cluster* cluster_;
  const Task* task_;
  const Policy* policy_;
  Guard guard_;
  Journal* journal_;
  ControllerOptions options_;

  std::unique_ptr<Memory> memory_, baseline_memory_;
  std::unique_ptr<BaselinePlan> baseline_plan_;  // Null: there is no baseline.
  double plan_start_ms_ = 0;                     // Latency when the plan began.
  State state_;
  Evaluator model_;
  ActionSpace space_, baseline_space_, ahead_space_;
  Answer answer_, baseline_answer_, ahead_answer_;
  Question question_;
  int64_t plan_ = 0;
  int attempts_ = 0;  // Decisions of this plan that were submitted, carried out or not.
  bool plan_open_ = false;
  bool observed_ = false;
  uint64_t observed_version_ = 0;
  bool in_flight_ = false;
  Flight flight_;
  std::future<void> thought_;  // Valid while policies are asked, or have answered to be heard.
  std::string failure_;
  Completions completions_;
};

}  // namespace rudderfish
