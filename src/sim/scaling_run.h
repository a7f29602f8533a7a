// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/capacity_ladder.h"
#include "model/load_model.h"
#include "model/node_packing.h"
#include "policy/scaling_policy.h"
#include "scenario/scenario.h"
#include "sim/event_simulator.h"

// One episode of an application under load that a policy scales: request by request in the event
// simulator, or by the Model of load, which is a hundred times as fast and as right as the Model.
// Metrics reach the policy one interval late, as those of metrics-server do.

namespace rudderfish {

// One episode. Sums over workloads and time.
struct ScalingFigures {
  int64_t requests = 0;
  int64_t violations = 0;  // Later than the endpoint's qos, failed, or late and still open.
  int64_t failures = 0;    // Of those: timed out or refused for good.
  int64_t unanswered = 0;  // Of those: failed, or late and still open.
  double pod_hours = 0;    // Pods that exist, starting and draining ones too.
  double core_hours = 0;   // What they request.
  double node_hours = 0;   // Nodes that the replicas asked for need (model/node_packing.h),
  double energy_wh = 0;    // and what these draw, in watt-hours; 0 where nodes say no power.
  int changes = 0;         // Decisions that changed the replicas of a workload.
  double mean_ms = 0;      // Of the requests answered.
  // Of all requests; infinite where the percentile is among those that were not answered.
  double p95_ms = 0, p99_ms = 0;

  double violation_share() const {
    return requests > 0 ? static_cast<double>(violations) / static_cast<double>(requests) : 0;
  }
};

// Of the requests that may be late or failed within a limit, the share that were: above 1 the limit
// is not kept. "Error budget" of B. Beyer et al., "Site Reliability Engineering", 2016, chapter 3.
// REQUIRES: late_max > 0.
inline double BudgetUsed(double violation_share, double late_max) {
  return violation_share / late_max;
}

// The nodes of a scenario on which pods that are scaled may run, each as large as it is on average.
NodePacking PackingOf(const Scenario& scenario);

// Nodes in use over an episode.
class NodeMeter {
 public:
  explicit NodeMeter(const NodePacking& packing) : packing_(packing) {}

  // So long there were so many replicas [workload], which used so many cores on average.
  void Add(double seconds, std::span<const int> replicas, double used_cores);

  double node_hours() const { return node_hours_; }
  double energy_wh() const { return energy_wh_; }

 private:
  const NodePacking& packing_;
  std::vector<int> replicas_;  // Of the last time: mostly they are the same,
  NodesInUse in_use_;          // and so is this.
  double node_hours_ = 0, energy_wh_ = 0;
};

// The pods with which an episode begins under any policy, all of them ready: the lowest rung of the
// application's ladder that answers all but 1 % of the requests of its first minute in time, as far
// as the quota goes.
class EpisodeStart {
 public:
  explicit EpisodeStart(std::shared_ptr<const ServedApplication> application)
      : ladder_(std::move(application), kLateMax),
        highest_(ladder_.HighestWithin(ladder_.application().limits)) {}

  std::span<const int> ReplicasFor(const RateCurve& curve) const {  // [workload]
    return ladder_.Replicas(std::min(highest_, ladder_.RungFor(curve.MeanOf(0, kFirstS))));
  }

  static constexpr double kLateMax = 0.01, kFirstS = 60;

 private:
  CapacityLadder ladder_;
  int highest_;
};

// Who watches an episode.
class ScalingWatcher {
 public:
  virtual ~ScalingWatcher() = default;

  // At the end of every interval, before it is decided what the next one is to have; the last one
  // may be shorter.
  virtual void SeeInterval(const EventSimulator& simulator) = 0;
};

// One episode. The same seed brings the same requests to every policy. `watcher` may be null;
// without `nodes` no node-hours and no energy are counted.
ScalingFigures RunScaling(const ScalingPolicy& policy, const Load& load,
                          std::shared_ptr<const RateCurve> curve, uint64_t seed,
                          const EpisodeStart& start, EventSimulator* simulator,
                          ScalingWatcher* watcher = nullptr, const NodePacking* nodes = nullptr);

// What comes in episode `episode` of a load, a position in Load::loads; of a replay, from the part
// of its trace that is for `use`.
struct ScalingEpisodeDraw {
  uint64_t seed = 0;  // Of RunScaling.
  std::shared_ptr<const RateCurve> curve;
};
ScalingEpisodeDraw DrawScalingEpisode(const Load& load, EpisodeUse use, int position, uint64_t seed,
                                      int episode);

// The same by what the Model believes: without chance but for that of samples, which count. Its
// percentiles are 0 where it keeps no responses.
ScalingFigures RunScalingOnModel(const ScalingPolicy& policy, const Load& load,
                                 const RateCurve& curve, uint64_t seed, const EpisodeStart& start,
                                 LoadModel* model, const NodePacking* nodes = nullptr);

}  // namespace rudderfish
