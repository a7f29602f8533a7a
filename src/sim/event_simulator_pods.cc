// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "sim/event_simulator.h"

// How pods of the event simulator come and go, share their slots, and what is seen of them.

namespace rudderfish {

int32_t EventSimulator::NewPod(WorkloadId workload) {
  int32_t id = static_cast<int32_t>(pods_.size());
  if (free_pods_.empty()) {
    pods_.emplace_back();
  } else {
    id = free_pods_.back();
    free_pods_.pop_back();
  }
  const uint32_t generation = pods_[id].generation + 1;  // Never 0: kServiceTag.
  pods_[id] = Pod();
  pods_[id].generation = generation;
  pods_[id].workload = workload;
  pods_[id].touched_ns = pods_[id].made_ns = pods_[id].ready_ns = now_ns_;
  const ServedWorkload& served = application_->workloads[workload];
  if (served.discipline == Discipline::kShared) {
    if (shared_.size() < pods_.size()) shared_.resize(pods_.size());
    shared_[id].Clear(served.slots);
  }
  return id;
}

void EventSimulator::ShareSlots(FrameId frame, int32_t pod_id) {
  Pod& pod = pods_[pod_id];
  pod.busy = std::min(pod.present, application_->workloads[pod.workload].slots);
  shared_[pod_id].Add(now_ns_, DrawServiceNs(frames_[frame].call), frame);
  SetAlarm(pod_id);
}

// One alarm is enough: an earlier one, set before others came and all became slower, is set anew
// when it rings; a later one rings for nothing.
void EventSimulator::SetAlarm(int32_t pod_id) {
  SharedPod& shared = shared_[pod_id];
  const int64_t next_ns = shared.next_ns();
  if (next_ns >= shared.alarm_ns) return;
  shared.alarm_ns = next_ns;
  heap_.Add({next_ns, kNobody - 1 - pod_id, pods_[pod_id].generation});
}

void EventSimulator::LookAtShared(const TimedEvent& alarm) {
  --events_;  // Unless somebody is done.
  const int32_t pod_id = kNobody - 1 - alarm.subject;
  Pod& pod = pods_[pod_id];
  SharedPod& shared = shared_[pod_id];
  if (pod.generation != alarm.tag || shared.alarm_ns != alarm.at_ns) return;
  shared.alarm_ns = EventHeap::kNothing;
  if (shared.next_ns() > now_ns_) return SetAlarm(pod_id);
  ++events_;
  Touch(&pod);
  const SharedPod::Call done = shared.Take(now_ns_);
  const int64_t sojourn_ns = now_ns_ - frames_[done.id].since_ns;
  WorkloadSums& sums = pools_[pod.workload].sums;
  ++sums.served;
  sums.sojourn_ns += sojourn_ns;
  sums.wait_ns += sojourn_ns - done.service_ns;
  --pod.present;
  pod.busy = std::min(pod.busy, pod.present);
  if (pod.present == 0 && pod.state == PodState::kDraining) {
    Remove(pod_id);
  } else {
    SetAlarm(pod_id);
  }
  OpenGroups(done.id);
}

void EventSimulator::Remove(int32_t id) {
  Pod& pod = pods_[id];
  Pool& pool = pools_[pod.workload];
  TouchPool(&pool);
  Touch(&pod);
  if (pod.state == PodState::kDraining) --pool.draining;
  pool.sums.busy_ns += pod.busy_ns;
  pool.sums.present_ns += pod.present_ns;
  pod.state = PodState::kGone;
  ++pod.generation;
  free_pods_.push_back(id);
}

void EventSimulator::Touch(Pod* pod) {
  const int64_t passed_ns = now_ns_ - pod->touched_ns;
  pod->busy_ns += pod->busy * passed_ns;
  pod->present_ns += pod->present * passed_ns;
  pod->touched_ns = now_ns_;
}

void EventSimulator::TouchPool(Pool* pool) const {
  const int64_t passed_ns = now_ns_ - pool->touched_ns;
  const auto ready = static_cast<int64_t>(pool->ready.size());
  pool->sums.ready_ns += ready * passed_ns;
  pool->sums.pod_ns +=
      (ready + static_cast<int64_t>(pool->starting.size()) + pool->draining) * passed_ns;
  pool->touched_ns = now_ns_;
}

int EventSimulator::replicas(WorkloadId workload) const {
  const Pool& pool = pools_[workload];
  return static_cast<int>(pool.ready.size() + pool.starting.size());
}

int EventSimulator::ready(WorkloadId workload) const {
  return static_cast<int>(pools_[workload].ready.size());
}

void EventSimulator::SetReplicas(WorkloadId workload, int replicas) {
  const ServedWorkload& served = application_->workloads[workload];
  CHECK(served.scaled && replicas >= served.replicas_min && replicas <= served.replicas_max);
  Pool& pool = pools_[workload];
  TouchPool(&pool);
  int now = this->replicas(workload);
  for (; now < replicas; ++now) {
    const int32_t id = NewPod(workload);
    Pod& pod = pods_[id];
    double delay_s = served.ReadyAfterS(starts_.Uniform(served.start_low_s, served.start_high_s));
    pod.pulls = PullsOf(now + 1, pool.images, served.image_nodes) > 0;
    if (pod.pulls) {
      ++pool.images;
      delay_s += starts_.Uniform(served.pull_low_s, served.pull_high_s);
    }
    pod.ready_ns = now_ns_ + std::llround(delay_s * 1e9);
    pod.state = PodState::kStarting;
    pool.starting.push_back(id);
    heap_.Add({pod.ready_ns, id, pod.generation});
  }
  for (; now > replicas; --now) {
    if (!pool.starting.empty()) {
      const int32_t id = pool.starting.back();
      pool.starting.pop_back();
      if (pods_[id].pulls) --pool.images;  // What it was pulling does not come to be there.
      Remove(id);
      continue;
    }
    const int32_t id = pool.ready.back();
    pool.ready.pop_back();
    pods_[id].state = PodState::kDraining;
    ++pool.draining;
    if (pods_[id].present == 0) Remove(id);
  }
}

void EventSimulator::BecomeReady(const TimedEvent& event) {
  Pod& pod = pods_[event.subject];
  if (pod.generation != event.tag) return;  // It went before it was ready.
  Pool& pool = pools_[pod.workload];
  TouchPool(&pool);
  pool.starting.erase(std::find(pool.starting.begin(), pool.starting.end(), event.subject));
  pool.ready.push_back(event.subject);
  pod.state = PodState::kReady;
}

WorkloadSums EventSimulator::sums(WorkloadId workload) const {
  Pool pool = pools_[workload];
  TouchPool(&pool);
  for (const Pod& pod : pods_) {
    if (pod.state == PodState::kGone || pod.workload != workload) continue;
    const int64_t passed_ns = now_ns_ - pod.touched_ns;
    pool.sums.busy_ns += pod.busy_ns + pod.busy * passed_ns;
    pool.sums.present_ns += pod.present_ns + pod.present * passed_ns;
  }
  return pool.sums;
}

void EventSimulator::Pods(std::vector<PodSight>* pods) const {
  pods->clear();
  for (WorkloadId w = 0; w < application_->workload_count(); ++w) {
    for (const std::vector<int32_t>* part : {&pools_[w].ready, &pools_[w].starting}) {
      for (const int32_t id : *part) {
        const Pod& pod = pods_[id];
        pods->push_back({.workload = w,
                         .slot = id,
                         .ready = pod.state == PodState::kReady,
                         .made_ns = pod.made_ns,
                         .ready_ns = pod.ready_ns,
                         .busy_ns = pod.busy_ns + pod.busy * (now_ns_ - pod.touched_ns)});
      }
    }
  }
}

}  // namespace rudderfish
