// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/decision.h"
#include "cluster/state.h"
#include "control/move_ledger.h"
#include "model/evaluator.h"
#include "task/task.h"

// The last check before a cluster is changed: a decision of any policy is carried out only if it is
// feasible in the newest state, worth its cost by the Model's own prediction, and within what may
// be disturbed. "No" is an answer with a reason, not an error. What is known to be refused before
// the policy decides is held: it is no alternative, so that a plan goes on with what is left. Not
// thread safe: one Guard per Controller.

namespace rudderfish {

struct Verdict {
  bool allowed = false;
  std::string reason;  // Why not, in words; empty if allowed.
};

struct GuardOptions {
  // What the plan is predicted to gain from here on must reach the cost of its steps times this, by
  // its end or at any step before: a first step may lose what the next ones win. Without a value
  // the gain is not asked.
  std::optional<double> benefit_factor = 1.0;

  // For how long a move is counted on to hold. Of that it gains nothing until its pod serves: of a
  // pod that starts for 2 minutes, the gain of 8 out of 10 counts. 0: that is not counted.
  std::chrono::nanoseconds horizon{0};

  // How long a pod of the workload takes until it serves as well as the one that it replaces; none:
  // no time at all.
  std::function<std::chrono::nanoseconds(WorkloadId)> start_time;

  // Whether somebody empties the node of that name, or deletes it soon. Its pods go first: while
  // one of them may be moved no other is, and it need not gain anything.
  std::function<bool(std::string_view node)> leaves;

  // [workload] Its namespace; empty: it has none.
  std::vector<std::string> namespaces;

  // How long a pod is left alone after it was moved.
  std::chrono::nanoseconds pod_cooldown{0};

  // How long no pod of a workload goes to a node that one of its pods was moved away from. Within
  // the plan that moved it none does, whatever this says.
  std::chrono::nanoseconds return_cooldown{0};

  // Moves that one plan may make.
  int moves_per_plan = 100;

  // Moves within any hour, of all plans.
  HourlyMoves moves_per_hour;
};

// What the policy would move next in the state that the model is in; nothing: it would stop there.
using NextMove = std::function<std::optional<Move>(const Question& question)>;

class Guard {
 public:
  // `ledger` is shared by the guards of all applications and outlives them; null: its own one.
  explicit Guard(const GuardOptions& options, std::string application = "",
                 MoveLedger* ledger = nullptr)
      : options_(options), application_(std::move(application)), shared_(ledger) {}

  // A plan begins with its whole budget of moves; cooldowns go on.
  void BeginPlan() {
    moves_in_plan_ = 0;
    ++plan_;
    leaves_first_ = true;
  }

  // Marks in `state` the pods that are held now: those that rest, and all once the plan has made
  // its moves. True if they, or the cells of left_cells, are others than before: a model of the
  // state is to be reset.
  bool Hold(State* state);

  // Nodes that pods of a workload do not return to now, in ids of the state that was held last. For
  // Evaluator::Leave.
  std::span<const LeftCell> left_cells() const { return cells_; }

  // A pod of a node that leaves may be moved, so others are held; of the state that was held last.
  bool has_leaving() const { return has_leaving_; }

  // None of these has a node to go to: in this plan they hold no others back.
  void GiveUpLeaving() { leaves_first_ = false; }

  // Why a pod is held, in words that follow its name; empty if it is not.
  std::string WhyHeld(const State& state, PodId pod) const;

  // Why nothing at all may be moved for now; empty if something may.
  std::string WhyNothingMoves() const;

  // `next` is asked how the plan would go on where the decision does not pay for itself at once.
  // REQUIRES: `model` was reset to `newest`; it is left as it was found.
  Verdict Review(const State& newest, Evaluator* model, const Task& task, const Question& question,
                 const Decision& decision, const NextMove& next) const;

  // A decision that was allowed is under way: it counts against the budget, its pods cool down, and
  // nothing of the plan goes where they came from.
  void Note(const State& state, const Decision& decision);

  // A move that an earlier process made, the oldest first: it counts in the hour, and no pod of
  // `workload` returns to the node that it left. Its pod is gone.
  void Recall(WorkloadId workload, MoveLedger::Entry move);

  // A move that an earlier process tried: its pod, if it is still there, rests.
  void RecallPod(std::string pod, std::chrono::nanoseconds at);

  // What was noted has not happened after all: nothing rests. REQUIRES: a ledger of its own.
  void ForgetMoves() {
    resting_.clear();
    left_.clear();
    own_.Clear();
  }

  const GuardOptions& options() const { return options_; }

 private:
  // Pods are known by name: their places in a State change.
  struct Rest {
    std::string pod;
    std::chrono::nanoseconds moved_at{0};
    PodId place = kNone;  // Where it stood last, to look there first.
  };

  // A pod of the workload was moved away from the node. Nodes are known by name, as pods are.
  struct Left {
    WorkloadId workload = 0;
    std::string node;
    std::chrono::nanoseconds moved_at{0};
    int64_t plan = 0;
  };

  // "10 moves within the last hour, as many as may be", of what is used up; empty: it is not.
  static std::string UsedUp(int made, const std::optional<int>& limit);
  std::string WhyNodeRests(std::string_view node) const;
  std::string WhyWorkloadRests(const State& state, WorkloadId workload) const;

  MoveLedger& ledger() { return shared_ != nullptr ? *shared_ : own_; }
  const MoveLedger& ledger() const { return shared_ != nullptr ? *shared_ : own_; }
  bool HoldPods(State* state);
  void HoldOthers(const State& state);
  bool Leaves(const State& state, NodeId node) const;
  void HoldByHour(const State& state);
  bool FindLeft(const State& state);
  bool IsOver(const Left& left, std::chrono::nanoseconds now) const;
  std::string WhyNotBack(const State& state, const Move& move) const;
  Verdict ReviewGain(double start_ms, std::chrono::nanoseconds start_time, Evaluator* model,
                     const Task& task, const Question& question, const NextMove& next,
                     int* made) const;
  std::chrono::nanoseconds StartTime(WorkloadId workload) const;
  std::string NamespaceOf(WorkloadId workload) const;
  Verdict ReviewMove(const State& newest, const Evaluator& model, const Migrate& migrate) const;

  GuardOptions options_;
  std::string application_;
  MoveLedger own_, *shared_;
  int64_t plan_ = 0;
  int moves_in_plan_ = 0;
  std::vector<Rest> resting_;
  std::vector<uint8_t> held_, held_before_;  // [pod] as marked last; empty: none.
  bool leaves_first_ = true, has_leaving_ = false;
  std::vector<Left> left_;
  std::vector<LeftCell> cells_, cells_before_;  // The same, found in the last state.
};

// "payment-2 from edge-1 to cloud-3", or "stay".
std::string DescribeDecision(const State& state, const Decision& decision);

}  // namespace rudderfish
