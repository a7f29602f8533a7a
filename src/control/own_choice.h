// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/scheduling_observer.h"
#include "control/scheduling_tables.h"

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
// every caller gets the same answer each time (FNV-1a with a finaliser, so that uids that differ
// in their last letters are spread).
bool IsInShare(std::string_view uid, double share);

// A choice, with the cluster as it was without this pod. Pointers are valid while it is told.
struct OwnChoice {
  const PodIdentity* pod = nullptr;
  const std::shared_ptr<const PodClass>* shape = nullptr;
  double waited_ms = 0;
  const SchedulingRules* rules = nullptr;
  std::span<const PodClassId>
      queue;  // The pod, and those that waited behind it and were looked at.
  const Feasibility* feasibility = nullptr;
  NodeId node = kNone;
  ChoiceGroup group = ChoiceGroup::kNone;
};

// Choices of one turn of a Scheduler, to be told of once their bindings are on their way: comparing
// one takes longer than making it. One thread.
class UntoldChoices {
 public:
  struct Choice {
    std::string key, node;
    PodIdentity id;
    std::shared_ptr<const PodClass> shape;
    std::vector<std::shared_ptr<const PodClass>> behind;  // Of it in the queue.
    double waited_ms = 0;
    ChoiceGroup group = ChoiceGroup::kNone;
  };

  void Clear();
  void Add(Choice choice) { choices_.push_back(std::move(choice)); }
  // A pod has been entered into the tables, whether it is told of or not.
  void NotePlaced(const std::string& key) { placed_keys_.push_back(key); }
  bool empty() const { return choices_.empty(); }

  // Tells of each, with the cluster as it was when it was made: without this pod and those placed
  // after it. A pod that is gone by now, or somewhere else, is left out.
  void Tell(SchedulingTables* tables, const std::function<void(const OwnChoice&)>& callback);

 private:
  std::vector<std::string> placed_keys_;  // In the order of decisions.
  std::vector<Choice> choices_;           // Of some of them, in that order.
};

}  // namespace rudderfish
