// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/access_review.h"
#include "kube/api_client.h"
#include "kube/fan_out.h"
#include "kube/feed_follower.h"
#include "kube/list_poll.h"
#include "kube/reflector.h"

// What a process watches of a live cluster: one list and watch for each resource that a follower
// needs, however many followers need it; and the usage that metrics.k8s.io serves, which cannot be
// watched and is polled. What a follower needs must be had; what it wants and is refused, or not
// served, is left out and named. One thread; all is done from within Poll and Sync.

namespace rudderfish::kube {

// Which pods that have ended are told beside those that have not: a cluster may have many times
// more of them.
enum class EndedPods { kUntold, kFailed, kAll };

class ClusterFeed {
 public:
  // REQUIRES: `client` outlives this.
  explicit ClusterFeed(ApiClient* client) : client_(client) {}
  ClusterFeed(const ClusterFeed&) = delete;
  ClusterFeed& operator=(const ClusterFeed&) = delete;

  // REQUIRES: nothing has been polled yet; `follower` outlives the last Poll. Where they differ
  // in the pods that have ended, all are told of the most.
  void Add(FeedFollower* follower, EndedPods ended = EndedPods::kUntold);

  // Polls until everything that can be had has been listed once; calls `on_step` now and then.
  // Fails with what the server said, at once if it refuses what is needed, else once nothing more
  // has been listed for `limit`; after 5 s, or 30 s without an error, if nothing is heard of it.
  Result<void> Sync(Duration limit, const std::function<void()>& on_step = nullptr);

  // Does what is due and waits for more, at most `timeout`; then followers are told.
  void Poll(Duration timeout);

  // Since when what was told of it is the truth; nothing before it is listed.
  std::optional<Instant> FreshAt(Resource resource) const;

  // Why the API server refuses it, for good; null: it does not.
  const Error* RefusalOf(Resource resource) const;
  bool IsSynced(Resource resource) const;

  // Of what a follower reads: since when all of it is the truth, but for what it only wants and is
  // refused; what is in trouble and why, or empty; what it does not have, for people.
  std::optional<Instant> FreshAsOf(const FeedFollower& follower) const;
  std::string Trouble(const FeedFollower& follower) const;
  std::vector<std::string> Missing(const FeedFollower& follower) const;

  struct Watched {
    std::string resource;  // replicasets.apps
    size_t objects = 0;    // The most that a follower keeps.
    ReflectorCounts counts;
  };
  std::vector<Watched> Counts() const;

  // What a follower with these needs asks of the API server.
  static std::vector<Right> Rights(std::span<const ResourceNeed> needs, Need need);

 private:
  struct Source {
    Resource resource;
    bool is_needed = false;
    std::unique_ptr<FanOut> sinks;
    std::unique_ptr<Reflector> reflector;  // Either this
    std::unique_ptr<ListPoll> poll;        // or that, once started.

    bool IsSynced() const;
    const Error* error() const;
    const Error* Refusal() const;
    bool IsSettled() const;  // It is there, or will not come.
  };

  struct Standing {
    bool is_needed_there = true, is_wanted_settled = true;
    int64_t listed = 0;
    const Error* failed = nullptr;
  };

  void Start();
  Standing Look() const;
  void TellFailures();
  const Source& SourceOf(Resource resource) const;

  ApiClient* client_;
  std::vector<FeedFollower*> followers_;
  EndedPods ended_ = EndedPods::kUntold;
  std::vector<Source> sources_;  // In the order in which they were asked for.
  bool is_started_ = false;
  std::optional<ErrorCode> told_;  // Of the failure that was logged last.
};

}  // namespace rudderfish::kube
