// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.h"
#include "model/served_application.h"
#include "sim/chance_ahead.h"
#include "sim/event_heap.h"
#include "sim/request_source.h"
#include "sim/response_histogram.h"
#include "sim/shared_pod.h"

// An application under load, request by request: requests arrive, are sent from caller to callee
// over a network, wait in line at a pod, hold one of its slots or share them while they compute,
// call others, and answer; clients give up and try again; pods start, and drain before they go.
// Replicas may be changed at any time; what is waiting stays waiting.
//
// A call that is refused, or finds no pod ready, fails; its caller makes no further calls of that
// group and fails, too, when its other groups are done. A client that has given up leaves its calls
// running, as servers do not notice.
//
// The same seed gives the same run, event by event, and the same arrivals whatever the replicas;
// where users return, the same sessions, whose later requests wait for the answers before.
// Nothing is allocated but when more is under way than ever before. One thread.

namespace rudderfish {

// Sums since Start. Times in ns; those of requests count from the first attempt.
struct RequestSums {
  int64_t arrived = 0;    // Requests, not attempts.
  int64_t completed = 0;  // Answered well.
  int64_t failed = 0;     // For good: all attempts failed or timed out.
  int64_t late = 0;       // Of the completed: later than the endpoint's qos_ms.
  int64_t timeouts = 0;   // Attempts that the client gave up.
  int64_t retries = 0;
  int64_t response_ns = 0;  // Of the completed.

  int64_t violations() const { return late + failed; }
  RequestSums operator-(const RequestSums& other) const;
};

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

class EventSimulator {
 public:
  explicit EventSimulator(std::shared_ptr<const ServedApplication> application);

  // Time 0, nobody there, all pods ready: so many of each workload; if `replicas` is empty, as
  // many as ServedWorkload::replicas says.
  void Start(std::shared_ptr<const RateCurve> curve, uint64_t seed,
             std::span<const int> replicas = {});

  // Everything up to and including this time. REQUIRES: not before now().
  void AdvanceTo(int64_t until_ns);
  int64_t now_ns() const { return now_ns_; }
  int64_t events() const { return events_; }  // Since Start.

  // So many are to be, within the bounds of the workload. New ones start; of those there are, the
  // youngest go: starting ones at once, ready ones when they have served who is in their line.
  void SetReplicas(WorkloadId workload, int replicas);
  int replicas(WorkloadId workload) const;  // Starting and ready.
  int ready(WorkloadId workload) const;

  const RequestSums& requests() const { return requests_; }
  WorkloadSums sums(WorkloadId workload) const;  // Up to now.
  const ResponseHistogram& responses() const { return responses_; }
  ResponseHistogram* mutable_responses() { return &responses_; }  // To clear.
  int64_t in_flight() const { return open_requests_; }            // Not answered, not given up.
  int64_t overdue() const;  // Of those, attempts that are older than their qos_ms.

  // All pods but draining ones, in the order in which they were made, by workload.
  void Pods(std::vector<PodSight>* pods) const;
  const ServedApplication& application() const { return *application_; }

 private:
  using FrameId = int32_t;
  static constexpr int32_t kNobody = -1;

  // A call under way, or a client's attempt (its root).
  struct Frame {
    int64_t since_ns = 0;      // Came to its pod; the first attempt of a root.
    FrameId caller = kNobody;  // Of roots: kNobody.
    FrameId next = kNobody;    // In line, or in the list of free frames.
    int32_t call = 0;
    int32_t pod = 0;                      // Of roots: how many attempts there were before.
    int32_t position = 0, group_end = 0;  // In CallGraph::sequence: its own, its group's end.
    int32_t open = 0;                     // Groups that are not done.
    uint32_t generation = 0;
    bool failed = false, given_up = false;  // Given up, of roots: nobody waits for it.
  };

  enum class PodState : uint8_t { kGone, kStarting, kReady, kDraining };

  struct Pod {
    int32_t busy = 0, present = 0;
    FrameId first = kNobody, last = kNobody;  // In line.
    int64_t touched_ns = 0, busy_ns = 0, present_ns = 0;
    int64_t made_ns = 0, ready_ns = 0;
    WorkloadId workload = 0;
    uint32_t generation = 0;
    PodState state = PodState::kGone;
    bool pulls = false;  // Its image, to a node that lacks it.
  };

  struct CallPlan {
    ServiceLaw::Shape shape = ServiceLaw::Shape::kConstant;
    double mean_ns = 0;
    double a = 0, b = 0;  // Log-normal: mu, sigma; hyperexponential: probability, and both means
    double c = 0;         // over the mean.
  };

  struct Pool {  // The pods of one workload.
    std::vector<int32_t> ready, starting;
    int draining = 0, images = 0;  // Images: nodes that hold it, or are to.
    uint32_t turn = 0;
    int64_t touched_ns = 0;
    WorkloadSums sums;
  };

  void Step(int64_t at_ns, int source);
  void BeginRequest();
  void EndRequest();  // Answered, or failed for good: its user may ask again.
  void Think();
  void Send(CallId endpoint_root, int64_t first_ns, int attempt);
  void OpenGroups(FrameId frame);
  void CallNext(FrameId caller, int position, int group_end);
  void Arrive(FrameId frame);
  void Serve(FrameId frame, Pod* pod);
  void EndService(FrameId frame);
  void ShareSlots(FrameId frame, int32_t pod);
  void SetAlarm(int32_t pod);
  void LookAtShared(const TimedEvent& alarm);
  void Answer(FrameId frame);  // Over the network, if there is one.
  void SendAnswer(FrameId frame);
  void TakeAnswer(FrameId callee);  // At its caller.
  void CloseGroup(FrameId caller);
  void EndAttempt(FrameId root);
  void GiveUp(const TimedEvent& timeout);
  void TryAgainOrFail(FrameId root);
  void BecomeReady(const TimedEvent& event);

  int32_t ChoosePod(WorkloadId workload);
  int64_t DrawServiceNs(CallId call);
  FrameId NewFrame();
  void Free(FrameId frame);
  int32_t NewPod(WorkloadId workload);
  void Remove(int32_t pod);
  void Touch(Pod* pod);
  void TouchPool(Pool* pool) const;

  std::shared_ptr<const ServedApplication> application_;
  const CallGraph* graph_;
  std::vector<CallPlan> plans_;        // [call]
  std::vector<double> endpoint_upto_;  // [endpoint] Sum of shares up to it.
  int64_t network_ns_, timeout_ns_, retry_ns_;

  std::unique_ptr<RequestSource> source_;
  Rng mix_{0}, choice_{0}, starts_{0}, users_{0};
  double again_ = 0, think_ns_ = 0;  // Of ReturningUsers.
  ChanceAhead service_{Rng(0)};
  int64_t now_ns_ = 0, next_arrival_ns_ = 0, events_ = 0, open_requests_ = 0;
  EventHeap heap_;  // Ends of service, pods that become ready, users who ask again, alarms.
  EventLine network_, timeouts_, retries_;  // The first: calls and answers under way.
  std::vector<Frame> frames_;
  FrameId free_frame_ = kNobody;
  std::vector<Pod> pods_;
  std::vector<SharedPod> shared_;  // [pod] Of those whose slots are shared.
  std::vector<int32_t> free_pods_;
  std::vector<Pool> pools_;  // [workload]
  RequestSums requests_;
  ResponseHistogram responses_;
};

}  // namespace rudderfish
