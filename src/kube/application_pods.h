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

  struct NodeUse {
    NodeLoad load;
    NodeId row = kNone;  // Set by callers that order the nodes.
  };
  using NodeUses = std::unordered_map<std::string, NodeUse>;  // By name; shrinks only if rebuilt.

  struct Member {
    std::string uid;
    const NodeUses::value_type* node;  // Where it stands.
    std::shared_ptr<const PodShape> shape;
  };
  using Members = std::map<ObjectKey, Member>;

  // What an Update found to differ. What merely moved is in none of the lists.
  struct Differences {
    bool any = false;
    bool nodes = false;                 // The nodes themselves.
    bool members = false;               // Which pods there are.
    std::vector<WorkloadId> workloads;  // Whose pods differ in what they are; with repetitions.
    bool all_workloads = false;
  };

  // Takes in what changed since the last call.
  Differences Update();

  // Pods of a workload that count as replicas and stand on a node, by namespace and name.
  const Members& members(WorkloadId workload) const { return members_[workload]; }
  NodeUses& nodes() { return nodes_; }

 private:
  // What one pod adds to the above.
  struct Tracked {
    NodeUses::value_type* node = nullptr;
    std::shared_ptr<const PodShape> shape;
    WorkloadId workload = kNone;
    bool counts = false;
  };

  void ReadAll();
  void ReadPod(const ObjectKey& key, Differences* differences);
  void ReadPodsOf(const ObjectKey& replica_set, Differences* differences);
  void NoteController(const ObjectRef& controller, const std::string& place,
                      Differences* differences);
  void Forget(const ObjectKey& key, Differences* differences);
  WorkloadId WorkloadOf(const Pod& pod) const;

  const Mirror* mirror_;
  std::shared_ptr<const Application> application_;
  std::map<std::pair<std::string, ObjectKey>, WorkloadId> workloads_;  // By kind and key.
  std::vector<Members> members_;                                       // [workload]
  std::map<ObjectKey, Tracked> tracked_;
  NodeUses nodes_;
  uint64_t cursor_ = 0;
  bool is_read_ = false;
};

}  // namespace rudderfish::kube
