// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "task/placement.h"

// Look-ahead over the queue: where the first pod goes is chosen with those in mind that wait behind
// it (PlacementQuestion::next). A beam search on the Model: pod after pod of the queue is placed in
// the best plans so far, and the node that the best whole plan begins with is the answer. What a
// plan costs is the objective with all its pods placed, and 1 / nodes for each that finds no node,
// as evaluations of placement count pods that wait. For the next pod it replans.
//
// Nodes that are equal are tried once for each set of workloads that may go there.
//
// Without a queue, and where one width of the queue is more than the budget, it is greedy. Of plans
// that cost the same the one is taken whose beginning was better. Plans that put the same pods on
// the same nodes are one plan.

namespace rudderfish {

struct QueueLookaheadOptions {
  static constexpr int kDepthMax = 16;

  int depth = 8;   // Pods that are looked at, the first among them.
  int width = 16;  // Plans that are kept after each pod.
  // Candidates that are tried for an answer, or nodes looked through where these are many, 16 as
  // one. The beam is made narrower, then shallower, to stay within; once so many were tried, the
  // best plan so far is taken.
  int64_t evaluations = 20'000;

  bool operator==(const QueueLookaheadOptions&) const = default;
};

// Deterministic; keeps working space, and allocates nothing once it has seen the largest question.
// One thread.
class QueueLookahead {
 public:
  QueueLookahead(const PlacementTask& task, const QueueLookaheadOptions& options);

  // kNone: the pod fits nowhere. `allowed`: [workload][node] 0 or 1, where the pods of the queue
  // may go beside what MayRunOn says; empty: wherever that holds.
  NodeId operator()(const PlacementQuestion& question,
                    std::span<const std::vector<uint8_t>> allowed = {});

  int64_t evaluations() const { return evaluations_; }  // Of the last answer.

 private:
  // Pods of the queue on nodes, in order. Plain value.
  struct Plan {
    std::array<NodeId, QueueLookaheadOptions::kDepthMax> nodes;  // kNone: it waits.
    double cost = 0;
    int waiting = 0;
    uint64_t who_is_where = 0;  // A hash of pods by node, whatever their order.
  };
  // A plan with one pod more.
  struct Longer {
    int plan = 0;
    NodeId node = kNone;
    double cost = 0;
    int waiting = 0;
    uint64_t who_is_where = 0;
  };

  int WidthFor(int pods_left, int candidates) const;
  void Begin(const PlacementQuestion& question);
  void Follow(const Plan& plan, int pods);
  void TakeBack(const Plan& plan, int pods);
  void SeeWhere(std::span<const std::vector<uint8_t>> allowed);
  // What a Space counts: its candidates, or the nodes that were looked through for them.
  int EvaluationsOf(const PlacementSpace& space) const;
  void Lengthen(int plan, int pods);
  void KeepBest(int width, int pods);

  PlacementTask task_;
  QueueLookaheadOptions options_;
  PlacementSpace space_;
  // What is tried out: the State and totals that were asked about, with the queue's pods pending.
  State state_;
  ClusterTotals totals_;
  std::vector<PodId> pods_;  // [of the queue]
  // Nodes that are equal to one pod may not be so to those behind it: [node] which workloads may go
  // there, of so many ways.
  std::vector<uint32_t> ways_;
  std::vector<uint32_t> way_of_;
  std::vector<uint8_t> is_tried_;  // [candidate][way]
  std::vector<Plan> plans_, kept_;
  std::vector<Longer> longer_;
  int64_t evaluations_ = 0;
};

}  // namespace rudderfish
