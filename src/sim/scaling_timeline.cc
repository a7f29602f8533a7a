// SPDX-License-Identifier: Apache-2.0
#include "sim/scaling_timeline.h"

#include <algorithm>
#include <numeric>

namespace rudderfish {

int ScalingMoment::pods() const { return std::accumulate(replicas.begin(), replicas.end(), 0); }

void ScalingTimeline::SeeInterval(const EventSimulator& simulator) {
  const ServedApplication& application = simulator.application();
  const auto passed_ns = static_cast<double>(std::max<int64_t>(simulator.now_ns() - before_ns_, 1));
  const RequestSums sums = simulator.requests() - before_;
  ResponseHistogram responses = simulator.responses();
  responses.Subtract(responses_before_);
  const int64_t ended = sums.completed + sums.failed;
  ScalingMoment moment{
      .at_s = static_cast<double>(simulator.now_ns()) / 1e9,
      .requests_per_s = static_cast<double>(sums.arrived) * 1e9 / passed_ns,
      .p95_ms = responses.QuantileS(.95) * 1000,
      .late_share =
          ended > 0 ? static_cast<double>(sums.violations()) / static_cast<double>(ended) : 0};
  pod_ns_before_.resize(application.workloads.size());
  for (WorkloadId w = 0; w < application.workload_count(); ++w) {
    const ServedWorkload& workload = application.workloads[w];
    const int64_t pod_ns = simulator.sums(w).pod_ns;
    moment.cores += static_cast<double>(pod_ns - pod_ns_before_[w]) / passed_ns *
                    static_cast<double>(workload.cpu_millis) / 1000;
    moment.replicas.push_back(workload.scaled ? simulator.replicas(w) : 0);
    pod_ns_before_[w] = pod_ns;
  }
  moments_.push_back(std::move(moment));
  before_ns_ = simulator.now_ns();
  before_ = simulator.requests();
  responses_before_ = simulator.responses();
}

std::vector<ScalingMoment> RecordScaling(const ScalingPolicy& policy, const Load& load,
                                         EpisodeUse use, int position, uint64_t seed, int episode,
                                         const EpisodeStart& start, EventSimulator* simulator) {
  ScalingTimeline timeline;
  const ScalingEpisodeDraw draw = DrawScalingEpisode(load, use, position, seed, episode);
  RunScaling(policy, load, draw.curve, draw.seed, start, simulator, &timeline);
  return std::move(timeline).Take();
}

}  // namespace rudderfish
