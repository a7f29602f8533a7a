// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "cluster/scheduling_observer.h"
#include "model/scheduling_rules.h"

// How a Scheduler shares its pods between its policy and kube-default: all by the policy (1), none
// (0), or a canary with the others as its control group, at the same time on the same cluster.

namespace rudderfish {

enum class ChoiceGroup {
  kNone,  // Nothing to be told.
  kCanary,
  kControl,
  kEnforced,  // All are placed by the policy; now and then one of them is told.
};

// Whether the pod of that uid is among the share, 0 to 1, that a canary takes: by a hash, so that
// it stays there whoever asks and however often (FNV-1a with a finaliser, so that uids that differ
// in their last letters are spread).
bool IsInShare(std::string_view uid, double share);

// A choice, with the cluster as it was without this pod. Pointers are valid while it is told.
struct OwnChoice {
  const PodIdentity* pod = nullptr;
  const std::shared_ptr<const PodClass>* shape = nullptr;
  double waited_ms = 0;
  const SchedulingRules* rules = nullptr;
  PodClassId pod_class = kNone;
  const Feasibility* feasibility = nullptr;
  NodeId node = kNone;
  ChoiceGroup group = ChoiceGroup::kNone;
};

}  // namespace rudderfish
