// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/wall_time.h"
#include "run/cluster_link.h"
#include "run/decision_loop.h"
#include "run/host_parts.h"
#include "run/shared_standing.h"

// What a Host tells of itself and its loops: probes, metrics, `status`. One thread.

namespace rudderfish {

class HostReport {
 public:
  struct Subject {
    HostParts* parts = nullptr;
    const std::vector<DecisionLoop*>* loops = nullptr;
    const std::vector<std::unique_ptr<ClusterLink>>* others = nullptr;  // Other clusters.
  };

  // All outlive it, and may be empty yet.
  explicit HostReport(Subject of)
      : parts_(of.parts),
        loops_(of.loops),
        others_(of.others),
        started_(parts_->clock->Now()),
        started_at_(UnixNow()) {}

  // All that it is about is there by now. REQUIRED before the others are asked for.
  void Begin(const SharedStanding* standing) { standing_ = standing; }

  // Shows probes and metrics, a few times a second; nothing before Begin.
  void Show();

  // Why decisions are missing in the journal; empty: none is.
  std::string JournalTrouble() const;

  // `control_problem`: what is wrong with the ConfigMap.
  OrderedJson Status(const std::string& control_problem) const;

 private:
  ClusterCounts Counts() const;
  std::string LeaderTrouble() const;

  HostParts* parts_;
  const std::vector<DecisionLoop*>* loops_;
  const std::vector<std::unique_ptr<ClusterLink>>* others_;
  const SharedStanding* standing_ = nullptr;
  Instant started_, reported_;
  UnixMillis started_at_;
};

}  // namespace rudderfish
