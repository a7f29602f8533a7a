// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api_client.h"
#include "kube/cluster_feed.h"

// What a Host has of one live cluster: two clients and what is watched. One thread.

namespace rudderfish {

struct ClusterLink {
  std::string name;                          // Empty: the configuration's own cluster.
  std::unique_ptr<kube::ApiClient> client;   // Watches, Bindings, the Lease.
  std::unique_ptr<kube::ApiClient> telling;  // Events and conditions.
  std::unique_ptr<kube::ClusterFeed> feed;   // What all loops read of it.

  // Connects to nothing yet. Watches are told to end in time for `staleness`.
  static Result<ClusterLink> Open(std::string name, const kube::ClusterAccess& access,
                                  const Clock* clock, Duration staleness);

  bool is_own() const { return name.empty(); }

  // Lets in what has come, and waits for it, at most `timeout`.
  void Poll(Duration timeout);
};

}  // namespace rudderfish
