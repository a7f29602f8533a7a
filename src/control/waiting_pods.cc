// SPDX-License-Identifier: Apache-2.0
#include "control/waiting_pods.h"

#include <utility>

namespace rudderfish {

bool WaitingPods::Put(const std::string& key, const ObservedPod& pod, Turn turn, Instant now) {
  const auto [at, is_new] = pods_.try_emplace(key);
  WaitingPod& waiting = at->second;
  const bool is_other = is_new || !(waiting.id == pod.id);
  waiting.is_opted_out = pod.is_opted_out;
  waiting.nominated = pod.nominated;
  if (!is_other && waiting.shape == pod.shape) return false;
  if (is_other) {
    if (!is_new) actuator_->TellWaitsNoLonger(waiting.id);
    queue_.Remove(key);
    waiting = {
        .id = pod.id, .since = now, .is_opted_out = pod.is_opted_out, .nominated = pod.nominated};
  }
  waiting.shape = pod.shape;
  if (turn == Turn::kNow) queue_.Add(key, pod.shape->priority);
  return is_other;
}

void WaitingPods::End(const std::string& key) {
  queue_.Remove(key);
  const auto at = pods_.find(key);
  if (at == pods_.end()) return;
  actuator_->TellWaitsNoLonger(at->second.id);
  pods_.erase(at);
}

bool WaitingPods::Refuse(const std::string& key, const PodRefusal& refusal, Instant now) {
  WaitingPod& waiting = pods_.at(key);
  // What preemption might do is said once of a refusal, and then when there is more to say of it.
  const bool is_same = waiting.refusal == refusal.message;
  if (!is_same || (!refusal.preemption.empty() && waiting.told == waiting.refusal))
    waiting.told = refusal.message + refusal.preemption;
  actuator_->TellWaiting(waiting.id, waiting.told);
  waiting.refusal = refusal.message;
  queue_.Sleep(key, refusal.refused_by, now);
  return std::exchange(waiting.kinds, refusal.kinds) != refusal.kinds;
}

void WaitingPods::TryAgain(const std::string& key, const std::string& refusal, Instant now) {
  WaitingPod* waiting = Find(key);
  if (waiting == nullptr) return;
  if (refusal.empty()) return queue_.Add(key, waiting->shape->priority);
  queue_.BackOff(key, now);
  actuator_->TellWaiting(waiting->id, refusal);
  waiting->told = refusal;
  waiting->refusal.clear();
  waiting->kinds.clear();
}

WaitingPod* WaitingPods::Find(const std::string& key) {
  const auto at = pods_.find(key);
  return at == pods_.end() ? nullptr : &at->second;
}

}  // namespace rudderfish
