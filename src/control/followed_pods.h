// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/wall_time.h"
#include "cluster/scheduling_observer.h"
#include "control/placement_comparison.h"

// What becomes of pods that were compared (control/placement_comparer.h): whether they start, end,
// fail or are evicted, and when each is due to be measured. Goes on with what an earlier process
// left in the journal, so that a restart loses no word of a pod. One thread.

namespace rudderfish {

class FollowedPods {
 public:
  struct Pod {
    PodIdentity id;
    std::shared_ptr<const PodClass> shape;  // Nothing: this process has not seen it yet.
    std::string node, other_node;
    bool is_policy_choice = false;  // `node` is the policy's.
    Instant due;                    // When it is measured.
    bool is_started = false, is_disrupted = false;
  };

  // `settle`: until a choice is measured.
  FollowedPods(const Clock* clock, Duration settle) : clock_(clock), settle_(settle) {}

  // It is followed from now on; what was followed of an earlier choice for the pod is not.
  void Begin(const PlacementComparison& row, const std::shared_ptr<const PodClass>& shape);

  // Those of an earlier process, oldest first, before anything was seen; EndUnseen once the cluster
  // has told all that it has: what is not there has gone, and `waits` says what still waits. What
  // came due in the meantime is measured at once, unless that is more than ten minutes ago.
  void Resume(std::span<const UnendedComparison> rows, UnixMillis now);
  template <class Waits>
  void EndUnseen(const Waits& waits) {
    std::vector<std::string> unseen;
    for (const auto& [key, pod] : pods_) {
      if (pod.shape == nullptr && !waits(key, pod.id.uid)) unseen.push_back(key);
    }
    for (const std::string& key : unseen) Gone(key);
  }

  // A pod is on a node.
  void Seen(const ObservedPod& pod, const std::string& key);
  void Gone(const std::string& key);
  // Also of a pod that is not followed any more: its comparison may be in the journal.
  void Failed(const PodIdentity& pod, const std::string& reason);

  // The next that is due; nothing: none is now. Valid until the next call.
  bool has_due() const { return !due_.empty() && due_.front().at <= clock_->Now(); }
  const Pod* PopDue();
  void Note(PlacementOutcome outcome) { outcomes_.push_back(std::move(outcome)); }

  // What is not written yet.
  const std::vector<PlacementOutcome>& outcomes() const { return outcomes_; }
  void ForgetOutcomes() { outcomes_.clear(); }

 private:
  struct Due {
    Instant at;
    std::string key, uid;
  };

  const Clock* clock_;
  Duration settle_;
  std::unordered_map<std::string, Pod> pods_;
  std::deque<Due> due_;
  std::vector<PlacementOutcome> outcomes_;
};

}  // namespace rudderfish
