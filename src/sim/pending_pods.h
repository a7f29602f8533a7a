// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/state.h"
#include "sim/event_queue.h"
#include "sim/slot_chains.h"

// The pods of a Lifecycle that are not bound, by their slots: those that are to be asked about, in
// the order of their numbers, and those that sleep until a node has got room. Of sleepers one of
// each workload wakes at a time, the one of the least number, so that an event costs
// O(log pods + workloads asleep). Allocates only when it holds more than ever before.

namespace rudderfish {

class PendingPods {
 public:
  void Reset(int workloads);

  // It is to be asked about. REQUIRES: it is not here, and no two pods have the same number.
  void Add(int32_t slot, WorkloadId workload, int64_t number);
  // It is bound, or gone.
  void Remove(int32_t slot);

  // The next to be asked about; it stays here. kNone: there is none.
  int32_t Take();
  // The workloads of those after it, so many at most.
  void SeeNext(size_t most, std::vector<WorkloadId>* next);

  // One that was taken is not bound now.
  void Sleep(int32_t slot);
  void WakeNext(WorkloadId workload);
  // One of each workload, or of each that there is room for on that node.
  void WakeAll();
  void WakeFor(const State& state, NodeId node);

  int64_t count() const { return count_; }

 private:
  enum class Phase : uint8_t { kNotHere, kQueued, kAsleep };

  struct Pod {
    int64_t number = 0;
    WorkloadId workload = 0;
    Phase phase = Phase::kNotHere;
  };

  void Enqueue(int32_t slot);
  bool IsCurrent(const Event& event) const;
  void Rouse(int32_t slot);

  std::vector<Pod> pods_;                     // [slot]
  EventQueue queue_;                          // By number; those that are gone, too.
  SlotChains asleep_;                         // By workload, in the order of numbers.
  std::vector<WorkloadId> workloads_asleep_;  // Those that have any,
  std::vector<int32_t> position_asleep_;      // and where they stand there. [workload]
  std::vector<int32_t> scanned_;              // Working space of SeeNext.
  int64_t count_ = 0;
};

}  // namespace rudderfish
