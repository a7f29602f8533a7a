// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/graph_batch.h"
#include "policy/region_autoscaler.h"
#include "policy/routing_policy.h"
#include "task/region_scaling.h"

// What says every few minutes, region by region, how busy the autoscaler is to keep its nodes and
// which share of them is on spot: the choice whose features, by weight, add up to the most. With
// RegionScalingTask::ModelWeights that is the choice of least predicted cost; evolution learns
// others. Allocates nothing once built.

namespace rudderfish {

class RegionPlanner;

struct RegionPlanning {
  RegionScalingRule rule;
  double hold_s = 300;         // How long an answer holds.
  std::vector<float> weights;  // [feature of a choice]
  // Told of each question once it is answered; may be empty.
  std::function<void(const RegionPlanner&)> seen;
};

class RegionPlanner {
 public:
  RegionPlanner(std::shared_ptr<const RegionPlanning> planning, int regions);

  struct Needs {
    std::span<const double> load_per_s;  // [region] To prepare for,
    std::span<const double> error;       // with forecasts so wrong, relative.
  };

  // Regions take turns, so that each is asked about once in `hold_s`. `asked` [region][NodePrice]:
  // the nodes that were asked for last.
  void Plan(const RoutingQuestion& question, const Needs& needs, std::span<const int> asked,
            RegionAutoscaler* autoscaler);

  // Of the last question.
  const RegionScalingSpace& space() const { return space_; }
  std::span<const float> scores() const { return scores_; }
  const float* Row(int choice) const {
    return batch_.candidates.data() +
           static_cast<size_t>(choice) * RegionScalingTask::kWidths.candidate;
  }

 private:
  struct Seen {
    double lost = 0, storm = 0, refused = 0, load = 0, notice = 0;  // Smoothed, or falling.
    int had = 0;  // Spot nodes, ordered ones included.
  };

  void Remember(const RoutingQuestion& question, std::span<const int> asked);
  void Ask(const RoutingQuestion& question, const Needs& needs, int region);
  int Best() const;

  std::shared_ptr<const RegionPlanning> planning_;
  std::vector<Seen> history_;  // [region]
  double lost_everywhere_ = 0;
  RegionScalingSpace space_;
  GraphBatch batch_;
  std::vector<float> scores_;
};

}  // namespace rudderfish
