// SPDX-License-Identifier: Apache-2.0
#include "control/scheduling_queue.h"

#include <algorithm>
#include <vector>

namespace rudderfish {

void SchedulingQueue::Activate(const std::string& key, Pod* pod) {
  pod->phase = Phase::kActive;
  active_.emplace(-pod->priority, pod->order, key);
}

void SchedulingQueue::TakeOut(const std::string& key, const Pod& pod) {
  switch (pod.phase) {
    case Phase::kActive:
      active_.erase({-pod.priority, pod.order, key});
      break;
    case Phase::kBackingOff:
      backing_off_.erase({pod.due, key});
      break;
    case Phase::kAsleep:
      asleep_.erase({pod.due, key});
      break;
    case Phase::kInHand:
      break;
  }
}

void SchedulingQueue::Add(const std::string& key, int64_t priority) {
  const auto at = pods_.find(key);
  const bool waits = at != pods_.end() && at->second.phase != Phase::kInHand;
  Pod pod{.priority = priority, .order = waits ? at->second.order : next_order_++};
  Remove(key);
  Activate(key, &(pods_[key] = pod));
}

void SchedulingQueue::Remove(const std::string& key) {
  const auto at = pods_.find(key);
  if (at == pods_.end()) return;
  TakeOut(key, at->second);
  pods_.erase(at);
}

void SchedulingQueue::TellNext(const std::function<bool(const std::string& key)>& more) const {
  for (const auto& [priority, order, key] : active_) {
    if (!more(key)) return;
  }
}

std::optional<std::string> SchedulingQueue::Pop() {
  if (active_.empty()) return std::nullopt;
  std::string key = std::get<2>(*active_.begin());
  active_.erase(active_.begin());
  Pod& pod = pods_.at(key);
  pod.phase = Phase::kInHand;
  ++pod.attempts;
  return key;
}

Instant SchedulingQueue::ReadyAt(const Pod& pod, Instant now) const {
  Duration wait = options_.back_off_first;
  for (int attempt = 1; attempt < pod.attempts && wait < options_.back_off_last; ++attempt)
    wait *= 2;
  return now + std::min(wait, options_.back_off_last);
}

void SchedulingQueue::Sleep(const std::string& key, RejectionMask refused_by, Instant now) {
  const auto at = pods_.find(key);
  if (at == pods_.end()) return;
  Pod& pod = at->second;
  TakeOut(key, pod);
  pod.phase = Phase::kAsleep;
  pod.order = next_order_++;
  pod.refused_by = refused_by;
  pod.ready_at = ReadyAt(pod, now);
  pod.due = now + options_.sleep_limit;
  asleep_.emplace(pod.due, key);
}

void SchedulingQueue::BackOff(const std::string& key, Instant now) {
  const auto at = pods_.find(key);
  if (at == pods_.end()) return;
  Pod& pod = at->second;
  TakeOut(key, pod);
  pod.phase = Phase::kBackingOff;
  pod.order = next_order_++;
  pod.ready_at = pod.due = ReadyAt(pod, now);
  backing_off_.emplace(pod.due, key);
}

void SchedulingQueue::Wake(RejectionMask may_end, Instant now) {
  WakeIf(
      [&](const std::string&, RejectionMask* refused_by) { return (*refused_by & may_end) != 0; },
      now);
}

void SchedulingQueue::WakeIf(
    const std::function<bool(const std::string& key, RejectionMask* refused_by)>& helps,
    Instant now) {
  std::vector<Due> woken;
  for (const Due& due : asleep_) {
    if (helps(due.second, &pods_.at(due.second).refused_by)) woken.push_back(due);
  }
  for (const auto& [due, key] : woken) {
    Pod& pod = pods_.at(key);
    asleep_.erase({due, key});
    if (pod.ready_at <= now) {
      Activate(key, &pod);
      continue;
    }
    pod.phase = Phase::kBackingOff;
    pod.due = pod.ready_at;
    backing_off_.emplace(pod.due, key);
  }
}

void SchedulingQueue::Advance(Instant now) {
  for (std::set<Due>* waiting : {&backing_off_, &asleep_}) {
    while (!waiting->empty() && waiting->begin()->first <= now) {
      const std::string key = waiting->begin()->second;
      waiting->erase(waiting->begin());
      Activate(key, &pods_.at(key));
    }
  }
}

std::optional<Instant> SchedulingQueue::NextDue() const {
  std::optional<Instant> next;
  for (const std::set<Due>* waiting : {&backing_off_, &asleep_}) {
    if (!waiting->empty() && (!next || waiting->begin()->first < *next))
      next = waiting->begin()->first;
  }
  return next;
}

int SchedulingQueue::attempts(const std::string& key) const {
  const auto at = pods_.find(key);
  return at == pods_.end() ? 0 : at->second.attempts;
}

}  // namespace rudderfish
