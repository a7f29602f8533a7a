// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/application.h"
#include "kube/api_client.h"
#include "kube/application_pods.h"
#include "kube/cluster_feed.h"
#include "kube/mirror.h"

// A live cluster as REACH's experiments see it and act upon it: an application's pods and where
// they stand, nodes that are made to fail, workloads that are scaled. One thread.

namespace rudderfish {

class ReachCluster {
 public:
  // `access`: as FindCluster (kube/kubeconfig.h) found it. Waits until all that is needed was seen.
  static Result<std::unique_ptr<ReachCluster>> Open(kube::ClusterAccess access,
                                                    std::shared_ptr<const Application> application);
  ~ReachCluster();  // Opens the nodes that it has closed.

  // Looks, for at most `wait`.
  void Poll(Duration wait) { feed_->Poll(wait); }
  const Clock& clock() const { return clock_; }
  const kube::Mirror& mirror() const { return mirror_; }

  // Why a workload does not have as many pods that are ready as it wants; empty: all have.
  std::string WhyNotReady();

  // All nodes but those of the control plane, by name.
  std::vector<std::string> Nodes() const;
  int PodsOn(WorkloadId workload, std::string_view node);

  // kNotFound, or kFailedPrecondition if somebody has closed it already.
  Result<void> CheckOpen(const std::string& node) const;
  // Closes a node to new pods, with a note that it was done here, which outlives this process.
  Result<void> Close(const std::string& node);
  // All nodes that this has closed; tries each.
  Result<void> OpenAll();
  // Opens what a process that was killed has left closed. Their names.
  Result<std::vector<std::string>> OpenLeft();

  // Asks for the eviction of the application's pods on a node. How many are still there, and why if
  // an eviction was refused: ask again then.
  struct Evicted {
    int left = 0;
    std::string refused;
  };
  Result<Evicted> EvictFrom(std::string_view node);

  // Its replicas before. kFailedPrecondition if it is no Deployment.
  Result<int64_t> Scale(WorkloadId workload, int64_t replicas);

 private:
  explicit ReachCluster(std::shared_ptr<const Application> application);
  Result<void> Patch(const std::string& path, const std::string& body);
  enum class Cordon { kOn, kOff };
  Result<void> Set(Cordon cordon, const std::string& node);

  std::shared_ptr<const Application> application_;
  SystemClock clock_;
  std::unique_ptr<kube::ApiClient> client_;
  kube::Mirror mirror_;
  std::unique_ptr<kube::ClusterFeed> feed_;
  kube::ApplicationPods pods_;
  std::vector<std::string> closed_;
};

}  // namespace rudderfish
