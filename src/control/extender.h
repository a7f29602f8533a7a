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
// The best node gets 10. Any other gets 10 less the number of nodes that are better, but no more
// than where its score lies between the worst (0) and the best (10) of the nodes asked about,
// rounded to the nearest; so eleven steps tell the ten best apart, however many are asked about.
// Of many equals those that were asked about first are graded, kNamedMax in all, and the others
// get 0: kube-scheduler takes longer to read and to add a grade than we to say it. Nodes beyond the
// pod's hard limit of latency get 0, and then all within 1 at least. Where a pod has what we do not
// model, or nothing distinguishes the nodes, all get 0: we abstain. One thread.

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
  static constexpr int kNamedMax = 50;  // With a grade above the lowest, in one answer.

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
  struct Ranked {
    double score;
    int asked;  // [nodes]
  };
  std::vector<Ranked> ranked_;
};

}  // namespace rudderfish
