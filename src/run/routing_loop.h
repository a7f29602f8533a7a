// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/journal_reader.h"
#include "control/routing_mode_evidence.h"
#include "kube/events.h"
#include "run/config.h"
#include "run/decision_loop.h"
#include "run/rights.h"
#include "run/route_driver.h"
#include "run/routing_plan.h"
#include "run/routing_round.h"
#include "run/signal_source.h"

// The loop of routing in a Host: every interval the routes are read, all of them are decided about
// together, and what the guard allows is set where the mode says so. A split that made requests
// slower than predicted is taken back.

namespace rudderfish {

class Host;

// Why what came of a change is not known.
inline constexpr std::string_view kReloaded = "the configuration was reloaded meanwhile";

class RoutingLoop final : public DecisionLoop {
 public:
  // A plan with all that it needs to begin, so that what is wrong is found before anything changes.
  struct Ready {
    RoutingPlan plan;
    SignalsConfig signals;
    std::vector<RouteDriver::Route> paths;
    std::unique_ptr<XdsServer> xds;  // Null: no route needs it.
  };
  // The signals that it reads. An error if what it needs is not among them.
  static Result<SignalsConfig> SignalsOf(const Config& config, const RoutingPlan& plan);
  static Result<Ready> Prepare(RoutingPlan plan, const Config& config, Host* host);

  // The host outlives it.
  static Result<std::unique_ptr<RoutingLoop>> Start(Ready ready, Host* host);

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
  std::string JournalTrouble() const override { return journal_trouble_; }
  void Count(ClusterCounts* counts) const override;
  void Report() override;
  OrderedJson Status() const override;
  std::string Describe() const override;
  bool IsActing() const override { return driver_ != nullptr && !driver_->is_idle(); }
  bool IsTelling() const override { return events_ != nullptr && !events_->is_idle(); }

 private:
  // A split that was set and is to be measured.
  struct Change {
    int64_t row = 0;
    Instant at;
    Split before, after;                // That stood before it, and that was set.
    std::optional<double> measured_ms;  // Before it.
    double predicted_ms = 0;            // 0: nothing was predicted.
  };
  struct Route {
    std::string name;
    std::optional<StandingWeights> standing;  // As it was read last.
    Instant read_at;
    std::string trouble;            // Why it could not be read or set; empty: it could.
    bool is_awaited = false;        // In this round.
    std::optional<Change> setting;  // Under way.
    std::optional<Change> change;   // Set, and not measured yet.
    Instant held_until;             // After a change that was taken back.
    std::optional<RoutingDecision> last;
    std::string told;  // The trouble that was logged last.
  };
  struct Fleet {                                 // What was decided about it last.
    Instant since;                               // When it was first decided about,
    std::deque<std::pair<Instant, int>> wanted;  // and what was wanted within `settle`.
    std::optional<int64_t> row;                  // In the journal, not concluded yet.
    int aim = 0;
    bool has_aim = false;
    Mode mode = Mode::kOff;  // That it was decided in.
  };
  struct Service {  // One of several that share nodes, or the only one.
    std::unique_ptr<RoutingRound> round;
    std::string problem, told;  // Why nothing can be decided, and what of that was logged last.
  };
  enum class Phase { kWaiting, kReading, kRead };

  RoutingLoop(RoutingPlan plan, Host* host);
  void Open(Ready ready);
  void OpenRoutes(std::vector<RouteDriver::Route> paths, std::unique_ptr<XdsServer> xds);
  void FollowXds();
  const RoutingConfig& config() const { return plan_.config; }
  bool ActsOn(size_t route) const;
  void Take(RouteDriver::Answer answer);
  void TakeSet(Route* route, const RouteDriver::Answer& answer);
  void Recall();
  void RecallRoute(const StoredRouting& newest, Route* route) const;
  void ReadAll();
  void DecideAll();
  void LookAt(int service);
  std::string Problem() const;  // Of the first service that has one.
  void Close(const RouteConfig& named, StandingWeights* standing) const;
  void TellHealthBySignal();
  void TellEmptyRegions(size_t route);
  int WantedLately(int wanted, int now, Fleet* fleet) const;
  std::vector<std::optional<RegionPods>> PodsNow(int service) const;
  void OpenCapacity();
  bool IsFresh(const CapacityDriver::Standing& standing) const;
  void DecideCapacity();
  void DecideFleet(size_t index, const CapacityDriver::Standing& standing);
  std::optional<int> WantedOf(const CapacityConfig& named) const;
  bool IsHealthy(const CapacityConfig& named) const;
  OrderedJson CapacityStatus() const;
  OrderedJson RegionsStatus(const Service& service, const std::string& name) const;
  void Measure(const Service& service);
  void MeasureOne(size_t route, const RegionView& view);
  bool StillStands(size_t route) const;
  void TakeBack(size_t route, const Change& change, double measured_ms);
  void CarryOut(size_t route, RouteChoice choice);
  void Send(size_t route, RouteChoice choice);
  void Tell(size_t route, const RoutingDecision& decision);
  std::string WhyHeld(size_t route) const;
  std::vector<RouteNow> RoutesNow() const;
  Result<int64_t> Append(const RoutingDecision& decision);
  void Conclude(int64_t row, const RoutingEnd& end);

  RoutingPlan plan_;
  Host* host_;
  const Clock* clock_;
  std::unique_ptr<RoutingModeEvidence> evidence_;
  std::unique_ptr<ModeLadder> ladder_;
  std::unique_ptr<kube::EventRecorder> events_;  // Null: there is no cluster.
  std::unique_ptr<SignalSource> signals_;
  SignalEntities entities_;
  std::vector<Service> services_;
  std::unique_ptr<XdsServer> xds_;
  std::string xds_trouble_;              // Why it does not listen; empty: it does, or need not.
  Instant xds_due_;                      // When that is tried again.
  std::unique_ptr<RouteDriver> driver_;  // Its routes use xds_.
  std::vector<Route> routes_;
  std::unique_ptr<CapacityDriver> capacity_;  // Null: no region has one.
  std::vector<Fleet> fleets_;                 // As in the configuration.
  Phase phase_ = Phase::kWaiting;
  Instant reading_since_;
  Mode mode_ = Mode::kOff;  // That holds, as it was looked at last.
  int64_t rounds_ = 0, decisions_ = 0, changes_ = 0;
  std::string journal_trouble_;
  Instant due_;
};

// What routing asks of a cluster.
std::vector<NeededRight> RoutingRights(const RoutingConfig& config, Mode mode);

}  // namespace rudderfish
