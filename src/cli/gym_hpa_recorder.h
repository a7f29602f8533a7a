// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compat/gym_hpa_table.h"
#include "sim/scaling_timeline.h"
#include "task/gym_hpa_readings.h"

// An episode of scaling as gym-hpa would have observed it (task/gym_hpa_readings.h).

namespace rudderfish {

class GymHpaRecorder final : public ScalingWatcher {
 public:
  // The reader outlives the recorder. `first_s`: the time of the episode's beginning, since 1970.
  GymHpaRecorder(const GymHpaReader* reader, int64_t first_s);

  void SeeInterval(const EventSimulator& simulator) override;

  const std::vector<GymHpaRow>& rows() const { return rows_; }  // [interval]
  double p95_ms(size_t interval) const { return timeline_.moments()[interval].p95_ms; }

 private:
  const GymHpaReader* reader_;
  int64_t first_s_;
  ScalingTimeline timeline_;
  int64_t before_ns_ = 0;
  std::vector<WorkloadSums> sums_before_;         // [workload]
  std::vector<int> replicas_, ready_;             // Likewise.
  std::vector<double> calls_per_s_, busy_slots_;  // Likewise.
  RequestSums requests_before_;
  double latency_ms_ = 0;  // Of the last interval with an answer.
  std::vector<GymHpaRow> rows_;
};

}  // namespace rudderfish
