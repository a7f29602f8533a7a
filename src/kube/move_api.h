// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/pod_move.h"
#include "kube/api_client.h"

// Reads and writes what a move of a pod needs of the API server (cluster/pod_move.h). Each call
// waits for its answers. Nothing is kept between calls: what is written is written only to objects
// as they were read, by their resourceVersion, so that nothing of others is overwritten.

namespace rudderfish::kube {

// The ConfigMap that tells the admission policy where the next pod of a ReplicaSet goes: the uid of
// the ReplicaSet, and PodMove::Pin(). deploy/moves creates both.
inline constexpr std::string_view kMovesNamespace = "rudderfish", kMovesName = "rudderfish-moves";

class MoveApi {
 public:
  // The client outlives this.
  explicit MoveApi(ApiClient* client) : client_(client) {}

  // All that is seen of one pod. `move`: what is known of the move where the pod is gone; nothing:
  // what the pod itself says. `target`: of a move that has not begun. kUnavailable and the like:
  // the API server did not answer.
  Result<MoveView> Look(const PodIdentity& pod, const std::optional<PodMove>& move,
                        const std::string& target);

  // Pods that say that they are being moved.
  struct Listed {
    PodIdentity pod;
    std::string node;
    std::optional<PodMove> move;
    std::string unreadable;  // Why its annotation cannot be read.
  };
  Result<std::vector<Listed>> List();

  // Whether deploy/moves has been applied; without it no pod can be moved. Waits for `limit`.
  Result<bool> CanPin(Duration limit);

  // A line of the ConfigMap whose pod has ended while no process drove its move: all later pods of
  // the ReplicaSet would be sent to one node.
  struct LeftPin {
    std::string replica_set_uid, move_id, hostname;
  };
  Result<std::vector<LeftPin>> LeftPins();
  Result<void> Remove(const LeftPin& pin);

  // The pod of that name, as it is now.
  Result<MovedPod> FindPod(const std::string& object_namespace, const std::string& name);

  // What a move of it is going to be; WhyNotMovable (control/move_machine.h) judges the view.
  Result<PodMove> Plan(const MovedPod& pod, const std::string& target, UnixMillis now,
                       Duration limit);

  // Writes. kConflict: the object has changed since `view`; look again.
  Result<void> Begin(const MoveView& view, const PodMove& move);
  Result<void> Pin(const PodMove& move);
  Result<void> Unpin(const PodMove& move);
  // Takes labels from the pod, and writes them down in `move`, at once.
  Result<void> TakeLabels(const MoveView& view, const std::vector<std::string>& keys, MoveStep step,
                          PodMove* move);
  Result<void> NoteAbort(const MoveView& view, const std::string& why, PodMove* move);
  Result<void> Restore(const MoveView& view, const PodMove& move);
  // kFailedPrecondition: a PodDisruptionBudget does not allow it now.
  Result<void> Evict(const MoveView& view);

 private:
  Result<std::optional<Labels>> ReadPins();  // Nothing: there is no ConfigMap of moves.
  Result<void> PatchPins(const std::string& replica_set_uid, const std::string& pin);
  Result<void> Patch(const std::string& path, const std::string& body);
  Result<void> PatchPod(const MovedPod& pod, const PodMove& move, const Labels& removed);

  ApiClient* client_;
  std::string pin_version_;  // resourceVersion of the ConfigMap as it was read last.
};

}  // namespace rudderfish::kube
