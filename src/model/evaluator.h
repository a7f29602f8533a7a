// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cluster/decision.h"
#include "cluster/state.h"
#include "model/latency.h"
#include "model/move_gains.h"
#include "model/parallel_calls.h"
#include "model/placement.h"
#include "model/sum_of_maxima.h"

// What a state costs and what one move more would cost. Reward, features, search, the guard and
// explanations all ask here; nothing else in the program knows a formula of latency.
//
// Incremental: a move recomputes only the calls of workloads that run on its two nodes, and each
// value is a pure function of the placement, so that Commit equals a fresh Reset and Undo restores
// to the bit. Allocates nothing after it has seen the largest state. Not thread safe: one Evaluator
// per environment or controller.

namespace rudderfish {

class Evaluator {
 public:
  explicit Evaluator(const LatencyLaw& law) : law_(law) {}

  // REQUIRES: `state` outlives the evaluator or its next Reset; its pods keep their workloads.
  void Reset(const State& state);

  // What the plan that is under way has left before; right after Reset, which begins one.
  void Leave(std::span<const LeftCell> cells) { placement_.Leave(cells); }

  // The moves from here on are imagined (Placement::ImagineMoves): none before is undone.
  void ImagineMoves() {
    ForgetHistory();
    placement_.ImagineMoves();
  }

  const Terms& Now() const { return terms_; }

  // The terms after the move, without making it. The reference is valid until the next Try.
  const Terms& Try(const Move& move);
  const Terms& Try(const Action& action) { return Try(ToMove(action)); }

  void Commit(const Move& move);
  void Commit(const Action& action) { Commit(ToMove(action)); }

  // The same, and forgets how to undo it and all before it. What an environment does.
  void CommitForGood(const Move& move);

  // Takes back the last Commit that has not been taken back. REQUIRES: there is one since Reset.
  void Undo();

  // The gain of every move, by kind of node; computed on first use after a change.
  const MoveGains& Gains();

  // Which moves of the State's pods mean.
  Move ToMove(const Action& action) const;

  // Names the last Reset among all evaluators' resets, from 1: what moves do not change (kinds,
  // hops, calls, replicas) stays the same as long as it does.
  uint64_t world() const { return world_; }
  const Placement& placement() const { return placement_; }
  const State& state() const { return *state_; }
  const CallGraph& calls() const { return *calls_; }
  const LatencyLaw& law() const { return law_; }

  // Mean execution and queueing time over the replicas of a call's workload, and mean hop and
  // transfer from its caller.
  struct CallCost {
    double execution_ms = 0;
    double queueing_ms = 0;
    double hop_ms = 0;
    double transfer_ms = 0;

    bool operator==(const CallCost&) const = default;
  };
  const CallCost& cost(CallId call) const { return costs_[call]; }
  double HopMsBetween(KindId from, KindId to) const { return hop_ms_[from * kinds_ + to]; }
  double ExecutionMs(CallId call, KindId kind) const {
    return law_.execution_factor * calls_->ExecutionMs(call, kind);
  }
  double SojournMs(CallId call, KindId kind) const {
    return ExecutionMs(call, kind) + queueing_ms_[call * kinds_ + kind];
  }
  // Calls whose caller or callee is the workload.
  std::span<const CallId> CallsTouching(WorkloadId workload) const {
    return {touching_.data() + touching_begin_[workload],
            static_cast<size_t>(touching_begin_[workload + 1] - touching_begin_[workload])};
  }
  // A workload that another talks to: one call, seen from one of its ends.
  struct Partner {
    WorkloadId workload = 0;
    double traffic = 0;  // MB/s between one replica of each side.
  };
  std::span<const Partner> PartnersOf(WorkloadId workload) const {
    return std::span(partners_).subspan(partners_begin_[workload],
                                        partners_begin_[workload + 1] - partners_begin_[workload]);
  }
  // Nodes with pods of the workload, ascending.
  std::span<const NodeId> HostsOf(WorkloadId workload) const { return hosts_[workload]; }
  // 1 / what a pod of the workload gets of the node's bandwidth. REQUIRES: one is there.
  double InverseShare(WorkloadId workload, NodeId node) const {
    return inverse_share_[workload * placement_.node_count() + node];
  }
  // Traffic of a node in the law's megabytes a second, background included.
  double NodeUseMbytesPerS(NodeId node) const;
  const Terms& EndpointTerms(int endpoint) const { return endpoint_terms_[endpoint]; }
  double EndpointLatencyMs(int endpoint) const { return endpoint_terms_[endpoint].latency_ms; }
  int EndpointOf(CallId call) const { return endpoint_of_[call]; }
  // Whether nothing in an endpoint runs in parallel, so that its latency is a sum.
  bool IsSequential(int endpoint) const { return sequential_[endpoint] != 0; }
  // Whether the latency of an endpoint depends on how replies are distributed, of which gains by
  // kind (MoveGains, KindEvaluator) know the means alone.
  bool NeedsDistributions(int endpoint) const {
    return law_.slowest_of_each && !IsSequential(endpoint);
  }
  WorkloadId CallerOf(CallId call) const { return caller_of_[call]; }  // A workload, or kNone.

 private:
  struct Frame {
    Move move;
    Terms terms;
    size_t costs = 0, shares = 0, endpoints = 0;  // Sizes of the saved stacks before the move.
  };
  template <class Value>
  struct Saved {
    int32_t index;
    Value value;
  };

  void ForgetHistory();
  void IndexCalls();
  void IndexPartners();
  void ComputeQueueing();
  void UpdateHosts(const Move& move);  // After the placement.
  // What one pod of the workload on the node sends to and takes from other nodes.
  double PodTraffic(WorkloadId workload, NodeId node) const;
  void RefreshShares(NodeId node);
  // Those with pods there, ascending; valid until it is asked again.
  std::span<const WorkloadId> WorkloadsOn(NodeId node);
  void RefreshCall(CallId call);  // All but the transfer.
  void RefreshTransfer(CallId call);
  void RefreshEndpoint(int endpoint);
  void SumEndpoints();
  void TouchNode(NodeId node);  // Adds what lives there to what the move touches.
  void TouchWorkload(WorkloadId workload);
  // The parts of a Commit: where pods are, with what that touches; what Undo needs; what is
  // recomputed.
  void MoveTouching(const Move& move);
  void SaveTouched(const Move& move);
  void RefreshTouched(const Move& move);
  void RefreshTouchedCalls(WorkloadId moved);

  LatencyLaw law_;
  const State* state_ = nullptr;
  uint64_t world_ = 0;
  std::shared_ptr<const CallGraph> calls_;
  Placement placement_;
  Terms terms_, tried_;
  int kinds_ = 0;

  std::vector<double> hop_ms_;           // [kind][kind]
  std::vector<double> bandwidth_;        // [kind]
  std::vector<double> queueing_ms_;      // [call][kind]
  std::vector<int32_t> partners_begin_;  // [workload + 1] into partners_
  std::vector<Partner> partners_;
  std::vector<WorkloadId> caller_of_;    // [call]
  std::vector<int32_t> touching_begin_;  // [workload + 1] into touching_
  std::vector<CallId> touching_;
  std::vector<int32_t> endpoint_of_;        // [call]
  std::vector<uint8_t> sequential_;         // [endpoint]
  std::vector<std::vector<NodeId>> hosts_;  // [workload], ascending
  std::vector<double> inverse_share_;       // [workload][node], where the workload runs
  std::vector<CallCost> costs_;             // [call]
  std::vector<Terms> endpoint_terms_;       // [endpoint]
  std::vector<Terms> subtree_;              // [call] scratch of RefreshEndpoint
  ParallelCalls parallel_;
  SumOfMaxima maxima_;               // Scratch of RefreshTransfer.
  std::vector<double> pod_traffic_;  // [workload] scratch of RefreshShares
  std::vector<WorkloadId> on_node_;  // Scratch of WorkloadsOn.

  std::vector<Frame> frames_;
  std::vector<Saved<CallCost>> saved_costs_;
  std::vector<Saved<double>> saved_shares_;
  std::vector<Saved<Terms>> saved_endpoints_;
  int call_words_ = 0;                   // Of a set of calls, one bit each.
  std::vector<uint64_t> touching_bits_;  // [workload][call word] CallsTouching as a set
  std::vector<uint64_t> touched_bits_;   // [call word] calls that this move touches
  std::vector<int32_t> touched_endpoints_;

  MoveGains gains_;
  bool gains_valid_ = false;
};

}  // namespace rudderfish
