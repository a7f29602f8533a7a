// SPDX-License-Identifier: Apache-2.0
#include "run/leaving_nodes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cluster/pod_move.h"

namespace rudderfish {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);

// Of cluster-autoscaler 1.36 and Karpenter 1.
constexpr std::string_view kDeletionTaints[] = {"ToBeDeletedByClusterAutoscaler",
                                                "karpenter.sh/disrupted"};

bool IsDeleted(const kube::Node& node) {
  return std::any_of(node.taints.begin(), node.taints.end(), [](const NodeTaint& taint) {
    return std::find(std::begin(kDeletionTaints), std::end(kDeletionTaints), taint.key) !=
           std::end(kDeletionTaints);
  });
}

}  // namespace

void LeavingNodes::Configure(Evacuate which) {
  if (which == which_) return;  // A drain that was seen goes on.
  which_ = which;
  looked_.reset();
  if (!nodes_.empty()) ++changes_;
  nodes_.clear();
}

void LeavingNodes::Turn() {
  const Instant now = clock_->Now();
  if (looked_ && now - *looked_ < kBetweenLooks) return;
  looked_ = now;
  std::set<std::string, std::less<>> nodes = Look();
  if (nodes == nodes_) return;
  nodes_ = std::move(nodes);
  ++changes_;
}

// A drain goes on after the last pod that it may evict: a node that was seen to be drained is so
// until it is uncordoned.
std::set<std::string, std::less<>> LeavingNodes::Look() const {
  std::set<std::string, std::less<>> leaving, cordoned;
  if (which_ == Evacuate::kNone) return leaving;
  for (const auto& [key, node] : mirror_->nodes.objects()) {
    const bool leaves =
        IsDeleted(node) || (node.unschedulable && (which_ == Evacuate::kCordoned || Has(key.name)));
    if (leaves) {
      leaving.insert(key.name);
    } else if (node.unschedulable) {
      cordoned.insert(key.name);
    }
  }
  if (cordoned.empty()) return leaving;
  for (const auto& [unused, pod] : mirror_->pods.objects()) {
    // A move of ours evicts as well.
    if (pod.evicted && cordoned.contains(pod.node) &&
        FindLabel(pod.shape->labels, kMoveKey) == nullptr)
      leaving.insert(pod.node);
  }
  return leaving;
}

}  // namespace rudderfish
