// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/canary_cluster.h"
#include "control/controller.h"
#include "control/evidence.h"
#include "control/mode.h"
#include "control/shadow_cluster.h"
#include "policy/policy.h"
#include "task/task.h"

// One application that is being watched: what is decided for it, when, and what became of it. It
// plans whenever the cluster has changed, and again after a rest; it decides nothing on a state
// older than the limit, nothing while the journal cannot be written, nothing while off.
//
// In shadow and advise a plan is imagined at once. In canary and enforce each of its moves is
// carried out before the next one is decided, on what the cluster is by then.
//
// Not thread safe: the one thread that drives the cluster calls Turn.

namespace rudderfish {

struct ApplicationOptions {
  std::string name;
  std::shared_ptr<const Task> task;
  LatencyLaw law;
  std::shared_ptr<const Policy> policy, baseline;  // No baseline: none is asked for comparison.
  std::string policy_name, objective;              // In the journal; no name: the policy's own.
  GuardOptions guard;
  std::chrono::nanoseconds rest = std::chrono::minutes(10);  // Until an unchanged state is planned.
  std::chrono::nanoseconds staleness = std::chrono::seconds(30);
  Worker* thinker = nullptr;     // As ControllerOptions::thinker.
  MoveLedger* ledger = nullptr;  // Of all applications that are moved; null: of this one alone.
  double canary = 0.1;           // Share of the workloads whose pods are moved in canary.
  EvidenceOptions evidence;
  uint64_t seed = 1;
};

// How long a pod rests after a move: its cooldown, and no less than an unchanged state does.
std::chrono::nanoseconds RestOfMovedPods(std::chrono::nanoseconds cooldown,
                                         std::chrono::nanoseconds rest);

struct ApplicationStatus {
  int64_t plans = 0;                 // Ended.
  int64_t decisions = 0;             // Written, those to stay included.
  int64_t moves = 0;                 // Recorded.
  int64_t moved = 0, not_moved = 0;  // Pods, of those that were to be moved.
  std::string problem;               // Why the last turn came to nothing; empty: it did not.
  Terms seen;                        // Of the state as it is.
  Terms planned;                     // Of what the last plan would have led to, once one has ended.
  int nodes = 0, pods = 0, pending = 0;
};

class ApplicationRun {
 public:
  // Clusters and journal outlive this. `cluster` is looked at; `acted_on` is the same one, which
  // carries out what is submitted to it.
  ApplicationRun(const ApplicationOptions& options, Cluster* cluster, Cluster* acted_on,
                 Journal* journal, EvidenceSink* evidence);
  ApplicationRun(const ApplicationRun&) = delete;

  // Looks, and takes at most one decision. True: the plan goes on, another turn may follow at once.
  // `obstacle`, asked once the cluster was looked at: why nothing may be decided now, only watched;
  // kUnavailable then.
  Result<bool> Turn(Mode mode, std::span<const Reading> readings,
                    const std::function<std::string()>& obstacle = nullptr);

  // Before the first turn, the oldest first: cooldowns and the budget of an hour outlive a process.
  void Recall(std::vector<EarlierMove> moves) { recalled_ = std::move(moves); }

  // The Model's parts are multiplied by these from its next plan on, which is then due. What they
  // are now is `factors`.
  void Correct(const LatencyFactors& factors) { next_factors_ = factors; }
  const LatencyFactors& factors() const { return factors_; }

  // Somebody else concludes the move that is under way: its row in the journal.
  std::optional<int64_t> HandOver() { return acting_.HandOver(); }
  // Nothing more is heard of the move that is under way, which the cluster ends by itself: the
  // journal says so.
  Result<void> Abandon(std::string_view why) { return acting_.Abandon(why); }

  bool is_moving() const { return acting_.in_flight(); }
  bool is_thinking() const { return controller_.is_thinking() || acting_.is_thinking(); }
  const std::string& name() const { return options_.name; }
  const ApplicationOptions& options() const { return options_; }
  const ApplicationStatus& status() const { return status_; }
  const EvidenceWatch& evidence() const { return evidence_; }
  const State& state() const { return cluster_.real_state(); }

 private:
  bool IsPlanDue();
  bool IsAsking(Controller* controller) const;
  Result<bool> Decide();
  Result<bool> Act();
  Result<bool> HearOfMove();
  bool NoteMove();
  void EndPlan(const Controller& controller);
  void ApplyRecalled();
  void ApplyFactors();
  void Describe(const State& state);

  ApplicationOptions options_;
  ShadowCluster cluster_;
  CanaryCluster acted_on_;
  EvidenceWatch evidence_;
  Evaluator model_;  // Of what is real; the controller's is of what is imagined.
  LatencyFactors factors_, next_factors_;
  uint64_t described_version_ = 0;
  Controller controller_;  // Of what is imagined.
  Controller acting_;
  Mode mode_ = Mode::kOff;  // In which it decided last.
  bool planning_ = false, is_plan_due_ = false;
  bool acts_ = false;                  // The plan that is open is carried out.
  int failures_ = 0;                   // In it.
  std::vector<EarlierMove> recalled_;  // Until the cluster was seen.
  std::chrono::nanoseconds plan_ended_at_{0};
  ApplicationStatus status_;
};

}  // namespace rudderfish
