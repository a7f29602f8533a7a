// SPDX-License-Identifier: Apache-2.0
#include "sim/pending_pods.h"

namespace rudderfish {
namespace {

uint64_t OrderOf(int64_t number) { return static_cast<uint64_t>(number) + (uint64_t{1} << 63); }

}  // namespace

void PendingPods::Reset(int workloads) {
  pods_.clear();
  queue_.Clear();
  asleep_.Reset(workloads);
  workloads_asleep_.clear();
  position_asleep_.assign(workloads, kNone);
  count_ = 0;
}

void PendingPods::Add(int32_t slot, WorkloadId workload, int64_t number) {
  if (slot >= static_cast<int32_t>(pods_.size())) pods_.resize(slot + 1);
  pods_[slot] = {.number = number, .workload = workload};
  ++count_;
  Enqueue(slot);
}

void PendingPods::Remove(int32_t slot) {
  if (pods_[slot].phase == Phase::kAsleep) Rouse(slot);
  pods_[slot].phase = Phase::kNotHere;
  --count_;
}

void PendingPods::Enqueue(int32_t slot) {
  pods_[slot].phase = Phase::kQueued;
  queue_.AddInOrder(
      {.kind = Event::Kind::kAsk, .subject = slot, .order = OrderOf(pods_[slot].number)});
}

// A pod that has gone leaves its place in the queue, and its slot to another.
bool PendingPods::IsCurrent(const Event& event) const {
  const Pod& pod = pods_[event.subject];
  return pod.phase == Phase::kQueued && OrderOf(pod.number) == event.order;
}

int32_t PendingPods::Take() {
  while (!queue_.empty()) {
    const Event event = queue_.Take();
    if (IsCurrent(event)) return event.subject;
  }
  return kNone;
}

void PendingPods::SeeNext(size_t most, std::vector<WorkloadId>* next) {
  next->clear();
  queue_.Scan(&scanned_, [&](const Event& event) {
    if (IsCurrent(event)) next->push_back(pods_[event.subject].workload);
    return next->size() < most;
  });
}

// Who goes to sleep is nearly always the last of its workload, or the first.
void PendingPods::Sleep(int32_t slot) {
  Pod& pod = pods_[slot];
  const WorkloadId workload = pod.workload;
  const int32_t first = asleep_.first(workload);
  int32_t before = kNone;
  if (first != kNone && pod.number < pods_[first].number) {
    before = first;
  } else {
    int32_t after = asleep_.last(workload);
    while (after != kNone && pod.number < pods_[after].number) {
      before = after;
      after = asleep_.previous(after);
    }
  }
  asleep_.Insert(slot, before, workload);
  pod.phase = Phase::kAsleep;
  if (position_asleep_[workload] != kNone) return;
  position_asleep_[workload] = static_cast<int32_t>(workloads_asleep_.size());
  workloads_asleep_.push_back(workload);
}

void PendingPods::Rouse(int32_t slot) {
  const WorkloadId workload = pods_[slot].workload;
  asleep_.Remove(slot, workload);
  if (asleep_.first(workload) != kNone) return;
  const int32_t position = position_asleep_[workload];
  workloads_asleep_[position] = workloads_asleep_.back();
  position_asleep_[workloads_asleep_[position]] = position;
  workloads_asleep_.pop_back();
  position_asleep_[workload] = kNone;
}

void PendingPods::WakeNext(WorkloadId workload) {
  const int32_t slot = asleep_.first(workload);
  if (slot == kNone) return;
  Rouse(slot);
  Enqueue(slot);
}

// From the end: a workload whose last pod wakes gives its place to one that has been seen.
void PendingPods::WakeAll() {
  for (size_t i = workloads_asleep_.size(); i-- > 0;) WakeNext(workloads_asleep_[i]);
}

void PendingPods::WakeFor(const State& state, NodeId node) {
  for (size_t i = workloads_asleep_.size(); i-- > 0;) {
    const WorkloadId workload = workloads_asleep_[i];
    if (HasRoom(state, workload, node)) WakeNext(workload);
  }
}

}  // namespace rudderfish
