// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/pod_move.h"

// Decides what comes next in a move of a pod (cluster/pod_move.h), from what the cluster shows
// alone: the process that drives a move may be killed and started again at any time. Pure
// functions.
//
// No step takes a serving pod away before another one serves. Until the pod is evicted a move can
// be undone: the pod gets its labels back, its ReplicaSet adopts it again and deletes the
// replacement, which is the younger one. Whatever others do to the pod, its ReplicaSet or the
// target meanwhile wins, and the move is undone.

namespace rudderfish {

struct MoveOptions {
  // After the pod has left the endpoints of its Services, until it is evicted. Proxies follow
  // within kube-proxy's minSyncPeriod, 1 s by default; on busy nodes it takes longer.
  Duration settle = std::chrono::seconds(3);
  // Beyond its grace period, until a pod that is being deleted is given up: its node is silent.
  Duration silent_node_limit = std::chrono::seconds(15);
  // For the replacement to get its node, where kube-scheduler has said that it does not fit.
  Duration unschedulable_limit = std::chrono::seconds(10);
};

// What is to be written.
enum class MoveWrite {
  kNone,     // Wait for the cluster.
  kPin,      // The ConfigMap says where the next pod of the ReplicaSet goes.
  kUnpin,    // It no longer does.
  kDetach,   // `remove` from the labels of the pod, and PodMove::step.
  kDrain,    // The same.
  kEvict,    // The pod.
  kAbort,    // PodMove::aborting = `why`.
  kRestore,  // PodMove::removed go back to the labels, and label and annotation of the move go.
};

enum class MoveOutcome {
  kMoved,    // The pod is gone, and its replacement serves on the target.
  kAborted,  // The pod has its labels back.
  kEnded,    // Others have ended the pod, or the move: nothing of it is left.
};

struct MoveAction {
  MoveWrite write = MoveWrite::kNone;
  MoveStep step = MoveStep::kIntend;   // At which the move is.
  std::string why;                     // What is awaited, why it is undone, or how it has ended.
  std::vector<std::string> remove;     // Keys of labels.
  std::optional<MoveOutcome> outcome;  // It is over.
};

// What the process that drives a move remembers of it. A new process begins with nothing.
struct MoveMemory {
  std::optional<UnixMillis> out_since;     // Since when the pod is seen in no endpoints.
  std::optional<UnixMillis> ending_since;  // Since when the pod is seen being deleted.
  bool has_evicted = false;                // The API server has accepted the eviction.
};

// `move` as it was read last, which counts where the pod is gone.
MoveAction NextMoveAction(const PodMove& move, const MoveView& view, const MoveOptions& options,
                          UnixMillis now, MoveMemory* memory);

// The key of the label by which the pod is detached: the ReplicaSet selects it, and no Service.
// Empty: there is none.
std::string DetachKey(const MoveView& view);

// Why a move of the pod may not begin; empty: it may.
std::vector<std::string> WhyNotMovable(const MoveView& view, const std::string& target);

}  // namespace rudderfish
