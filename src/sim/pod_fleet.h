// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "model/served_application.h"
#include "sim/call_durations.h"
#include "sim/calls_under_way.h"
#include "sim/shared_pod.h"

// The pods of a simulated application: they start, perhaps pull their image first, serve, and drain
// before they go. A call that comes is given to a pod by its workload's balancing; there it has a
// slot, shares them, or waits in line, and computes. What becomes of it then is its caller's
// affair. Allocates only when there are more pods, or calls at them, than ever before. One thread.

namespace rudderfish {

struct WorkloadSums {
  int64_t calls = 0;       // That came to a pod,
  int64_t refused = 0;     // were turned away, or found no pod,
  int64_t served = 0;      // have computed.
  int64_t wait_ns = 0;     // Until a slot was free, of those who got one; or, shared: added.
  int64_t busy_ns = 0;     // Slots in use, over time.
  int64_t present_ns = 0;  // Calls that wait or compute, over time.
  int64_t sojourn_ns = 0;  // Waiting and computing, of the served.
  int64_t pod_ns = 0;      // Pods that exist, starting and draining ones included, over time.
  int64_t ready_ns = 0;    // Pods that are ready, over time.

  WorkloadSums operator-(const WorkloadSums& other) const;
};

// A pod as an autoscaler may see it.
struct PodSight {
  WorkloadId workload = 0;
  int32_t slot = 0;  // Free again once the pod has gone: with made_ns, it names the pod.
  bool ready = false;
  int64_t made_ns = 0;
  int64_t ready_ns = 0;  // When it became ready, or will.
  int64_t busy_ns = 0;   // Slots in use, over time, since it was made.
};

class PodFleet {
 public:
  // Both outlive it; the calls stay where they are.
  PodFleet(const ServedApplication* application, CallsUnderWay* calls);

  // Streams of chance, apart from each other.
  struct Chance {
    Rng durations, choices, starts;
  };
  // All pods ready: so many of each workload; if `replicas` is empty, ServedWorkload::replicas.
  void Start(const Chance& chance, std::span<const int> replicas);

  void SetReplicas(WorkloadId workload, int replicas);  // As EventSimulator has it.
  int replicas(WorkloadId workload) const;              // Starting and ready.
  int ready(WorkloadId workload) const;
  WorkloadSums sums(WorkloadId workload) const;  // Since Start, up to now.

  // All but draining ones, in the order in which they were made, by workload.
  void See(std::vector<PodSight>* pods) const;

  // A call comes. False: it is turned away, or there is no pod.
  bool Take(FrameId call);

  // What it has put on the heap has come. The call that has computed now; kNoId: none has.
  FrameId Happen(const TimedEvent& event);
  // Of those events: that time has come to look whether a call is done.
  static bool IsLook(const TimedEvent& event) { return event.subject < kNoId; }

 private:
  enum class PodState : uint8_t { kGone, kStarting, kReady, kDraining };

  struct Pod {
    int32_t busy = 0, present = 0;
    FrameId first = kNoId, last = kNoId;  // In line.
    int64_t touched_ns = 0, busy_ns = 0, present_ns = 0;
    int64_t made_ns = 0, ready_ns = 0;
    WorkloadId workload = 0;
    uint32_t generation = 0;
    PodState state = PodState::kGone;
    bool pulls = false;  // Its image, to a node that lacks it.
  };

  struct Pool {  // The pods of one workload.
    std::vector<int32_t> ready, starting;
    int draining = 0, images = 0;  // Images: nodes that hold it, or are to.
    uint32_t turn = 0;
    int64_t touched_ns = 0;
    WorkloadSums sums;
  };

  int32_t Choose(WorkloadId workload);
  void Serve(FrameId id, const CallFrame& call, Pod* pod);
  FrameId EndService(FrameId call);
  void ShareSlots(FrameId call, int32_t pod);
  void SetAlarm(int32_t pod);
  FrameId LookAtShared(const TimedEvent& alarm);
  int32_t NewPod(WorkloadId workload);
  void BecomeReady(const TimedEvent& event);
  void Remove(int32_t pod);
  void Touch(Pod* pod) const;
  void TouchPool(Pool* pool) const;

  const ServedApplication* application_;
  CallsUnderWay* calls_;
  CallDurations durations_;
  Rng choices_{0}, starts_{0};
  std::vector<Pod> pods_;
  std::vector<SharedPod> shared_;  // [pod] Of those whose slots are shared.
  std::vector<int32_t> free_pods_;
  std::vector<Pool> pools_;  // [workload]
};

}  // namespace rudderfish
