// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "cloud/xds_board.h"
#include "control/application_run.h"
#include "control/journal.h"
#include "control/mode.h"
#include "control/routing_decision.h"
#include "control/sqlite_database.h"
#include "kube/cluster_feed.h"
#include "run/signal_source.h"

// What an operator sees of a controller at /metrics (docs/operations.md lists it). Written by the
// controller's one thread, read by the server's.

namespace rudderfish {

// How far a controller may go now.
struct Standing {
  std::string_view kind = "migration";  // Of decisions.
  Mode mode = Mode::kOff;
  bool paused = false;
  bool leads = true;
};

// What a cluster has been asked and has told, as metrics for operators.
struct ClusterCounts {
  std::vector<kube::ClusterFeed::Watched> watched;
  int64_t requests = 0, request_failures = 0, throttled = 0;
  int64_t lease_renewals = 0, lease_failures = 0, leaderships_lost = 0;
  int64_t events_sent = 0, events_lost = 0;
};

class RunMetrics {
 public:
  // The registry outlives it.
  explicit RunMetrics(MetricRegistry* registry);

  void CountRow(const JournalRow& row);
  void CountTurn(double seconds) { turn_seconds_.Observe(seconds); }

  // A plan has ended, after moves that were predicted to gain so much together.
  void CountPlan(const std::string& application, double gain_ms);

  void ShowStanding(const Standing& standing);
  void ShowApplication(const ApplicationRun& run, double state_age_seconds);
  void ShowCluster(const ClusterCounts& counts);
  void ShowSignals(const std::vector<SignalStanding>& signals);
  void ShowJournal(const JournalExtent& extent, const std::vector<EvidenceSum>& evidence);
  void ShowRoute(const RoutingDecision& last);
  void ShowXdsClients(const std::string& service, size_t clients);
  void ShowXdsLoad(const std::string& service, const std::string& region, const XdsLoad& load);
  void ShowProcess();

 private:
  MetricRegistry* registry_;
  Histogram& turn_seconds_;
};

}  // namespace rudderfish
