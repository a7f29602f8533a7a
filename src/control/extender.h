// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/node_scorer.h"
#include "control/scheduling_tables.h"

// What kube-scheduler is told when it asks us about a pod: a grade of 0 to 10 for each node that it
// still considers, and which of them are ruled out by hard limits. kube-scheduler has asked its own
// rules before; ours decide only what is scored.
//
// Grades are the policy's scores between the worst and the best of the nodes asked about, in eleven
// steps, rounded to the nearest; 0 for nodes beyond the pod's hard limit of latency, and then 1 at
// least for those within. Where a pod has what we do not model, or nothing distinguishes the
// nodes, all get 0: we abstain. One thread.

namespace rudderfish {

// How much of each node may be requested at most, as a share of what it has (1: all of it), and
// whether the hard limits of latency that pods have are kept.
struct HardLimits {
  double cpu = 1, memory = 1;
  bool latency = false;

  bool any() const { return cpu < 1 || memory < 1 || latency; }
  bool operator==(const HardLimits&) const = default;
};

class Extender {
 public:
  static constexpr int kGradeMax = 10;

  // The tables outlive it.
  Extender(SchedulingTables* tables, std::unique_ptr<NodeScorer> scorer, HardLimits limits)
      : tables_(tables), scorer_(std::move(scorer)), limits_(limits) {}

  struct Grades {
    std::vector<int> of;    // [i] of nodes[i].
    std::string abstained;  // Why all are 0; empty: they are not.
    StepBack stepped_back = StepBack::kNone;
  };
  Grades Prioritize(const std::shared_ptr<const PodClass>& pod,
                    const std::vector<std::string_view>& nodes);

  // Why not, or empty: [i] of nodes[i].
  std::vector<std::string> Filter(const PodClass& pod, const std::vector<std::string_view>& nodes);

  const HardLimits& limits() const { return limits_; }

 private:
  SchedulingTables* tables_;
  std::unique_ptr<NodeScorer> scorer_;
  HardLimits limits_;
  Feasibility feasibility_;
  std::vector<double> scores_;
};

}  // namespace rudderfish
