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

// A question that was answered: a score of each candidate, and their features
// (RegionScalingTask::kWidths.candidate a row), of which those from `first` on are of such
// questions.
struct ScoredRows {
  std::span<const float> scores;
  const float* rows = nullptr;
  size_t first = 0;  // 0: of a region's nodes; else of pairs.
};

struct RegionPlanning {
  RegionScalingRule rule;
  double hold_s = 300;         // How long an answer holds.
  std::vector<float> weights;  // [feature of a choice]
  // Told of questions once they are answered: of regions each, of pairs those of one origin an
  // interval. May be empty.
  std::function<void(const ScoredRows&)> seen;
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

  // Whether a pair of regions has a price that was learned, or somebody looks at what would have
  // one.
  bool looks_at_pairs() const { return looks_at_pairs_; }
  // Takes that price off `costs` [origin][target], in units. What was seen of regions is that of
  // the last Plan.
  void PricePairs(const RoutingQuestion& question, std::span<double> costs);

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

  RegionOutlook OutlookOf(const RoutingQuestion& question, int region) const;
  void Remember(const RoutingQuestion& question, std::span<const int> asked);
  void PriceFrom(const RoutingQuestion& question, int origin, std::span<double> costs);
  void Ask(const RoutingQuestion& question, const Needs& needs, int region);
  int Best() const;

  std::shared_ptr<const RegionPlanning> planning_;
  std::vector<Seen> history_;  // [region]
  double lost_everywhere_ = 0;
  RegionScalingSpace space_;
  GraphBatch batch_;
  std::vector<float> scores_;
  bool looks_at_pairs_ = false;
  std::vector<RegionPair> pairs_;               // [target] Without what depends on the origin.
  std::vector<float> pair_rows_, pair_scores_;  // [target] Of one origin.
};

}  // namespace rudderfish
