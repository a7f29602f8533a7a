// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/graph_batch.h"
#include "model/capacity_ladder.h"
#include "task/scaling_history.h"
#include "task/task.h"

// The call graph of an application as a network sees it in a scaling question: a row for each
// workload that is scaled, and an edge for each that calls another, whose weight is the share of
// the callee's calls that come from there. Immutable; any thread may read it.

namespace rudderfish {

struct ScalingSpace;

// Who calls whom among the workloads that are scaled, by position among them: of the callee's
// calls, the share that comes from there.
std::vector<GraphEdge> CallsBetweenScaled(const ServedApplication& application);

class ScalingWorkloads {
 public:
  static constexpr int kWidth = 16;
  static std::vector<FeatureDescription> Features();

  ScalingWorkloads(std::shared_ptr<const CapacityLadder> ladder, double interval_s);

  // What does not change with time, of one workload.
  struct Part {
    int workload = 0;
    double demand_s = 0;  // Computing for one request.
    double demand_share = 0;
    double calls = 0;  // Of one request.
    double cores = 0;  // Of a pod.
    int slots = 1;
    int replicas_max = 1;
    double start_intervals = 0;
    bool is_entry = false;
  };

  // Appends rows and edges to the sample that is being written.
  void Encode(const ScalingHistory& history, const ScalingSpace& space, GraphBatch* batch) const;

  const std::vector<Part>& parts() const { return parts_; }
  const std::vector<GraphEdge>& calls() const { return calls_; }

 private:
  std::shared_ptr<const CapacityLadder> ladder_;
  std::vector<Part> parts_;
  std::vector<GraphEdge> calls_;  // Between positions in parts_.
};

}  // namespace rudderfish
