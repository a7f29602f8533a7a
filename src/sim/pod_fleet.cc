// SPDX-License-Identifier: Apache-2.0
#include "sim/pod_fleet.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish {
namespace {

// Tags on the heap: a call's end of service; any other is the generation of a pod that becomes
// ready, or, below kNoId, of one whose slots are shared and that is to be looked at.
constexpr uint32_t kServiceTag = 0;

}  // namespace

WorkloadSums WorkloadSums::operator-(const WorkloadSums& other) const {
  return {calls - other.calls,           refused - other.refused, served - other.served,
          wait_ns - other.wait_ns,       busy_ns - other.busy_ns, present_ns - other.present_ns,
          sojourn_ns - other.sojourn_ns, pod_ns - other.pod_ns,   ready_ns - other.ready_ns};
}

PodFleet::PodFleet(const ServedApplication* application, CallsUnderWay* calls)
    : application_(application), calls_(calls), durations_(*application) {}

void PodFleet::Start(const Chance& chance, std::span<const int> replicas) {
  durations_.Start(chance.durations);
  choices_ = chance.choices;
  starts_ = chance.starts;
  pods_.clear();
  free_pods_.clear();
  pools_.assign(application_->workloads.size(), Pool());
  for (WorkloadId w = 0; w < application_->workload_count(); ++w) {
    const ServedWorkload& workload = application_->workloads[w];
    const int pods = replicas.empty() ? workload.replicas : replicas[w];
    for (int i = 0; workload.scaled && i < pods; ++i) {
      const int32_t pod = NewPod(w);
      pods_[pod].state = PodState::kReady;
      pools_[w].ready.push_back(pod);
    }
    pools_[w].images = std::min(pods, workload.image_nodes);
  }
}

bool PodFleet::Take(FrameId id) {
  CallFrame& frame = calls_->frames[id];
  const WorkloadId workload = application_->calls->calls[frame.call].workload;
  const ServedWorkload& served = application_->workloads[workload];
  const int32_t chosen = Choose(workload);
  Pod* pod = chosen == kNoId ? nullptr : &pods_[chosen];
  // A pod with a free slot takes any call, whatever the limit of its line.
  if (pod == nullptr ||
      (pod->present - pod->busy >= served.queue_limit && pod->busy >= served.slots)) {
    ++pools_[workload].sums.refused;
    return false;
  }
  ++pools_[workload].sums.calls;
  Touch(pod);
  frame.since_ns = calls_->now_ns;
  frame.pod = chosen;
  ++pod->present;
  if (served.discipline == Discipline::kShared) {
    ShareSlots(id, chosen);
  } else if (pod->busy < served.slots) {
    Serve(id, frame, pod);
  } else {
    frame.next = kNoId;
    (pod->last == kNoId ? pod->first : calls_->frames[pod->last].next) = id;
    pod->last = id;
  }
  return true;
}

FrameId PodFleet::Happen(const TimedEvent& event) {
  if (IsLook(event)) return LookAtShared(event);
  if (event.tag == kServiceTag) return EndService(event.subject);
  BecomeReady(event);
  return kNoId;
}

int32_t PodFleet::Choose(WorkloadId workload) {
  Pool& pool = pools_[workload];
  const auto count = static_cast<uint32_t>(pool.ready.size());
  if (count <= 1) return count == 0 ? kNoId : pool.ready[0];
  const ServedWorkload& served = application_->workloads[workload];
  switch (served.balancing) {
    case Balancing::kRandom:
      break;
    case Balancing::kRoundRobin:
      return pool.ready[pool.turn++ % count];
    case Balancing::kLeastRequests: {
      int32_t best = pool.ready[choices_.Below(count)];
      for (int i = 1; i < served.choices; ++i) {
        const int32_t other = pool.ready[choices_.Below(count)];
        if (pods_[other].present < pods_[best].present) best = other;
      }
      return best;
    }
  }
  return pool.ready[choices_.Below(count)];
}

void PodFleet::Serve(FrameId id, const CallFrame& frame, Pod* pod) {
  const int64_t now_ns = calls_->now_ns;
  ++pod->busy;
  pools_[pod->workload].sums.wait_ns += now_ns - frame.since_ns;
  calls_->heap.Add({now_ns + durations_.DrawNs(frame.call), id, kServiceTag});
}

FrameId PodFleet::EndService(FrameId id) {
  const CallFrame& frame = calls_->frames[id];
  Pod& pod = pods_[frame.pod];
  WorkloadSums& sums = pools_[pod.workload].sums;
  Touch(&pod);
  ++sums.served;
  sums.sojourn_ns += calls_->now_ns - frame.since_ns;
  --pod.busy;
  --pod.present;
  if (pod.first != kNoId) {
    const FrameId next = pod.first;
    const CallFrame& first = calls_->frames[next];
    pod.first = first.next;
    if (pod.first == kNoId) pod.last = kNoId;
    Serve(next, first, &pod);
  } else if (pod.present == 0 && pod.state == PodState::kDraining) {
    Remove(frame.pod);
  }
  return id;
}

int32_t PodFleet::NewPod(WorkloadId workload) {
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
  pods_[id].touched_ns = pods_[id].made_ns = pods_[id].ready_ns = calls_->now_ns;
  const ServedWorkload& served = application_->workloads[workload];
  if (served.discipline == Discipline::kShared) {
    if (shared_.size() < pods_.size()) shared_.resize(pods_.size());
    shared_[id].Clear(served.slots);
  }
  return id;
}

void PodFleet::ShareSlots(FrameId frame, int32_t pod_id) {
  Pod& pod = pods_[pod_id];
  pod.busy = std::min(pod.present, application_->workloads[pod.workload].slots);
  shared_[pod_id].Add(calls_->now_ns, durations_.DrawNs(calls_->frames[frame].call), frame);
  SetAlarm(pod_id);
}

// One alarm is enough: an earlier one, set before others came and all became slower, is set again
// when it rings; a later one rings for nothing.
void PodFleet::SetAlarm(int32_t pod_id) {
  SharedPod& shared = shared_[pod_id];
  const int64_t next_ns = shared.next_ns();
  if (next_ns >= shared.alarm_ns) return;
  shared.alarm_ns = next_ns;
  calls_->heap.Add({next_ns, kNoId - 1 - pod_id, pods_[pod_id].generation});
}

FrameId PodFleet::LookAtShared(const TimedEvent& alarm) {
  const int32_t pod_id = kNoId - 1 - alarm.subject;
  Pod& pod = pods_[pod_id];
  SharedPod& shared = shared_[pod_id];
  if (pod.generation != alarm.tag || shared.alarm_ns != alarm.at_ns) return kNoId;
  shared.alarm_ns = EventHeap::kNothing;
  if (shared.next_ns() > calls_->now_ns) {
    SetAlarm(pod_id);
    return kNoId;
  }
  Touch(&pod);
  const SharedPod::Call done = shared.Take(calls_->now_ns);
  const int64_t sojourn_ns = calls_->now_ns - calls_->frames[done.id].since_ns;
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
  return done.id;
}

void PodFleet::Remove(int32_t id) {
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

void PodFleet::Touch(Pod* pod) const {
  const int64_t now_ns = calls_->now_ns, passed_ns = now_ns - pod->touched_ns;
  pod->busy_ns += pod->busy * passed_ns;
  pod->present_ns += pod->present * passed_ns;
  pod->touched_ns = now_ns;
}

void PodFleet::TouchPool(Pool* pool) const {
  const int64_t passed_ns = calls_->now_ns - pool->touched_ns;
  const auto ready = static_cast<int64_t>(pool->ready.size());
  pool->sums.ready_ns += ready * passed_ns;
  pool->sums.pod_ns +=
      (ready + static_cast<int64_t>(pool->starting.size()) + pool->draining) * passed_ns;
  pool->touched_ns = calls_->now_ns;
}

int PodFleet::replicas(WorkloadId workload) const {
  const Pool& pool = pools_[workload];
  return static_cast<int>(pool.ready.size() + pool.starting.size());
}

int PodFleet::ready(WorkloadId workload) const {
  return static_cast<int>(pools_[workload].ready.size());
}

void PodFleet::SetReplicas(WorkloadId workload, int replicas) {
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
    pod.ready_ns = calls_->now_ns + std::llround(delay_s * 1e9);
    pod.state = PodState::kStarting;
    pool.starting.push_back(id);
    calls_->heap.Add({pod.ready_ns, id, pod.generation});
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

void PodFleet::BecomeReady(const TimedEvent& event) {
  Pod& pod = pods_[event.subject];
  if (pod.generation != event.tag) return;  // It went before it was ready.
  Pool& pool = pools_[pod.workload];
  TouchPool(&pool);
  pool.starting.erase(std::find(pool.starting.begin(), pool.starting.end(), event.subject));
  pool.ready.push_back(event.subject);
  pod.state = PodState::kReady;
}

WorkloadSums PodFleet::sums(WorkloadId workload) const {
  Pool pool = pools_[workload];
  TouchPool(&pool);
  for (const Pod& pod : pods_) {
    if (pod.state == PodState::kGone || pod.workload != workload) continue;
    const int64_t passed_ns = calls_->now_ns - pod.touched_ns;
    pool.sums.busy_ns += pod.busy_ns + pod.busy * passed_ns;
    pool.sums.present_ns += pod.present_ns + pod.present * passed_ns;
  }
  return pool.sums;
}

void PodFleet::See(std::vector<PodSight>* pods) const {
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
                         .busy_ns = pod.busy_ns + pod.busy * (calls_->now_ns - pod.touched_ns)});
      }
    }
  }
}

}  // namespace rudderfish
