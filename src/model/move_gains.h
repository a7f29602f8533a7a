// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/ids.h"

// How much latency falls when one pod of a workload moves between two kinds of node, for all
// workloads and kinds at once, and when all its pods move to one kind. Latency depends on nodes
// only through their kind, but for sharing of bandwidth and for the loopback: those are held as
// they are, so under the `reach` law a gain is right to a micro-millisecond (and to float), under
// the `physical` law it is a prediction, by means alone where calls run in parallel. Evaluator::Try
// is exact.
//
// What a move cannot have changed is kept from the last time. Even so it costs a twentieth of
// asking Try for every move, which is why features and search start here.

namespace rudderfish {

class Evaluator;

class MoveGains {
 public:
  // Fall in latency, ms, when one pod moves. 0 within a kind and for kinds no pod may move to.
  float Gain(WorkloadId workload, KindId from, KindId to) const {
    const int target = target_of_[to];
    return target < 0 ? 0 : gains_[workload * lanes_ + from * stride_ + target];
  }
  // The same for the index-th kind that accepts moves.
  float GainTo(WorkloadId workload, KindId from, int target) const {
    return gains_[workload * lanes_ + from * stride_ + target];
  }
  // The same from each kind, target_stride() apart; the first is from kind 0.
  const float* GainsTo(WorkloadId workload, int target) const {
    return GainsFrom(workload, 0) + target;
  }
  // The same to each of them: target_stride() numbers, of which the first target_count() count.
  const float* GainsFrom(WorkloadId workload, KindId from) const {
    return gains_.data() + static_cast<size_t>(workload) * lanes_ + from * stride_;
  }
  // Fall in latency, ms, when all pods of the workload are on the kind.
  float GainOfAll(WorkloadId workload, KindId to) const {
    const int target = target_of_[to];
    return target < 0 ? 0 : gains_[workload * lanes_ + kind_count_ * stride_ + target];
  }
  // The same to each target.
  const float* GainsOfAll(WorkloadId workload) const { return GainsFrom(workload, kind_count_); }
  float GainOfAllTo(WorkloadId workload, int target) const { return GainsOfAll(workload)[target]; }
  // Fall in latency, ms, when every movable pod of every workload is on the kind, whatever room
  // there is.
  float GainOfEverything(KindId to) const {
    return target_of_[to] < 0 ? 0 : everything_[target_of_[to]];
  }
  // Position of a kind among those that accept moves, or -1.
  int TargetOf(KindId kind) const { return target_of_[kind]; }
  int target_count() const { return target_count_; }
  int target_stride() const { return stride_; }  // A multiple of kQuad (base/quad.h).
  KindId target(int index) const { return targets_[index]; }

 private:
  friend void ComputeGains(const Evaluator& evaluator, MoveGains* gains);
  friend class GainComputation;

  uint64_t world_ = 0;  // Evaluator::world of the members "of the world"; 0: none.
  int kind_count_ = 0;
  int target_count_ = 0;

  // Of the world. A row holds a number for each kind, or for each target, and is padded to the
  // vector width with values that are never read.
  int kind_stride_ = 0;
  int stride_ = 0;  // Of a row of targets.
  int lanes_ = 0;   // (kind_count_ + 1) rows of targets; the last stands for all pods at once.
  std::vector<int> target_of_;      // [kind]
  std::vector<KindId> targets_;     // [stride]
  std::vector<WorkloadId> movers_;  // Workloads that may move and have pods.
  std::vector<uint8_t> moves_;      // [workload] whether it may move
  std::vector<float> share_;        // [workload] 1 / replicas
  std::vector<float> sojourn_;      // [call][kind]
  std::vector<float> hop_;          // [kind][kind]
  std::vector<float> hop_back_;     // and transposed
  std::vector<uint8_t> hop_stays_;  // [call] whether neither of its ends moves
  // Of each workload's calls that only add up: their time on each kind without hops, [workload]
  // [kind], and which rows of mean_hops_ come to it; and the paths of the others to their roots.
  std::vector<float> adds_up_;
  std::vector<int32_t> hops_begin_, hops_of_;
  struct OnPath {
    CallId call = 0;
    bool changes = false;  // It is one of the workload's calls.
  };
  std::vector<int32_t> path_begin_;
  std::vector<OnPath> path_;
  std::vector<CallId> calls_itself_;  // Calls that add up, of a workload to itself.
  // Whose change may change a workload's gains: workload_count stands for what always changes.
  std::vector<int32_t> depends_begin_, depends_on_;

  std::vector<float> gains_;           // [workload][lane]
  std::vector<float> everything_;      // [stride]
  std::vector<float> mean_hops_;       // [workload][from it, to it][kind]
  std::vector<int32_t> seen_on_kind_;  // [workload][kind] pods that the mean hops are of
  std::vector<uint8_t> changed_;       // [workload + 1] whether these are others than last time
  // What a call takes when all that may move is on a target, but for what moves always change.
  std::vector<float> settled_;      // [call][stride]
  std::vector<float> settled_sum_;  // [stride] of the calls of endpoints that are sums

  // Scratch.
  std::vector<float> as_seen_;             // [call] what its caller waits for it now
  std::vector<float> times_, call_times_;  // [kind] times of a workload's calls, and of one
  std::vector<float> subtree_;             // [call][lane]
  std::vector<uint32_t> mark_;  // [call] equal to mark_now_: its subtree_ is of this alternative
  uint32_t mark_now_ = 0;
};

void ComputeGains(const Evaluator& evaluator, MoveGains* gains);

}  // namespace rudderfish
