// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compat/gym_hpa_table.h"
#include "evaluation/scaling_timeline.h"

// An episode of scaling as gym-hpa would have observed it. What the event simulator has no word
// for: memory stands at three quarters of what pods request, the target of the rule for desired
// replicas; traffic is what calls carry on average (`data` of a scenario's calls).

namespace rudderfish {

// The workloads that are scaled, in their order, as deployments.
GymHpaApplication GymHpaApplicationOf(const Scenario& scenario);

class GymHpaRecorder final : public ScalingWatcher {
 public:
  // Everything outlives the recorder. `first_s`: the time of the episode's beginning, since 1970.
  GymHpaRecorder(const GymHpaApplication* application, int64_t first_s);

  void SeeInterval(const EventSimulator& simulator) override;

  const std::vector<GymHpaRow>& rows() const { return rows_; }  // [interval]
  double p95_ms(size_t interval) const { return timeline_.moments()[interval].p95_ms; }

 private:
  const GymHpaApplication* application_;
  int64_t first_s_;
  ScalingTimeline timeline_;
  int64_t before_ns_ = 0;
  std::vector<WorkloadSums> sums_before_;  // [workload]
  RequestSums requests_before_;
  double latency_ms_ = 0;  // Of the last interval with an answer.
  std::vector<GymHpaRow> rows_;
};

}  // namespace rudderfish
