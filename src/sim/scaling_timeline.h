// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scaling_run.h"

// An episode of scaling, interval by interval: what came, how many pods there were, how long
// answers took, what was requested of the cluster.

namespace rudderfish {

// One interval.
struct ScalingMoment {
  double at_s = 0;            // Its end.
  double requests_per_s = 0;  // That came.
  double p95_ms = 0;          // Of those answered well in it; 0 without any.
  double late_share = 0;      // Late or failed, of those that ended in it.
  double cores = 0;           // Requested, on average, by pods that exist.
  std::vector<int> replicas;  // [workload] Asked for.

  int pods() const;
  bool operator==(const ScalingMoment&) const = default;
};

class ScalingTimeline final : public ScalingWatcher {
 public:
  void SeeInterval(const EventSimulator& simulator) override;

  const std::vector<ScalingMoment>& moments() const { return moments_; }
  std::vector<ScalingMoment> Take() && { return std::move(moments_); }

 private:
  int64_t before_ns_ = 0;
  RequestSums before_;
  std::vector<int64_t> pod_ns_before_;  // [workload]
  ResponseHistogram responses_before_;
  std::vector<ScalingMoment> moments_;
};

// One episode of a load, a position in Load::loads, as EvaluateScaling runs it.
std::vector<ScalingMoment> RecordScaling(const ScalingPolicy& policy, const Load& load,
                                         EpisodeUse use, int position, uint64_t seed, int episode,
                                         const EpisodeStart& start, EventSimulator* simulator);

}  // namespace rudderfish
