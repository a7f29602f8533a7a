// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "cluster/state.h"
#include "model/cluster_totals.h"
#include "scenario/scenario.h"
#include "sim/event_queue.h"
#include "sim/lifecycle_metrics.h"
#include "sim/pending_pods.h"
#include "sim/pod_source.h"
#include "sim/slot_chains.h"
#include "sim/world.h"

// A world in which pods come and go, in simulated time: they arrive and wait, are bound by the
// caller that asks NextPending and answers, start after a delay, run and depart; nodes are lost and
// come back, latencies change. A pod leaves when its lifetime ends, or when its creator deletes it.
//
// Pods that come at one time are all there before the first of them is asked about, but those that
// are deleted as they come.
//
//   TRY(lifecycle.Start(seed));
//   while (lifecycle.NextPending()) lifecycle.Bind(...a node, or kNone: not now...);
//   ... lifecycle.metrics() ...
//
// A pod that was not bound is asked about again when a node has got room for it: one pod of each
// workload at a time, the one that came first. So an event costs O(log pods + workloads waiting),
// however many nodes there are.
//
// The State is dense: it holds the pods that wait or run, and PodIds are valid until the next call.
// Deterministic: the same seed gives the same episode, whatever ran before; what is drawn for a pod
// depends on its number only, so that two policies meet the same pods. Allocates nothing once it
// has held the most pods. Not thread safe.
//
// Fragmentation is measured against the pods that the scenario's streams and trace bring.

namespace rudderfish {

// What placement depends on there beside the State. REQUIRES: scenario.arrivals is there.
PlacementLaws PlacementLawsOf(const Scenario& scenario);

class Lifecycle {
 public:
  // Measuring fragmentation takes most of the time where many shapes of pods come. A caller that
  // does not weigh it may leave it at 0.
  enum class Measured { kAll, kAllButFragmentation };
  // REQUIRES: scenario->arrivals is there.
  explicit Lifecycle(std::shared_ptr<const Scenario> scenario, Measured measured = Measured::kAll);

  // A new episode. kFailedPrecondition if its start cannot be drawn (World).
  Result<void> Start(uint64_t seed);

  // Lets time pass until a pod waits for an answer; false when the episode is over. A pod that was
  // asked about and not answered counts as not bound.
  bool NextPending();

  // The pod that waits for an answer. REQUIRES: NextPending said so.
  PodId pending() const { return tracked_[asked_].pod; }
  WorkloadId pending_workload() const { return state_.pods.workload[pending()]; }

  // The workloads of pods that will be asked about after it, in their order: those that came at the
  // same time, or for which there is room again; kNextMost at most. Valid until the next call.
  static constexpr size_t kNextMost = 15;
  std::span<const WorkloadId> next() const { return next_; }

  // The answer. REQUIRES: kNone, or HasRoom(state(), pending_workload(), node).
  void Bind(NodeId node);

  // Who is told, in this and all later episodes, how long the world was as it is before it changes,
  // from the first arrival on, as metrics count.
  using Watcher = std::function<void(SimTime passed, const State& state)>;
  void Watch(Watcher watcher) { watcher_ = std::move(watcher); }

  const State& state() const { return state_; }
  const ClusterTotals& totals() const { return totals_; }
  const Scenario& scenario() const { return *scenario_; }
  const LifecycleMetrics& metrics() const { return metrics_; }
  int64_t waiting_pods() const { return pending_.count(); }  // Not bound; the pending one too.

 private:
  using Slot = int32_t;  // A pod's place here, which it keeps while PodIds change.

  struct TrackedPod {
    PodId pod = kNone;
    uint32_t generation = 0;  // Of the slot; an event of another one is void.
    uint32_t attempt = 0;     // Of being bound; void likewise.
    bool was_bound = false;
    int64_t number = 0;  // Counted from 0 in the order of arrival; what is drawn depends on it.
    SimTime pending_since{0};
    SimTime lifetime = kNever;
  };

  struct Source {
    PodSource pods;
    ArrivingPod next;
  };

  void Expect(Event event);
  void Advance(SimTime to);
  bool IsCurrent(const Event& event) const;
  void Handle(const Event& event);
  void Change(const WorldEvent& event);

  void ExpectArrival(int source);
  void Arrive(const ArrivingPod& pod);
  Slot Track(PodId pod);
  void Run(Slot slot);
  void Depart(Slot slot);

  void LoseNode(NodeId node);
  void LosePod(Slot slot);
  void ReturnNode(NodeId node);
  void ExpectFailure(NodeId node);

  void CountUnbound(Slot slot);
  bool MoreArriveNow() const;
  void Finish();

  std::shared_ptr<const Scenario> scenario_;
  World world_;
  PlacementLaws laws_;

  State state_;
  ClusterTotals totals_;
  LifecycleMetrics metrics_;
  Watcher watcher_;
  uint64_t seed_ = 0;
  bool finished_ = true;
  std::vector<Source> sources_;  // Streams, then the trace.
  EventQueue events_;
  int64_t expected_ = 0;  // Events that keep an episode going: all but failures by chance.

  std::vector<TrackedPod> tracked_;  // [slot]
  std::vector<Slot> free_slots_;
  std::vector<Slot> slot_of_;  // [pod]
  PendingPods pending_;
  Slot asked_ = kNone;
  std::vector<WorkloadId> next_;
  SlotChains on_node_;             // By node.
  std::vector<Rng> node_rng_;      // [node] Of its failures.
  std::vector<int8_t> ever_fits_;  // [workload] -1: not asked yet.
};

}  // namespace rudderfish
