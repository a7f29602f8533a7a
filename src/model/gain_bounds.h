// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/evaluator.h"

// Between which bounds the exact gain of a move lies, for a fraction of what Evaluator::Try costs
// where workloads run on many nodes.
//
// The gain by kind of node (model/move_gains.h) holds the transfers and the loopback as they are.
// What they add is exact for the pod that moves: its payload, pair by pair, and the loopback that
// it gains or loses. The pods that share its nodes get another share of their bandwidth: as the
// transfer of a call is the mean over pairs of max(1 / share, 1 / share), a share that changes by
// d(1/share) changes the transfer by something between 0 and that much, weighted with the pods
// concerned. In an endpoint that is a sum the changes of its calls add up; in one with parallel
// calls its latency changes by no more than they do. Where that depends on how replies are
// distributed, of which the gain by kind knows nothing, there is no bound for a pod that takes
// part.
//
// Rounding is within the bounds. Allocates nothing once it has seen the largest state. Not thread
// safe.

namespace rudderfish {

struct GainRange {
  double least_ms = 0;
  double most_ms = 0;
};

class GainBounds {
 public:
  // At the evaluator's placement, which stays as it is until the last Of.
  void Reset(const Evaluator& model);

  // REQUIRES: a pod of the workload runs on move.from; `gain_ms` is MoveGains' for the move.
  GainRange Of(const Move& move, double gain_ms);

 private:
  // Bounds of a change in latency, ms.
  struct Change {
    double least_ms = 0;
    double most_ms = 0;
  };
  // 1 / share of a pod that moves: where it leaves and where it arrives.
  struct OwnShares {
    double before = 0, after = 0;
  };

  void ListWorkloadsOfNodes();
  // Adds what pods on the node lose or win when `joining` (1 or -1) more pods of the workload are
  // there. Returns 1 / share of a pod of the workload there afterwards.
  double AddSharing(WorkloadId workload, NodeId node, int joining, Change* change);
  double TrafficOfPod(WorkloadId w, NodeId node, WorkloadId moved, int joining) const;
  void AddOwn(const Move& move, const OwnShares& shares, Change* change) const;
  double TransferOfPair(WorkloadId other, const Move& move, const OwnShares& shares) const;
  double RoundingMs(WorkloadId workload, double gain_ms) const;

  const Evaluator* model_ = nullptr;
  double per_endpoint_ = 0;
  double slowest_inverse_share_ = 0;
  std::vector<double> weight_;              // [workload] ms by which d(1/share) of all its pods
                                            // changes the transfers of its calls at most
  std::vector<double> rounding_;            // [endpoint] relative, of gains by kind
  std::vector<int32_t> node_begin_;         // [node + 1] into node_workloads_
  std::vector<WorkloadId> node_workloads_;  // Who has pods there.
  std::vector<double> traffic_;             // Scratch: of a pod of each of them.
};

}  // namespace rudderfish
