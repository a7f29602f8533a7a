// SPDX-License-Identifier: Apache-2.0
#include "control/followed_pods.h"

#include <algorithm>
#include <utility>

namespace rudderfish {
namespace {

// Later the state is another one than that in which a choice was to be measured.
constexpr Duration kMeasuredLateMost = std::chrono::minutes(10);
constexpr size_t kFailuresMax = 200'000;  // Unwritten: any pod of the cluster may fail.

}  // namespace

void FollowedPods::Begin(const PlacementComparison& row,
                         const std::shared_ptr<const PodClass>& shape) {
  const std::string key = row.pod.Key();
  const bool is_policys = row.node == row.policy_node;
  const Instant due = clock_->Now() + settle_;
  pods_[key] = {.id = row.pod,
                .shape = shape,
                .node = row.node,
                .other_node = is_policys ? row.baseline_node : row.policy_node,
                .is_policy_choice = is_policys,
                .due = due};
  if (!row.policy_node.empty()) due_.push_back({due, key, row.pod.uid});
}

void FollowedPods::Resume(std::span<const UnendedComparison> rows, UnixMillis now) {
  const Instant here = clock_->Now();
  for (const UnendedComparison& row : rows) {
    const std::string key = row.pod.Key();
    const bool is_policys = row.node == row.policy_node;
    const Duration age =
        std::max(std::chrono::milliseconds(now - row.written_at), std::chrono::milliseconds(0));
    const Instant due = here + settle_ - age;
    pods_[key] = {.id = row.pod,
                  .node = row.node,
                  .other_node = is_policys ? row.baseline_node : row.policy_node,
                  .is_policy_choice = is_policys,
                  .due = due,
                  .is_started = row.is_started};
    const bool is_to_come = !row.is_measured && !row.policy_node.empty();
    if (is_to_come && due + kMeasuredLateMost >= here) due_.push_back({due, key, row.pod.uid});
  }
  std::stable_sort(due_.begin(), due_.end(),
                   [](const Due& a, const Due& b) { return a.at < b.at; });
}

void FollowedPods::Seen(const ObservedPod& pod, const std::string& key) {
  const auto at = pods_.find(key);
  if (at == pods_.end() || !(at->second.id == pod.id)) return;
  Pod& followed = at->second;
  if (followed.shape == nullptr) followed.shape = pod.shape;
  if (pod.node != followed.node) {  // Our Binding was not done, but somebody else's.
    outcomes_.push_back({.uid = pod.id.uid, .fate = "elsewhere"});
    pods_.erase(at);
    return;
  }
  if (pod.is_running && !std::exchange(followed.is_started, true)) {
    outcomes_.push_back({.uid = pod.id.uid, .fate = "started"});
  }
  if (pod.is_disrupted && !std::exchange(followed.is_disrupted, true)) {
    outcomes_.push_back({.uid = pod.id.uid, .fate = "evicted", .failure = "DisruptionTarget"});
  }
}

void FollowedPods::Gone(const std::string& key) {
  const auto at = pods_.find(key);
  if (at == pods_.end()) return;
  outcomes_.push_back({.uid = at->second.id.uid, .fate = at->second.is_started ? "ended" : "gone"});
  pods_.erase(at);
}

void FollowedPods::Failed(const PodIdentity& pod, const std::string& reason) {
  if (outcomes_.size() >= kFailuresMax) return;  // As long as the journal cannot be written.
  outcomes_.push_back(
      {.uid = pod.uid, .fate = reason == "Evicted" ? "evicted" : "failed", .failure = reason});
}

const FollowedPods::Pod* FollowedPods::PopDue() {
  while (has_due()) {
    const Due due = std::move(due_.front());
    due_.pop_front();
    const auto at = pods_.find(due.key);
    const bool is_it = at != pods_.end() && at->second.id.uid == due.uid &&
                       at->second.due == due.at &&  // It has not been chosen for again since.
                       at->second.shape != nullptr;
    if (is_it) return &at->second;
  }
  return nullptr;
}

}  // namespace rudderfish
