// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/access_review.h"
#include "kube/api_client.h"
#include "kube/mirror.h"
#include "kube/reflector.h"

// Keeps a mirror equal to a live cluster: a list and watch for each resource, and the usage that
// metrics.k8s.io serves, which cannot be watched and is polled. Nodes, pods, ReplicaSets
// and Deployments must be had; any other resource that is refused or not served is left out and
// named. One thread; all is done from within Poll and Sync.

namespace rudderfish::kube {

class MirrorFeed {
 public:
  // REQUIRES: `client` and `mirror` outlive this.
  MirrorFeed(ApiClient* client, Mirror* mirror);
  ~MirrorFeed();
  MirrorFeed(const MirrorFeed&) = delete;
  MirrorFeed& operator=(const MirrorFeed&) = delete;

  // Polls until everything that can be had has been listed once; calls `on_step` now and then.
  // Fails with what the server said, at once if it refuses, else once nothing more has been listed
  // for `limit`.
  Result<void> Sync(Duration limit, const std::function<void()>& on_step = nullptr);

  // Does what is due and waits for more, at most `timeout`; then the mirror says how fresh it is.
  void Poll(Duration timeout);

  // What it asks for; without what it needs Sync fails.
  enum class Need { kNeeded, kWanted };
  static std::vector<Right> Rights(Need need);

  // What is not had, or left out, and why, for people.
  std::vector<std::string> Missing() const;

  // What each list and watch has been through.
  std::vector<std::pair<Resource, ReflectorCounts>> Counts() const;

 private:
  struct Watched {
    Resource resource;
    std::unique_ptr<Reflector> reflector;
  };

  bool IsSettled(Duration waited) const;
  Result<void> Refused() const;
  int64_t CountListed() const;
  void NoteFreshness();
  void TellFailures();
  void AskUsage(Resource resource);
  void TakeUsage(Resource resource, const ApiAnswer& answer);

  ApiClient* client_;
  Mirror* mirror_;
  std::vector<Watched> watched_;
  std::vector<ApiClient::Id> usage_;        // [0] nodes, [1] pods: request or timer under way.
  std::vector<std::string> usage_missing_;  // The same; why, or empty.
  std::vector<bool> usage_asked_;           // The same; an answer has come.
  std::optional<ErrorCode> told_;           // Of the failure that was logged last.
};

}  // namespace rudderfish::kube
