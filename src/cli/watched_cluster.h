// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/config.h"
#include "cluster/application.h"
#include "cluster/cluster.h"
#include "cluster/state.h"

// The cluster that a configuration names, simulated or live, and how each application sees it. One
// thread polls it; what comes from outside comes within Poll.

namespace rudderfish {

// What a cluster is watched for.
struct WatchedApplication {
  std::shared_ptr<const Application> application;  // Of a live cluster.
  State start;                                     // Of a simulated one.
};

class WatchedCluster {
 public:
  using ControlData = std::map<std::string, std::string>;  // Of the ConfigMap.
  using OnControl = std::function<void(const ControlData&)>;

  virtual ~WatchedCluster() = default;

  // Connects, and waits until what is needed has been seen.
  static Result<std::unique_ptr<WatchedCluster>> Open(const Config& config, const Clock* clock,
                                                      std::vector<WatchedApplication> applications,
                                                      OnControl on_control);

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
};

}  // namespace rudderfish
