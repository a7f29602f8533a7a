// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "cluster/scheduling_observer.h"
#include "control/mode.h"
#include "control/mode_ladder.h"
#include "kube/scheduling_follower.h"
#include "run/cluster_link.h"
#include "run/host_parts.h"

// Whether pods may be placed in a cluster now, and if not, why not: by the mode that placement has
// reached there and what holds it back, by who leads, and by how recent what is seen is. Changes
// nothing. One thread.

namespace rudderfish {

class PlacementPermit {
 public:
  // All outlive it. `ladder`: of placement; null: there is an extender alone. `canary`: the share
  // of pods that a policy places in that mode.
  PlacementPermit(const HostParts* host, const ClusterLink* link, const ModeLadder* ladder,
                  double canary)
      : host_(host), link_(link), ladder_(ladder), canary_(canary) {}

  // What decisions rest on. REQUIRED before more than the mode is asked for.
  void Watch(const kube::SchedulingFollower* seen) { seen_ = seen; }
  // No Binding goes out any more.
  void End() { is_ending_ = true; }

  Mode Configured() const { return ladder_ == nullptr ? Mode::kOff : ladder_->mode(); }
  Mode Effective() const;
  double CanaryShare() const;
  bool Serves() const;  // Pods that name us, as far as the mode goes.
  bool IsFresh() const;
  bool MayAct() const;
  bool LeavesUnserved() const;  // Pods that name us are not placed.
  bool LeavesByMode() const;    // We lead, are not held back, and yet do not serve.

  std::string Trouble() const;            // With watching; empty: none.
  std::string Unseen() const;             // Why what is seen is not recent enough; empty: it is.
  std::string WhyNotPlacing() const;      // Pods that name us; empty: we place them.
  std::string WhyExtenderIsHeld() const;  // Of all pods; empty: it is not.
  std::string WhyExtenderIsHeldFor(const PodIdentity& pod) const;

 private:
  std::optional<Instant> FreshAsOf() const;  // What decisions rest on; nothing: not seen yet.
  std::string WhyNotFresh() const;           // Empty: what is seen is recent enough.

  const HostParts* host_;
  const ClusterLink* link_;
  const ModeLadder* ladder_;
  double canary_;
  const kube::SchedulingFollower* seen_ = nullptr;
  bool is_ending_ = false;
};

}  // namespace rudderfish
