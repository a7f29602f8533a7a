// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.h"
#include "model/served_application.h"
#include "sim/calls_under_way.h"
#include "sim/event_heap.h"
#include "sim/pod_fleet.h"
#include "sim/request_source.h"
#include "sim/response_histogram.h"

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

class EventSimulator {
 public:
  explicit EventSimulator(std::shared_ptr<const ServedApplication> application);
  EventSimulator(const EventSimulator&) = delete;  // Its pods know where its calls are.
  EventSimulator& operator=(const EventSimulator&) = delete;

  // Time 0, no requests, all pods ready: so many of each workload; if `replicas` is empty, as
  // many as ServedWorkload::replicas says.
  void Start(std::shared_ptr<const RateCurve> curve, uint64_t seed,
             std::span<const int> replicas = {});

  // Everything up to and including this time. REQUIRES: not before now().
  void AdvanceTo(int64_t until_ns);
  int64_t now_ns() const { return calls_.now_ns; }
  int64_t events() const { return events_; }  // Since Start.

  // So many are to be, within the bounds of the workload. New ones start; of those there are, the
  // youngest go: starting ones at once, ready ones when they have served who is in their line.
  void SetReplicas(WorkloadId workload, int replicas) { pods_.SetReplicas(workload, replicas); }
  int replicas(WorkloadId workload) const { return pods_.replicas(workload); }

  const RequestSums& requests() const { return requests_; }
  WorkloadSums sums(WorkloadId workload) const { return pods_.sums(workload); }  // Up to now.
  const ResponseHistogram& responses() const { return responses_; }
  ResponseHistogram* mutable_responses() { return &responses_; }  // To clear.
  int64_t in_flight() const { return open_requests_; }            // Not answered, not given up.
  int64_t overdue() const;  // Of those, attempts that are older than their qos_ms.

  const PodFleet& pods() const { return pods_; }
  const ServedApplication& application() const { return *application_; }

 private:
  void Step(int64_t at_ns, int source);
  void BeginRequest();
  void EndRequest();  // Answered, or failed for good: its user may ask again.
  void Think();
  void Send(CallId endpoint_root, int64_t first_ns, int attempt);
  void OpenGroups(FrameId frame);
  void CallNext(FrameId caller, int position, int group_end);
  void Arrive(FrameId frame);
  void Answer(FrameId frame);  // Over the network, if there is one.
  void SendAnswer(FrameId frame);
  void TakeAnswer(FrameId callee);  // At its caller.
  void CloseGroup(FrameId caller);
  void EndAttempt(FrameId root);
  void GiveUp(const TimedEvent& timeout);
  void TryAgainOrFail(FrameId root);

  std::shared_ptr<const ServedApplication> application_;
  const CallGraph* graph_;
  std::vector<double> endpoint_upto_;  // [endpoint] Sum of shares up to it.
  int64_t network_ns_, timeout_ns_, retry_ns_;
  std::vector<double> qos_ns_;  // [call] Of the roots of endpoints.

  std::unique_ptr<RequestSource> source_;
  Rng mix_{0}, users_{0};
  double again_ = 0, think_ns_ = 0;  // Of ReturningUsers.
  int64_t next_arrival_ns_ = 0, events_ = 0, open_requests_ = 0;
  CallsUnderWay calls_;
  PodFleet pods_;
  EventLine network_, timeouts_, retries_;  // The first: calls and answers under way.
  RequestSums requests_;
  ResponseHistogram responses_;
};

}  // namespace rudderfish
