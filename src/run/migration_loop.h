// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/application_run.h"
#include "control/migration_mode_evidence.h"
#include "control/model_corrector.h"
#include "run/calls_source.h"
#include "run/decision_loop.h"
#include "run/fenced_journal.h"
#include "run/host_parts.h"
#include "run/left_moves.h"
#include "run/migration_plan.h"
#include "run/move_driver.h"
#include "run/move_window.h"
#include "run/signal_source.h"
#include "run/watched_cluster.h"

// The loop of migration in a Host: the cluster as each application sees it, an ApplicationRun for
// each application, and what signals measure.

namespace rudderfish {

class MigrationLoop final : public DecisionLoop {
 public:
  static constexpr Duration kUndoLimit = std::chrono::seconds(2);  // Of moves, at the end.

  // Adds what it needs to the host's feed. The host outlives it.
  static Result<std::unique_ptr<MigrationLoop>> Start(MigrationPlan plan, HostParts* host);

  // Goes on by another plan, whose cluster and journal are the same ones. An error is the
  // journal's; the plan holds.
  Result<void> Reload(MigrationPlan plan);

  SwitchedKind Kind() const override;
  Result<void> Begin() override;
  void Poll() override;
  bool Turn() override;  // Of one application.
  std::chrono::milliseconds UntilDue() const override;
  void FollowMode() override;
  ModeLadder* ladder() const override { return ladder_.get(); }
  std::string ClusterTrouble() const override;
  std::string JournalTrouble() const override;
  void Count(ClusterCounts* counts) const override { cluster_->Count(counts); }
  void Report() override;
  OrderedJson Status() const override;
  std::string Describe() const override;
  bool IsActing() const override { return moves_ != nullptr && !moves_->is_idle(); }
  void EndActing() override;
  bool IsTelling() const override { return cluster_->IsTelling(); }

 private:
  // The moves of the plan that an application is at.
  struct Tally {
    std::string first_pod;
    int moves = 0;
    double before_ms = 0, after_ms = 0;
  };

  MigrationLoop(MigrationPlan plan, HostParts* host);
  void LeaveMoves();
  void TakeRow(const JournalRow& row);
  void EndPlan(size_t run);
  std::string WhyNoDecision(size_t run) const;
  void OpenSources();
  void MakeRuns();
  Duration StartTimeOf(size_t part, WorkloadId workload) const;
  void AskSignals();
  void FollowTraces();
  void TellSignals();
  void TellProblem(const ApplicationRun& run);
  const Config& config() const { return plan_.config(); }

  MigrationPlan plan_;
  HostParts* host_;
  const Clock* clock_;
  FencedJournal fenced_;
  std::unique_ptr<MigrationModeEvidence> evidence_;
  std::unique_ptr<ModeLadder> ladder_;
  std::unique_ptr<MoveDriver> moves_;  // Null: the cluster is simulated.
  std::unique_ptr<WatchedCluster> cluster_;
  MoveLedger ledger_;  // Of all runs.
  Worker thinker_;     // Policies are asked on it: a slow one holds up no other kind of decision.
  std::vector<std::unique_ptr<ApplicationRun>> runs_;
  LeftMoves left_;
  ModelCorrector corrector_;
  std::unique_ptr<SignalSource> signals_;
  std::unique_ptr<CallsSource> traces_;
  std::vector<std::string> told_;         // [run] The problem that was logged last.
  std::map<std::string, Tally> tallies_;  // By application.
  size_t next_ = 0;                       // The run whose turn it is.
  bool goes_on_ = false;                  // Some run of this round had more to decide.
  Mode mode_ = Mode::kOff;                // That holds, as it was looked at last.
  bool told_signals_ = false;             // That some are in trouble.
  MoveWindow window_;
  Instant due_, measured_;
};

}  // namespace rudderfish
