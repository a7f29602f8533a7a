// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/application_run.h"
#include "control/mode.h"
#include "control/sqlite_journal.h"
#include "run/config.h"
#include "run/control_server.h"
#include "run/fenced_journal.h"
#include "run/run_loop.h"
#include "run/run_metrics.h"
#include "run/shared_standing.h"
#include "run/signal_source.h"
#include "run/switch_request.h"
#include "run/watched_cluster.h"

// What `run` drives: the clusters that a configuration names, an ApplicationRun for each
// application in them, and the switches. One thread; whoever owns this calls Turn whenever it may
// decide, and says what came on the socket.

namespace rudderfish {

// What a configuration asks for, opened and checked: policies loaded, files read.
class ControlPlan {
 public:
  struct Part {
    ApplicationOptions options;
    WatchedApplication watched;
  };

  static Result<ControlPlan> Make(const Config& config);

  const Config& config() const { return config_; }
  const std::vector<Part>& parts() const { return parts_; }
  std::vector<WatchedApplication> Watched() const;
  const SignalsConfig& signals() const { return signals_; }

  // What would be done, for people: --dry-run.
  std::string Describe() const;

 private:
  Result<void> ReadSignals();

  Config config_;
  std::vector<Part> parts_;
  SignalsConfig signals_;
};

class ControlLoop final : public RunLoop {
 public:
  // `server` outlives it.
  static Result<std::unique_ptr<ControlLoop>> Start(ControlPlan plan, ControlServer* server);

  // Goes on by another plan, whose cluster and journal are the same ones. Nothing can fail here.
  void Reload(ControlPlan plan);

  void Poll(std::chrono::milliseconds timeout) override;
  bool CanWait() const override { return cluster_->CanWait(); }
  bool Turn() override;
  std::chrono::milliseconds UntilDue() const override;
  void Stop() override;
  std::string Answer(std::string_view request) override;

  ModeSwitch& switches() { return switches_; }
  const Config& config() const { return plan_.config(); }

 private:
  // The moves of the plan that an application is at.
  struct Tally {
    std::string first_pod;
    int moves = 0;
    double before_ms = 0, after_ms = 0;
  };

  ControlLoop(ControlPlan plan, std::unique_ptr<SqliteJournal> journal, ControlServer* server);
  void TakeRow(const JournalRow& row);
  void EndPlan(size_t run);
  void NoteLeadership();
  void Report();
  void MakeRuns();
  void AskSignals();
  void TellSignals();
  Result<void> Connect();
  SwitchedKind Kind() const;
  void TakeControl(const kube::ConfigMapWatch::Said& said);
  void TellProblem(const ApplicationRun& run);
  std::string Status() const;

  ControlPlan plan_;
  ControlServer* server_;
  RunMetrics metrics_;
  std::unique_ptr<SqliteJournal> journal_;
  FencedJournal fenced_;
  std::optional<JournalReader> reader_;  // Of the same file.
  SystemClock clock_;
  std::unique_ptr<WatchedCluster> cluster_;
  std::vector<std::unique_ptr<ApplicationRun>> runs_;
  std::unique_ptr<SignalSource> signals_;
  std::vector<std::string> told_;         // [run] The problem that was logged last.
  std::map<std::string, Tally> tallies_;  // By application.
  bool led_ = false;                      // When it was looked at last.
  ModeSwitch switches_;
  std::optional<SharedStanding> standing_;
  std::string control_problem_;  // What is wrong with the ConfigMap.
  bool told_signals_ = false;    // That some are in trouble.
  Instant started_, due_, trimmed_, reported_, measured_;
  UnixMillis started_at_;
};

}  // namespace rudderfish
