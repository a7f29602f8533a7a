// SPDX-License-Identifier: Apache-2.0
#include "run/cluster_link.h"

#include <algorithm>
#include <utility>

#include "run/watched_cluster.h"

namespace rudderfish {
namespace {

constexpr int kRequestsMax = 24;  // More at a time are not answered any faster.
// While Events are under way on their own connections.
constexpr Duration kTellingWait = std::chrono::milliseconds(2);

}  // namespace

Result<ClusterLink> ClusterLink::Open(std::string name, const kube::ClusterAccess& access,
                                      const Clock* clock, Duration staleness) {
  ClusterLink link{.name = std::move(name), .client = nullptr, .telling = nullptr, .feed = nullptr};
  TRY_ASSIGN(link.client, kube::ApiClient::Open(access, clock,
                                                {.requests_max = kRequestsMax,
                                                 .watch_timeout = WatchTimeoutWithin(staleness)}));
  TRY_ASSIGN(link.telling, kube::ApiClient::Open(access, clock));
  link.feed = std::make_unique<kube::ClusterFeed>(link.client.get());
  return link;
}

void ClusterLink::Poll(Duration timeout) {
  telling->Poll(Duration::zero());
  if (!telling->is_idle()) timeout = std::min(timeout, kTellingWait);
  feed->Poll(timeout);
}

}  // namespace rudderfish
