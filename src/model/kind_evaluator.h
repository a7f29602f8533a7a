// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/call_graph.h"
#include "cluster/ids.h"
#include "model/call_branches.h"

// Latency and the gain of every move from how many pods of each workload run on each kind of node,
// and nothing else: the Evaluator of search, which asks about thousands of placements a
// millisecond.
//
// It equals the Evaluator at the placement of Reset. Elsewhere it leaves out what depends on nodes
// and not on their kinds alone (sharing of bandwidth, loopback), and what the distribution of
// replies adds to calls in parallel (model/parallel_calls.h), which it holds as they were at Reset:
// under the `reach` law less than a tenth of a microsecond of latency; under `physical` it is a
// prediction. A value is a pure function of the counts, whatever way led to them. Gains are floats.
//
// Allocates nothing once it has seen the largest world. Not thread safe.

namespace rudderfish {

class Evaluator;

class KindEvaluator {
 public:
  // Takes law, network, calls and placement from `evaluator`, to which it keeps no reference.
  void Reset(const Evaluator& evaluator);

  // Moves one pod. REQUIRES: the workload has one on `from`.
  void Apply(WorkloadId workload, KindId from, KindId to);

  int kind_count() const { return kinds_; }
  int count(WorkloadId workload, KindId kind) const { return counts_[workload * stride_ + kind]; }

  // Mean over endpoints.
  double LatencyMs();

  // Fall in latency when one pod of the workload moves away from `from`, by the kind it moves to.
  // Valid until the next call. REQUIRES: the workload has a pod on `from`.
  const float* GainsFrom(WorkloadId workload, KindId from);

 private:
  void Refresh();
  void HoldDistributions(const Evaluator& evaluator);
  void RefreshWorkload(WorkloadId workload);
  void SumMarkedBranches();
  void ValueBranches();
  void Prepare(WorkloadId workload);
  double CallMs(CallId call) const;

  std::shared_ptr<const CallGraph> calls_;
  CallBranches branches_;
  int kinds_ = 0;
  int stride_ = 0;  // kinds_ rounded up to whole vectors.
  int workloads_ = 0;

  // Constant between Resets.
  std::vector<double> hop_ms_;      // [from][stride]
  std::vector<double> sojourn_ms_;  // [call][stride]
  std::vector<double> held_ms_;     // [call] what nodes add to what kinds say
  std::vector<double> share_;       // [workload] 1 / replicas, or 0
  std::vector<WorkloadId> caller_;  // [call]
  std::vector<float>
      own_sojourn_;  // [affected][stride] sum over the workload's own calls in the branch

  // Functions of the counts.
  std::vector<int32_t> counts_;   // [workload][stride]
  std::vector<double> fraction_;  // [workload][stride]
  std::vector<double> into_;      // [workload][stride] mean hop from its pods to the kind
  std::vector<float> flow_;       // [2 * workload][stride] the same; then from the kind to its pods
  std::vector<double> call_ms_;   // [call]
  std::vector<double> series_ms_;  // [branch] sum of its calls
  std::vector<double> value_ms_;   // [branch] with its forks
  std::vector<double> fork_ms_;    // [fork] its slowest branch
  double latency_ms_ = 0;
  double held_latency_ms_ = 0;  // Of the distribution of replies, over all endpoints.

  std::vector<WorkloadId> dirty_;   // Moved since Refresh.
  std::vector<uint8_t> is_dirty_;   // [workload]
  std::vector<uint8_t> is_marked_;  // [branch] whose sum has changed

  // Of the workload asked about last.
  WorkloadId prepared_ = kNone;
  std::vector<float>
      potential_;  // [affected of the workload][stride] time of the branch with all its pods there
  std::vector<float> rest_;  // [affected fork] slowest of the branches that moves leave as they are
  std::vector<float> change_;  // [affected of the workload][stride]
  std::vector<float> gains_;   // [stride]
};

// How far a gain by kind of node (here or in MoveGains), ms, may be from the exact one: all of the
// transfer and of the loopback, and rounding to float. Where distributions count: anything.
double KindErrorMs(const Evaluator& evaluator);

}  // namespace rudderfish
