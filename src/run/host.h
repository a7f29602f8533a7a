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
#include "run/cluster_link.h"
#include "run/config.h"
#include "run/control_server.h"
#include "run/decision_loop.h"
#include "run/host_parts.h"
#include "run/host_report.h"
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
  bool CanWait() const { return parts_.own.client != nullptr; }  // Without a cluster there is none.

  // Each kind that is due does one slice of work. True: more may be done at once.
  bool Turn();
  std::chrono::milliseconds UntilDue() const;

  // Goes on by another configuration, if all that differs can change at run time; else nothing
  // changes.
  Result<void> Reload(const Config& config);

  // Ends what is under way, and gives the lead away. At most kStopLimit.
  void Stop();

  // Why decisions are missing in the journal; empty: none is.
  std::string JournalTrouble() const { return report_.JournalTrouble(); }

  // Answers a request of the socket, in a line of JSON.
  std::string Answer(std::string_view request);

  std::string Describe() const;  // What it does, in words.

 private:
  Host(const Config& config, const Clock* clock, ControlServer* server);
  Result<void> Open();
  Result<void> Connect();
  Result<void> OpenPlacement();
  Result<void> Begin();
  Result<void> OpenStanding();
  std::vector<SwitchedKind> Kinds() const;
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

  HostParts parts_;
  std::vector<std::unique_ptr<ClusterLink>> others_;        // In which pods are placed, too.
  std::vector<std::unique_ptr<PlacementLoop>> placements_;  // The own cluster's, then others'.
  std::unique_ptr<MigrationLoop> migration_;
  std::unique_ptr<RoutingLoop> routing_;
  std::vector<DecisionLoop*> loops_;  // Of these, in this order.
  std::unique_ptr<SharedStanding> standing_;
  std::string control_problem_;  // What is wrong with the ConfigMap.
  HostReport report_;            // Of these.
  Instant trimmed_, minded_;
  int openings_ = 0;  // Of the journal, as it was looked at last.
};

}  // namespace rudderfish
