// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/application.h"
#include "cluster/cluster.h"
#include "cluster/state.h"
#include "kube/api_client.h"
#include "kube/cluster_feed.h"
#include "run/config.h"
#include "run/move_driver.h"
#include "run/moving_cluster.h"
#include "run/run_metrics.h"
#include "run/trace_places.h"

// The cluster that a configuration names, simulated or live, and how each application sees it. What
// comes of a live cluster comes by a ClusterFeed, which the owner polls. One thread.

namespace rudderfish {

// What a cluster is watched for.
struct WatchedApplication {
  std::shared_ptr<const Application> application;  // Of a live cluster.
  State start;                                     // Of a simulated one.
};

// Reasons of the Events that are told of workloads.
inline constexpr std::string_view kWouldMove = "WouldMove", kMoved = "Moved",
                                  kNotMoved = "NotMoved";

class WatchedCluster {
 public:
  virtual ~WatchedCluster() = default;

  // Of a live cluster; all outlive this.
  struct Connection {
    kube::ClusterFeed* feed = nullptr;   // Null: the cluster is simulated.
    kube::ApiClient* telling = nullptr;  // For Events.
    MoveDriver* moves = nullptr;
    std::string identity;  // Ours, in Events.
  };

  // Adds what is needed to the feed, which has not been polled yet.
  static std::unique_ptr<WatchedCluster> Open(const Config& config, const Clock* clock,
                                              Connection connection,
                                              std::vector<WatchedApplication> applications);

  // Other applications in the same cluster. Clusters got before are gone. A simulated cluster goes
  // on as it is.
  virtual void Watch(std::vector<WatchedApplication> applications, const Config& config) = 0;

  virtual Cluster* Of(size_t application) = 0;

  // The same, and what is submitted to it is carried out.
  virtual Cluster* ActedOn(size_t application) = 0;

  // Its move that is under way: from now on the MoveDriver is asked for its end.
  virtual std::optional<MovingCluster::LetGoMove> LetGo(size_t /*application*/) { return {}; }

  // Why nothing is to be decided for it now that no move of ours is under way; empty: all is well.
  // After Of(application) was refreshed.
  virtual std::string WhyBusy(size_t /*application*/) const { return ""; }

  // Where spans of its traces are from; nothing of a simulated cluster.
  virtual std::optional<TracePlaces> PlacesOf(size_t /*application*/) const { return {}; }

  // How long its pods took from their start until they were Ready, in the median; 0: not known.
  virtual Duration StartTimeOf(size_t /*application*/, WorkloadId /*workload*/) const {
    return Duration(0);
  }

  // Whether somebody empties the node of that name or deletes it soon, as far as `evacuate` says.
  virtual bool Leaves(std::string_view /*node*/) const { return false; }

  // Time has gone on.
  virtual void Poll() {}

  // What is not seen of it, and why, for people.
  virtual std::vector<std::string> Missing() const = 0;

  // Tells people about a workload, as an Event; a simulated cluster has none.
  virtual void Tell(const WorkloadObject& /*workload*/, std::string_view /*reason*/,
                    const std::string& /*note*/) {}

  virtual bool IsTelling() const { return false; }

  // Adds its Events.
  virtual void Count(ClusterCounts* /*counts*/) const {}
};

// After which an API server is to end a watch, so that one that hangs is noticed, and restarted
// elsewhere, before what it told is older than `staleness`.
Duration WatchTimeoutWithin(Duration staleness);

}  // namespace rudderfish
