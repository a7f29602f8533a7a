// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"
#include "cluster/application.h"
#include "cluster/scheduling_observer.h"

// One running pod of a ReplicaSet on its way to another node, make before break:
//
//   intend   an annotation and a label on the pod say what is going to happen
//   detach   the pod loses a label that its ReplicaSet selects; the ReplicaSet creates another pod,
//            which an admission policy sends to the target
//   place    the replacement gets its node
//   serve    the replacement is Ready, and an endpoint of every Service that selects the pod
//   drain    the pod loses the labels that Services select, and leaves their endpoints
//   evict    the pod is evicted
//
// What a move needs to be finished or undone stands in the cluster, in the annotation (PodMove) and
// in what can be seen (MoveView). So any process can take it over. control/move_machine.h decides
// what is next; kube/move_api.h reads and writes.

namespace rudderfish {

// The annotation of the pod that is moved holds a PodMove; the label holds its id.
inline constexpr std::string_view kMoveKey = "rudderfish.io/move";
// The annotation of the replacement: "ID/HOSTNAME", as the admission policy copies it.
inline constexpr std::string_view kReplacesKey = "rudderfish.io/replaces";
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

enum class MoveStep { kIntend, kDetach, kPlace, kServe, kDrain, kEvict, kAbort };

// A move that `rudderfish run` has decided: the instance that leads continues it after a crash.
inline constexpr std::string_view kMoveByRun = "run";

std::string_view StepName(MoveStep step);

struct PodMove {
  std::string id;
  std::string target;           // Name of the node,
  std::string target_hostname;  // and its label kubernetes.io/hostname.
  std::string replica_set, replica_set_uid;
  std::string workload;  // "Deployment/web": whose pod it is.
  UnixMillis begun = 0, deadline = 0;
  MoveStep step = MoveStep::kIntend;  // That was begun last.
  Labels removed;                     // Labels that the pod has lost, to be put back by an abort.
  std::string aborting;               // Why it is being undone; empty: it is not.
  std::string by = {};                // kMoveByRun, or empty: one person's `rudderfish move`.

  // What the ConfigMap of moves says for the ReplicaSet while the replacement is awaited.
  std::string Pin() const { return id + "/" + target_hostname; }

  bool operator==(const PodMove&) const = default;
};

std::string PodMoveText(const PodMove& move);
Result<PodMove> PodMoveOf(std::string_view text);

// A pod as a move looks at it.
struct MovedPod {
  PodIdentity id;
  std::string resource_version;
  std::string node;
  Labels labels;
  bool is_ready = false, is_terminating = false, has_ended = false;
  bool is_replacement = false;  // Of an earlier move, which chose its node for it (kReplacesKey).
  int64_t grace_s = 0;          // Once it is terminating: how long its containers may take to end.
  std::string unschedulable;    // kube-scheduler's reason; empty: it has not given one.
  std::string failing;          // Why a container does not start, such as ErrImagePull; or empty.

  bool serves() const { return is_ready && !is_terminating && !has_ended; }
};

// What a move sees of the cluster.
struct MoveView {
  struct Service {
    std::string name;
    Labels selector;                     // Not empty.
    std::vector<std::string> endpoints;  // Uids of pods that its EndpointSlices hold, in any state,
    std::vector<std::string> ready;      // and of those that are ready.
  };
  struct Budget {  // A PodDisruptionBudget that selects the pod.
    std::string name;
    int64_t allowed = 0;  // Disruptions.
    bool is_current = false;
  };

  std::optional<MovedPod> pod;  // Nothing: it is gone, or another pod has its name.
  std::optional<PodMove> move;  // Of its annotation.
  std::string unreadable;       // Why the annotation cannot be read; empty: it can.

  bool has_replica_set = false;  // It is there, and not being deleted.
  int64_t wanted = 0, ready = 0;
  Labels replica_set_selector;
  std::vector<MovedPod> replicas;           // Pods that the ReplicaSet controls.
  std::optional<MovedPod> replacement;      // The one of them that says so (kReplacesKey).
  std::vector<Service> services;            // That select the pod, or did before the move.
  std::vector<Budget> budgets;              // That select it now.
  bool can_pin = false;                     // The ConfigMap of moves is there.
  std::string pin;                          // What it says for the ReplicaSet; empty: nothing.
  std::string target_trouble;               // Why the target takes no pods now; empty: it does.
  std::vector<std::string> obstacles = {};  // Why the pod may not be moved; before a move begins.
};

}  // namespace rudderfish
