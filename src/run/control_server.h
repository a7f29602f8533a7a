// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"
#include "net/http_server.h"
#include "serve/health.h"

// /livez, /readyz and /metrics of a controller. Its threads only read what the controller's one
// thread sets here: they see it at work as long as Beat is called, and ready while every Condition
// holds. Listens before the cluster is seen, so that probes are told what it waits for.

namespace rudderfish {

class ControlServer {
 public:
  // Listens nowhere if `listen` is empty; all else works alike. `clock` outlives it.
  static Result<std::unique_ptr<ControlServer>> Start(const std::string& listen,
                                                      const Clock* clock);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;

  MetricRegistry* metrics() { return &metrics_; }

  Condition& cluster() { return cluster_; }  // All that is needed is seen, and fresh.
  Condition& journal() { return journal_; }  // It can be written.
  Condition& leader() { return leader_; }    // It leads, or knows who does.

  // The controller's thread is at work.
  void Beat() { beat_ = clock_->Now().time_since_epoch().count(); }

  std::vector<std::string> addresses() const;

 private:
  explicit ControlServer(const Clock* clock);
  std::string LoopTrouble() const;

  const Clock* clock_;
  MetricRegistry metrics_;
  HealthChecks live_{"livez"};
  HealthChecks ready_{"readyz"};
  Condition cluster_{"not seen yet"};
  Condition journal_{"not opened yet"};
  Condition leader_{"not known yet"};
  std::atomic<Duration::rep> beat_;
  std::unique_ptr<HttpServer> server_;  // Last: its threads read the others.
};

}  // namespace rudderfish
