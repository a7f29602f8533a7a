// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "control/mode.h"
#include "control/placement_comparer.h"
#include "control/scheduler.h"
#include "control/sqlite_journal.h"
#include "kube/config_map_watch.h"
#include "kube/lease.h"
#include "kube/scheduling_feed.h"
#include "run/config.h"
#include "run/control_server.h"
#include "run/extender_server.h"
#include "run/journal_health.h"
#include "run/placement_actuator.h"
#include "run/placement_modes.h"
#include "run/rights.h"
#include "run/run_loop.h"
#include "run/run_metrics.h"
#include "run/shared_standing.h"
#include "run/switch_request.h"

// What `run` drives where pods are placed: a live cluster's feed, the Scheduler for pods that name
// it, and what an operator needs of them. One thread; all happens within Poll and Turn.

namespace rudderfish {

class PlacementLoop final : public RunLoop {
 public:
  static constexpr std::chrono::seconds kStopLimit{8};

  // Listens, connects, and waits until all that is needed has been seen. Both outlive it.
  static Result<std::unique_ptr<PlacementLoop>> Start(const Config& config, const Clock* clock,
                                                      ControlServer* server);
  ~PlacementLoop() override;

  void Poll(std::chrono::milliseconds timeout) override;
  bool CanWait() const override { return true; }
  bool Turn() override;
  std::chrono::milliseconds UntilDue() const override;
  void Stop() override;  // Takes kStopLimit at most.
  std::string Answer(std::string_view request) override;

  std::string Describe() const;  // What it does, in words.

 private:
  PlacementLoop(const Config& config, const Clock* clock, ControlServer* server);
  Result<void> Open();
  bool MayAct() const;
  bool Leads() const { return lease_ == nullptr || lease_->IsLeader(); }
  bool Serves() const;  // Pods that name us, as far as the mode goes.
  Mode EffectiveMode() const;
  SwitchedKind Kind() const;
  Mode Configured() const { return modes_ == nullptr ? Mode::kOff : modes_->mode(); }
  Result<void> OpenComparer(const PlacementConfig& placement);
  Result<void> OpenExtender();
  void FollowMode();
  Result<void> LookAtCanary();
  std::string WhyNoLadder() const;  // To promote and demote; empty: there is one.
  std::string Kept(std::string answer);
  std::optional<Instant> FreshAsOf() const;  // What decisions rest on; nothing: not seen yet.
  bool IsFresh() const;
  std::string Trouble() const;
  std::string WhyNotFresh() const;        // Empty: what is seen is recent enough.
  std::string WhyNobodyPlaces() const;    // Of the pods that name us; empty: we do.
  std::string WhoIsLeftWaiting() const;   // By us, who lead; empty: nobody.
  size_t CountUnserved() const;           // Pods that name us and that nobody places.
  std::string WhyExtenderIsHeld() const;  // Of all pods; empty: it is not.
  std::string WhyExtenderIsHeldFor(const PodIdentity& pod) const;
  std::string Explain(const std::string& key);
  Result<bool> TakeTurn(Instant now);  // An error is the journal's.
  void NoteJournal(const Result<void>& written);
  void NoteStanding(const Result<void>& kept);
  void Report();
  void ShowPlacement();
  std::string Status() const;
  OrderedJson ExtenderJson() const;
  OrderedJson TypesJson() const;

  Config config_;
  const Clock* clock_;
  ControlServer* server_;
  RunMetrics metrics_;
  std::string identity_, address_;
  std::unique_ptr<SqliteJournal> journal_;
  std::unique_ptr<kube::ApiClient> client_;   // Watches, Bindings, the Lease.
  std::unique_ptr<kube::ApiClient> telling_;  // Events and conditions.
  std::unique_ptr<PlacementActuatorOfKube> actuator_;
  std::unique_ptr<PlacementModes> modes_;  // Of `placement`.
  std::unique_ptr<LivePolicy> policy_;
  std::unique_ptr<LiveCluster> cluster_;  // For `status`.
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<PlacementComparer> comparer_;
  PodIdentity last_canary_;
  std::unique_ptr<kube::SchedulingFeed> feed_;
  std::unique_ptr<kube::LeaseElection> lease_;
  std::unique_ptr<kube::ConfigMapWatch> control_;
  std::unique_ptr<ExtenderServer> extender_;
  std::unique_ptr<SharedStanding> standing_;
  ModeSwitch switches_;
  bool is_ending_ = false;  // No Binding goes out any more.
  std::array<int64_t, kStepBackNames.size()> steps_told_{};
  std::unique_ptr<JournalHealth> journal_health_;
  std::string control_problem_;
  bool has_told_who_waits_ = false;
  Instant started_, reported_, trimmed_, ends_written_, turned_;
  UnixMillis started_at_;
};

// What would be done, for people: --dry-run.
Result<std::string> DescribePlacement(const Config& config);

// As ReviewRights, of what placing asks for.
Result<RightsReport> ReviewPlacementRights(const Config& config);

}  // namespace rudderfish
