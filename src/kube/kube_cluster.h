// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/application.h"
#include "cluster/cluster.h"
#include "kube/application_pods.h"
#include "kube/mirror.h"

// The live cluster, or a dump of one, as one application sees it. What the API server says comes
// from a Mirror, what it does not know from the Application. Read-only: it refuses to act.
//
// The order is canonical: nodes by name, workloads in the application's order, pods by workload,
// then by namespace and name. So the same objects give the same State, to the bit.
//
// What is free on a node is what kube-scheduler would find free; what it offers the application is
// that and what its pods there ask for. A node that takes no new pods has nothing free. A workload
// whose pods differ in requests, during a rollout for instance, counts with the most. Not thread
// safe.

namespace rudderfish::kube {

struct KubeClusterOptions {
  Duration staleness_limit = std::chrono::seconds(30);  // Refresh fails beyond it.
};

class KubeCluster final : public Cluster {
 public:
  // REQUIRES: the mirror outlives this; each external workload's layer has a kind of node.
  KubeCluster(const Mirror* mirror, std::shared_ptr<const Application> application,
              KubeClusterOptions options = {});

  // Fails, and leaves the State as it was, if what is known is too old or not enough to decide on:
  // kUnavailable, kFailedPrecondition. The version grows whenever anything but the time differs.
  Result<void> Refresh(State* state) override;

  // kConflict if what an intent touches is no longer as it was seen, else kFailedPrecondition.
  void Submit(std::span<const Intent> intents, Completions* completions) override;

  Duration Now() const override { return mirror_->clock().Now().time_since_epoch(); }

  // As measured, in place of the application's own; the next Refresh shows it.
  // REQUIRES: as many layers as the catalog.
  void SetNetwork(Network network);

  // Of the State of the last Refresh. Empty uid: outside of the cluster.
  struct PodObject {
    ObjectKey key;
    std::string uid;
  };
  PodObject pod_object(PodId pod) const;

  // Why a workload is not moved, and why a node takes no new pods; empty if they are.
  const std::vector<std::string>& obstacles(WorkloadId workload) const {
    return obstacles_[workload];
  }
  const std::string& closed_because(NodeId node) const { return closed_[node]; }

 private:
  struct Row {  // Of State::nodes.
    std::string name;
    const Node* node;  // Null: outside.
    KindId kind;
  };

  Result<void> CheckFresh() const;
  Result<void> Build(State* state);
  void ListNodes();
  std::vector<const Node*> MoveTargets() const;
  void LookAtWorkloads();
  void LookAt(WorkloadId workload);
  std::shared_ptr<const Catalog> MakeCatalog() const;
  Result<void> CheckPods() const;
  void BuildPods(State* state);
  std::shared_ptr<const Names> MakeNames() const;
  void BuildRoom(State* state);
  std::vector<std::vector<PodToleration>> TolerationsOfMovable(const Catalog& catalog) const;
  Result<void> Review(const Intent& intent) const;

  const Mirror* mirror_;
  std::shared_ptr<const Application> application_;
  KubeClusterOptions options_;
  ApplicationPods pods_;
  Network network_;
  ApplicationPods::Differences pending_{true, true, true, {}, true};  // Since State was built.

  std::vector<Row> rows_;
  std::vector<const ApplicationPods::Members::value_type*> pod_members_;  // [pod] Null: outside.
  std::vector<Resources> requests_;                                       // [workload]
  std::vector<std::vector<std::string>> obstacles_;                       // [workload]
  std::vector<std::vector<std::vector<PodToleration>>> tolerations_;      // [workload], each once.
  std::set<WorkloadId> held_for_a_time_;  // Looked at again whenever there is a Refresh.
  std::set<WorkloadId> choosy_;           // Looked at again whenever nodes differ.
  std::vector<std::string> closed_;       // [node]
  std::shared_ptr<const Names> names_;
  State state_;  // As last built.
  State next_;   // Being built; keeps its memory.
};

}  // namespace rudderfish::kube
