// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/catalog.h"
#include "control/live_policy.h"
#include "kube/kubeconfig.h"

// Which node a pod of a live cluster should get, by a policy of placement, for schedulers that are
// not ours and ask over their own wires. It follows the cluster on a thread of its own; any thread
// may ask, and waits no longer than it says.
//
// What was chosen for a pod by name counts as taken until the pod is there, gone, or half a minute
// has passed. A client that asks again about it in that time gets the same node, if it still fits:
// some schedulers ask once for each node that they consider.

namespace rudderfish {

struct NodeChooserOptions {
  kube::KubeconfigChoice cluster;
  LivePolicyOptions policy;
  Duration staleness = std::chrono::seconds(30);  // Nothing is chosen on what is older.
};

class NodeChooser {
 public:
  // Connects, and waits until all that is needed has been seen. `clock` outlives it.
  static Result<std::unique_ptr<NodeChooser>> Start(const NodeChooserOptions& options,
                                                    const Clock* clock);
  ~NodeChooser();
  NodeChooser(const NodeChooser&) = delete;
  NodeChooser& operator=(const NodeChooser&) = delete;

  // For a pod that waits: "name", or "namespace/name" where several bear it. One that has a node
  // already gets that. kNotFound: no such pod, or no node fits; kConflict: several;
  // kUnavailable: what is seen is too old; kFailedPrecondition: it has what is not modelled.
  Result<std::string> ChooseFor(const std::string& pod, Duration limit);

  // For a pod that is only described: every node that has an address, and the one that is best.
  struct Described {
    int64_t cpu_millis = 0, memory_bytes = 0;
    LatencyLimits limits;
  };
  struct Choice {
    std::string best;                    // An address.
    std::vector<std::string> addresses;  // InternalIP of each node, by the nodes' names.
  };
  Result<Choice> ChooseDescribed(const Described& pod, Duration limit);

  const std::string& policy() const { return policy_name_; }
  const std::string& server() const { return server_; }

  // Why not; empty: it is. For health checks.
  std::string WhyNotAlive() const;
  std::string WhyNotReady() const;

 private:
  class Follower;

  NodeChooser(std::string policy, std::string server, const Clock* clock, Duration staleness);
  void Drive();
  void DoTasks();
  // Calls `task` on the thread that follows the cluster; false: it was not done within the limit,
  // and will not be.
  bool OnThread(Duration limit, std::function<void(Follower&)> task);

  std::string policy_name_, server_;
  const Clock* clock_;
  Duration staleness_;
  std::unique_ptr<Follower> follower_;  // Of the thread.
  int wake_;
  struct Task {
    std::function<void(Follower&)> call;
    bool is_begun = false, is_done = false;
  };
  mutable std::mutex mutex_;
  std::condition_variable done_;
  std::deque<std::shared_ptr<Task>> tasks_;
  std::string not_ready_ = "it is starting";
  Instant turned_;
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

}  // namespace rudderfish
