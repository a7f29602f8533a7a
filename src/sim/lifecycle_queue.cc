// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "sim/lifecycle.h"

// Who waits for what: pods to be asked about, those asleep until there is room, those on a node;
// and what becomes of them when the node is lost.

namespace rudderfish {

void Lifecycle::Enqueue(Slot slot) {
  TrackedPod& tracked = tracked_[slot];
  tracked.phase = Phase::kQueued;
  queue_.AddInOrder({.kind = Event::Kind::kAsk,
                     .subject = slot,
                     .generation = tracked.generation,
                     .order = static_cast<uint64_t>(tracked.number) + (uint64_t{1} << 63)});
}

// Chains are in the order of numbers. Who goes to sleep is nearly always the last or the first.
void Lifecycle::Sleep(Slot slot) {
  TrackedPod& tracked = tracked_[slot];
  const WorkloadId workload = state_.pods.workload[tracked.pod];
  Chain* chain = &asleep_[workload];
  Slot before = kNone;
  if (chain->first != kNone && tracked.number < tracked_[chain->first].number) {
    before = chain->first;
  } else {
    Slot after = chain->last;
    while (after != kNone && tracked.number < tracked_[after].number) {
      before = after;
      after = tracked_[after].link.previous;
    }
  }
  Insert(slot, before, chain);
  tracked.phase = Phase::kAsleep;
  if (position_asleep_[workload] != kNone) return;
  position_asleep_[workload] = static_cast<int32_t>(workloads_asleep_.size());
  workloads_asleep_.push_back(workload);
}

void Lifecycle::Unsleep(Slot slot) {
  const WorkloadId workload = state_.pods.workload[tracked_[slot].pod];
  Unlink(slot, &asleep_[workload]);
  if (asleep_[workload].first != kNone) return;
  const int32_t position = position_asleep_[workload];
  workloads_asleep_[position] = workloads_asleep_.back();
  position_asleep_[workloads_asleep_[position]] = position;
  workloads_asleep_.pop_back();
  position_asleep_[workload] = kNone;
}

void Lifecycle::WakeNext(WorkloadId workload) {
  const Slot slot = asleep_[workload].first;
  if (slot == kNone) return;
  Unsleep(slot);
  Enqueue(slot);
}

void Lifecycle::WakeFor(NodeId node) {
  // From the end: a workload whose last pod wakes gives its place to one that has been seen.
  for (size_t i = workloads_asleep_.size(); i-- > 0;) {
    const WorkloadId workload = workloads_asleep_[i];
    if (HasRoom(state_, workload, node)) WakeNext(workload);
  }
}

// kNone: at the end.
void Lifecycle::Insert(Slot slot, Slot before, Chain* chain) {
  Link& link = tracked_[slot].link;
  link.next = before;
  link.previous = before == kNone ? chain->last : tracked_[before].link.previous;
  (link.previous == kNone ? chain->first : tracked_[link.previous].link.next) = slot;
  (before == kNone ? chain->last : tracked_[before].link.previous) = slot;
}

void Lifecycle::Unlink(Slot slot, Chain* chain) {
  const Link link = tracked_[slot].link;
  (link.previous == kNone ? chain->first : tracked_[link.previous].link.next) = link.next;
  (link.next == kNone ? chain->last : tracked_[link.next].link.previous) = link.previous;
  tracked_[slot].link = {};
}

void Lifecycle::LoseNode(NodeId node) {
  if (!state_.nodes.IsReady(node)) return;
  ++metrics_.node_losses;
  while (on_node_[node].first != kNone) LosePod(on_node_[node].first);
  state_.nodes.lost[node] = 1;
  ++state_.version;
  totals_.NodeChanged(node);
}

void Lifecycle::LosePod(Slot slot) {
  TrackedPod& tracked = tracked_[slot];
  const NodeId node = state_.pods.node[tracked.pod];
  const WorkloadId workload = state_.pods.workload[tracked.pod];
  Unlink(slot, &on_node_[node]);
  UnbindPod(tracked.pod, &state_);
  totals_.Removed(workload, node);
  ++tracked.attempt;  // What was expected of it there will not happen.
  tracked.pending_since = state_.at;
  ++waiting_;
  Enqueue(slot);
  if (scenario_->arrivals->lost_pods == LostPods::kPend) {
    ++metrics_.restarted;
  } else {
    ++metrics_.lost;
    Depart(slot);
  }
}

void Lifecycle::ReturnNode(NodeId node) {
  if (state_.nodes.IsReady(node)) return;
  state_.nodes.lost[node] = 0;
  ++state_.version;
  totals_.NodeChanged(node);
  WakeFor(node);
}

void Lifecycle::ExpectFailure(NodeId node) {
  const SimTime after = scenario_->arrivals->failures->every.Draw(&node_rng_[node]);
  Expect({.at = state_.at + after, .kind = Event::Kind::kFail, .subject = node});
}

}  // namespace rudderfish
