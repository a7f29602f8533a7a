// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "control/mode.h"
#include "control/sqlite_journal.h"
#include "kube/config_map_watch.h"
#include "kube/lease.h"
#include "run/cluster_link.h"
#include "run/config.h"
#include "run/control_server.h"
#include "run/journal_health.h"
#include "run/run_metrics.h"

// What the kinds of decision of one process share: one API client and one watch of each resource of
// a cluster, one Lease, one ConfigMap and socket that hold all of them back, one journal. A Host
// opens them and keeps them up; loops only use them. One thread.

namespace rudderfish {

struct HostParts {
  Config config;
  const Clock* clock = nullptr;
  ControlServer* server = nullptr;
  RunMetrics metrics;
  std::string identity;  // Empty: there is no cluster.
  std::unique_ptr<SqliteJournal> journal;
  std::unique_ptr<JournalHealth> journal_health;
  ClusterLink own;  // To the configuration's own cluster; all of it is null without one.
  ModeSwitch switches;
  std::unique_ptr<kube::LeaseElection> lease;     // Null: no election.
  std::unique_ptr<kube::ConfigMapWatch> control;  // Null: none is named.

  bool Leads() const { return lease == nullptr || lease->IsLeader(); }
};

}  // namespace rudderfish
