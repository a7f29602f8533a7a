// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cluster/application.h"
#include "kube/mirror.h"
#include "kube/scheduling.h"

// Follows the pods of a mirror for one application: which of its workloads each belongs to, and
// what all pods together take of each node. Applies changes one pod at a time; what it holds equals
// what a fresh one would read. Not thread safe.

namespace rudderfish::kube {

class ApplicationPods {
 public:
  // REQUIRES: `mirror` outlives this.
  ApplicationPods(const Mirror* mirror, std::shared_ptr<const Application> application);

  struct Member {
    std::string uid, node;
    std::shared_ptr<const PodShape> shape;
  };
  using Members = std::map<ObjectKey, Member>;

  // Takes in what changed since the last call; true if anything here may differ.
  bool Update();

  // Pods of a workload that count as replicas and stand on a node, by namespace and name.
  const Members& members(WorkloadId workload) const { return members_[workload]; }
  const NodeLoads& loads() const { return loads_; }

 private:
  // What one pod adds to the above.
  struct Tracked {
    std::string node;
    Resources requests;
    WorkloadId workload = kNone;
    ObjectRef owner;
  };

  void ReadAll();
  void ReadPod(const ObjectKey& key);
  void ReadPodsOf(const ObjectKey& replica_set);
  void Forget(const ObjectKey& key);
  WorkloadId WorkloadOf(const Pod& pod) const;

  const Mirror* mirror_;
  std::shared_ptr<const Application> application_;
  std::map<std::pair<std::string, ObjectKey>, WorkloadId> workloads_;  // By kind and key.
  std::vector<Members> members_;                                       // [workload]
  std::map<ObjectKey, Tracked> tracked_;
  NodeLoads loads_;
  uint64_t cursor_ = 0;
  bool is_read_ = false;
};

}  // namespace rudderfish::kube
