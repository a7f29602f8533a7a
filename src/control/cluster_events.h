// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "control/scheduling_queue.h"
#include "control/scheduling_tables.h"

// What has happened in a cluster since the pods that sleep were looked at last, and whose wait that
// may end (kube-scheduler's events and queueing hints). Where rules look at one node alone, what
// has happened on a node wakes only whom that node has room for now: many pods that fit nowhere are
// not tried again each time that a small one leaves. One thread.

namespace rudderfish {

// Rejections that follow from the pod and what is on one node.
inline constexpr RejectionMask kOfOneNode =
    MaskOf(Rejection::kNotNamed) | MaskOf(Rejection::kUnschedulable) | MaskOf(Rejection::kTaint) |
    MaskOf(Rejection::kNodeAffinity) | MaskOf(Rejection::kHostPort) |
    MaskOf(Rejection::kResources) | MaskOf(Rejection::kVolumeLimit) |
    MaskOf(Rejection::kVolumeAffinity) | MaskOf(Rejection::kVolumeZone) |
    MaskOf(Rejection::kSpreadLabel) | MaskOf(Rejection::kUnreadPod) |
    MaskOf(Rejection::kUnknownVolumes) | MaskOf(Rejection::kTooFar);

class ClusterEvents {
 public:
  using ShapeOf = std::function<const std::shared_ptr<const PodClass>&(const std::string& key)>;

  void Note(RejectionMask may_end) { anywhere_ |= may_end; }
  void NoteOn(std::string_view node, RejectionMask may_end);
  bool empty() const { return anywhere_ == 0 && on_nodes_.empty(); }

  // Wakes whom they may concern, and forgets them.
  void Wake(const ShapeOf& shape_of, SchedulingTables* tables, SchedulingQueue* queue, Instant now);

 private:
  RejectionMask anywhere_ = 0;
  std::map<std::string, RejectionMask, std::less<>> on_nodes_;  // Of kOfOneNode.
};

}  // namespace rudderfish
