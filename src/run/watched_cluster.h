// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/application.h"
#include "cluster/cluster.h"
#include "cluster/state.h"
#include "kube/config_map_watch.h"
#include "run/config.h"

// The cluster that a configuration names, simulated or live, and how each application sees it. One
// thread polls it; what comes from outside comes within Poll.

namespace rudderfish {

// What a cluster is watched for.
struct WatchedApplication {
  std::shared_ptr<const Application> application;  // Of a live cluster.
  State start;                                     // Of a simulated one.
};

// What a cluster has been asked and has told, for whoever operates it.
struct ClusterCounts {
  struct Watched {
    std::string resource;  // deployments.apps
    int64_t objects = 0;
    int64_t lists = 0, failures = 0, expired = 0, events = 0, malformed = 0, unreadable = 0;
  };
  std::vector<Watched> watched;
  int64_t requests = 0, request_failures = 0, throttled = 0;
  int64_t lease_renewals = 0, lease_failures = 0, leaderships_lost = 0;
  int64_t events_sent = 0, events_lost = 0;
};

// Which of several instances decides.
struct Seat {
  bool is_elected = false;  // By a Lease; else there is only this instance, which leads.
  std::string identity;     // Ours.
  std::string holder;       // As last seen; empty: nobody.
  std::string trouble;      // Why that is not known.
};

class WatchedCluster {
 public:
  using OnControl = kube::ConfigMapWatch::OnSaid;

  virtual ~WatchedCluster() = default;

  // Connects, and waits until what is needed has been seen; calls `on_step` meanwhile.
  static Result<std::unique_ptr<WatchedCluster>> Open(const Config& config, const Clock* clock,
                                                      std::vector<WatchedApplication> applications,
                                                      OnControl on_control,
                                                      const std::function<void()>& on_step);

  // Other applications in the same cluster. Clusters got before are gone. A simulated cluster goes
  // on as it is.
  virtual void Watch(std::vector<WatchedApplication> applications, const Config& config) = 0;

  virtual Cluster* Of(size_t application) = 0;

  // Does what is due; waits for more, at most `timeout`, if `CanWait`.
  virtual void Poll(std::chrono::milliseconds timeout) = 0;
  virtual bool CanWait() const = 0;

  virtual std::string Name() const = 0;

  // What is not seen of it, and why, for people.
  virtual std::vector<std::string> Missing() const = 0;

  // Why the ConfigMap by which people steer is not known as it is now; empty: it is, or none is
  // named.
  virtual std::string WhyControlIsUnread() const { return ""; }

  // Whether this instance decides. Asked right before each row that is written: it ends by time
  // alone.
  virtual bool Leads() const { return true; }
  virtual Seat GetSeat() const { return {}; }

  // Gives the lead to whoever comes next; at most `limit`. Before the end.
  virtual void Resign(Duration /*limit*/) {}

  // Tells people about a workload, as an Event, where that is switched on.
  virtual void Tell(const WorkloadObject& /*workload*/, const std::string& /*note*/) {}

  virtual ClusterCounts Counts() const { return {}; }
};

// After which an API server is to end a watch, so that one that hangs is noticed, and begun anew
// elsewhere, before what it told is older than `staleness`.
Duration WatchTimeoutWithin(Duration staleness);

}  // namespace rudderfish
