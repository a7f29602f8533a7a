// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/routing_mode_evidence.h"
#include "kube/events.h"
#include "run/capacity_decider.h"
#include "run/config.h"
#include "run/decision_loop.h"
#include "run/host_parts.h"
#include "run/live_routes.h"
#include "run/routing_plan.h"
#include "run/routing_round.h"
#include "run/routing_rows.h"
#include "run/signal_source.h"
#include "run/split_trial.h"

// The loop of routing in a Host: every interval the routes are read, all of them are decided about
// together, and what the guard allows is set where the mode says so. A split that made requests
// slower than predicted is taken back.

namespace rudderfish {

class RoutingLoop final : public DecisionLoop {
 public:
  // A plan with all that it needs to begin, so that what is wrong is found before anything changes.
  struct Ready {
    RoutingPlan plan;
    SignalsConfig signals;
    std::vector<RouteDriver::Route> paths;
    std::unique_ptr<XdsServer> xds;  // Null: no route needs it.
  };
  static Result<Ready> Prepare(RoutingPlan plan, const Config& config, HostParts* host);

  // The host outlives it.
  static Result<std::unique_ptr<RoutingLoop>> Start(Ready ready, HostParts* host);

  // Goes on by another plan. An error is the journal's; the plan holds.
  Result<void> Reload(Ready ready);

  SwitchedKind Kind() const override;
  Result<void> Begin() override { return {}; }
  void Poll() override;
  bool Turn() override;
  std::chrono::milliseconds UntilDue() const override;
  void FollowMode() override;
  ModeLadder* ladder() const override { return ladder_.get(); }
  std::string ClusterTrouble() const override;
  std::string JournalTrouble() const override { return rows_.trouble(); }
  void Count(ClusterCounts* counts) const override;
  void Report() override;
  OrderedJson Status() const override;
  std::string Describe() const override;
  bool IsActing() const override { return !live_.driver().is_idle(); }
  bool IsTelling() const override { return events_ != nullptr && !events_->is_idle(); }

 private:
  struct Route {
    std::string name;
    SplitTrial trial;
    std::optional<RoutingDecision> last;
  };

  RoutingLoop(RoutingPlan plan, HostParts* host);
  void Open(Ready ready);
  const RoutingConfig& config() const { return plan_.config; }
  void FollowLead();
  bool ActsOn(size_t route) const;
  std::vector<RouteNow> RoutesNow() const;
  void DecideAll();
  void LookAt(int service);
  void Measure(int service);
  void CarryOut(size_t route, RouteChoice choice);
  void Send(size_t route, RouteChoice choice);
  void Tell(size_t route, const RoutingDecision& decision);

  RoutingPlan plan_;
  HostParts* host_;
  const Clock* clock_;
  std::unique_ptr<RoutingModeEvidence> evidence_;
  std::unique_ptr<ModeLadder> ladder_;
  std::unique_ptr<kube::EventRecorder> events_;  // Null: there is no cluster.
  std::unique_ptr<SignalSource> signals_;
  SignalEntities entities_;
  RoutingRows rows_;
  LiveRoutes live_;
  CapacityDecider capacity_;
  std::vector<RoutingRound> rounds_;  // Of the services that share nodes, or the only one.
  std::vector<Route> routes_;
  bool is_reading_ = false;  // The routes, before it decides.
  Mode mode_ = Mode::kOff;   // That holds, as it was looked at last.
  int64_t decided_rounds_ = 0, decisions_ = 0, changes_ = 0;
  Instant due_;
};

// The signals that routing reads. An error if what it needs is not among them.
Result<SignalsConfig> RoutingSignals(const Config& config, const RoutingPlan& plan);

}  // namespace rudderfish
