// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/mode.h"
#include "control/sqlite_journal.h"
#include "kube/api_client.h"
#include "kube/cluster_feed.h"
#include "kube/config_map_watch.h"
#include "kube/lease.h"
#include "run/cluster_link.h"
#include "run/config.h"
#include "run/control_server.h"
#include "run/decision_loop.h"
#include "run/journal_health.h"
#include "run/rights.h"
#include "run/run_metrics.h"
#include "run/shared_standing.h"

// The process of `rudderfish run`: what the kinds of decision of one configuration share (one API
// client and one watch of each resource of a cluster, one Lease, one ConfigMap and socket that hold
// all of them back, one journal, one status), and their loops, which take turns. One thread.

namespace rudderfish {

class MigrationLoop;
class PlacementLoop;
class RoutingLoop;

class Host {
 public:
  static constexpr std::chrono::seconds kStopLimit{10};

  // Connects, and waits until every kind has seen what it needs. `clock` and `server` outlive it.
  static Result<std::unique_ptr<Host>> Start(const Config& config, const Clock* clock,
                                             ControlServer* server);
  ~Host();
  Host(const Host&) = delete;

  // Lets in what comes from the cluster; waits for it, at most `timeout`, if it can (CanWait).
  void Poll(std::chrono::milliseconds timeout);
  bool CanWait() const { return own_.client != nullptr; }  // Without a cluster there is none.

  // Each kind that is due does one slice of work. True: more may be done at once.
  bool Turn();
  std::chrono::milliseconds UntilDue() const;

  // Goes on by another configuration, if all that differs can change at run time; else nothing
  // changes.
  Result<void> Reload(const Config& config);

  // Ends what is under way, and gives the lead away. At most kStopLimit.
  void Stop();

  // Why decisions are missing in the journal; empty: none is.
  std::string JournalTrouble() const;

  // Answers a request of the socket, in a line of JSON.
  std::string Answer(std::string_view request);

  std::string Describe() const;  // What it does, in words.

  // For loops.
  const Config& config() const { return config_; }
  const Clock* clock() const { return clock_; }
  ControlServer* server() { return server_; }
  RunMetrics* metrics() { return &metrics_; }
  SqliteJournal* journal() { return journal_.get(); }
  JournalHealth* journal_health() { return journal_health_.get(); }
  // Of the own cluster; null without one.
  kube::ApiClient* client() { return own_.client.get(); }
  kube::ApiClient* telling() { return own_.telling.get(); }
  kube::ClusterFeed* feed() { return own_.feed.get(); }
  const std::string& identity() const { return identity_; }
  const ModeSwitch& switches() const { return switches_; }
  const kube::LeaseElection* lease() const { return lease_.get(); }       // Null: no election.
  const kube::ConfigMapWatch* control() const { return control_.get(); }  // None is named.
  bool Leads() const { return lease_ == nullptr || lease_->IsLeader(); }

 private:
  Host(const Config& config, const Clock* clock, ControlServer* server);
  Result<void> Open();
  Result<void> Connect();
  Result<void> OpenPlacement();
  Result<void> Begin();
  Result<void> OpenStanding();
  std::vector<SwitchedKind> Kinds() const;
  // That the cluster would have to allow for this kind to be in this mode, one line each.
  std::vector<std::string> MissingRights(std::string_view kind, Mode mode) const;
  std::string Explain(std::string_view subject);
  std::string Kept(std::string answer);
  std::string AnswerKind(std::string_view request);
  void NoteStanding(const Result<void>& kept);
  std::string NoteUnkept();  // Why a mode is not in the journal; empty: all are.
  Result<void> KeepStanding();
  void MindJournal(Instant now);
  void FollowModes();
  void LookAtCanaries();
  void HoldWhileControlIsUnread();
  void Report();
  void ShowCluster();
  std::string LeaderTrouble() const;
  OrderedJson StatusOf(const DecisionLoop& loop) const;
  std::string Status() const;

  Config config_;
  const Clock* clock_;
  ControlServer* server_;
  RunMetrics metrics_;
  std::string identity_, address_;
  std::unique_ptr<SqliteJournal> journal_;
  std::unique_ptr<JournalHealth> journal_health_;
  ClusterLink own_;
  std::vector<std::unique_ptr<ClusterLink>> others_;  // In which pods are placed, too.
  ModeSwitch switches_;
  std::unique_ptr<kube::LeaseElection> lease_;
  std::unique_ptr<kube::ConfigMapWatch> control_;
  std::vector<std::unique_ptr<PlacementLoop>> placements_;  // The own cluster's, then others'.
  std::unique_ptr<MigrationLoop> migration_;
  std::unique_ptr<RoutingLoop> routing_;
  std::vector<DecisionLoop*> loops_;  // Of these, in this order.
  std::unique_ptr<SharedStanding> standing_;
  std::string control_problem_;  // What is wrong with the ConfigMap.
  Instant started_, reported_, trimmed_, minded_;
  int openings_ = 0;  // Of the journal, as it was looked at last.
  UnixMillis started_at_;
};

// What would be done, for people: --dry-run. Errors as of Host::Start; asks no cluster.
Result<std::string> DescribeRun(const Config& config);

// Whether the cluster allows what all kinds of the configuration need.
Result<RightsReport> ReviewRunRights(const Config& config);

}  // namespace rudderfish
