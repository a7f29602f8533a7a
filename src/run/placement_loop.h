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
#include "control/placement_mode_evidence.h"
#include "control/scheduler.h"
#include "kube/scheduling_follower.h"
#include "run/cluster_link.h"
#include "run/config.h"
#include "run/decision_loop.h"
#include "run/extender_server.h"
#include "run/host_parts.h"
#include "run/late_journal.h"
#include "run/placement_actuator.h"
#include "run/placement_metrics.h"
#include "run/placement_permit.h"

// The loop of placement in a Host: what it reads of a live cluster, the Scheduler for pods that
// name it, the extender, and the modes they go by. Each cluster in which pods are placed has a loop
// of its own, with modes and evidence of its own.

namespace rudderfish {

class PlacementLoop final : public DecisionLoop {
 public:
  // Adds what it needs to the link's feed. Both outlive it. The host has `decisions.placement` or
  // `extender`; that one is of the host's own cluster, and listens once the loop begins.
  static Result<std::unique_ptr<PlacementLoop>> Start(HostParts* host, ClusterLink* link);

  SwitchedKind Kind() const override;
  Result<void> Begin() override;
  void Poll() override;
  bool Turn() override;
  std::chrono::milliseconds UntilDue() const override;
  void FollowMode() override;
  ModeLadder* ladder() const override { return ladder_.get(); }
  void TellCanaryEnded(const std::string& why) override;
  std::string ClusterTrouble() const override;
  std::string JournalTrouble() const override { return late_.Missing(); }
  void Count(ClusterCounts* counts) const override;
  void Report() override;
  OrderedJson Status() const override;
  std::string Describe() const override;
  bool IsActing() const override { return !scheduler_->is_idle(); }
  void EndActing() override;
  bool IsTelling() const override { return actuator_->is_telling(); }

  // Goes on by another mode of the configuration. An error is the journal's; the mode holds.
  Result<void> Reload(const Config& config);

  const std::string& cluster() const { return link_->name; }
  std::optional<OrderedJson> Explain(const std::string& key);  // Why a pod waits, if it does.
  OrderedJson ExtenderJson() const;                            // REQUIRES: there is one.

 private:
  PlacementLoop(HostParts* host, ClusterLink* link);
  Result<void> Open();
  Result<void> OpenComparer(const PlacementConfig& placement);
  Result<void> OpenExtender();
  void FollowListing();
  std::string WhoIsLeftWaiting() const;  // By us as the leader; empty: none.
  size_t CountUnserved() const;          // Pods that name us and are not placed.
  Result<void> WriteDown(Instant now);

  HostParts* host_;
  ClusterLink* link_;
  const std::string kind_;  // placement, placement/us
  const Config config_;     // Its sections cannot change at run time, but for the mode.
  const Clock* clock_;
  std::unique_ptr<PlacementActuatorOfKube> actuator_;
  std::unique_ptr<PlacementModeEvidence> evidence_;
  std::unique_ptr<ModeLadder> ladder_;  // Of `placement`; none: there is an extender alone.
  std::unique_ptr<PlacementPermit> permit_;
  std::unique_ptr<LivePolicy> policy_;
  std::unique_ptr<LiveCluster> cluster_;  // For `status`.
  LateJournal late_;
  PlacementMetrics metrics_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<PlacementComparer> comparer_;
  PodIdentity last_canary_;
  std::unique_ptr<kube::SchedulingFollower> seen_;
  std::unique_ptr<ExtenderServer> extender_;
  bool is_listed_ = false;  // All that there is in the cluster has been seen once.
  bool has_told_who_waits_ = false;
  Instant ends_written_, turned_;
};

// What would be done, for people: --dry-run.
Result<std::string> DescribePlacement(const Config& config);

// The kind that places in this cluster; empty: the configuration's own. placement, placement/us
std::string PlacementKind(std::string_view cluster);

}  // namespace rudderfish
