// SPDX-License-Identifier: Apache-2.0
#include "cli/gym_hpa_recorder.h"

#include <algorithm>

namespace rudderfish {

GymHpaRecorder::GymHpaRecorder(const GymHpaReader* reader, int64_t first_s)
    : reader_(reader), first_s_(first_s) {}

void GymHpaRecorder::SeeInterval(const EventSimulator& simulator) {
  timeline_.SeeInterval(simulator);
  const auto count = static_cast<size_t>(simulator.application().workload_count());
  sums_before_.resize(count);
  replicas_.resize(count);
  ready_.resize(count);
  calls_per_s_.resize(count);
  busy_slots_.resize(count);
  const auto passed_ns = static_cast<double>(std::max<int64_t>(simulator.now_ns() - before_ns_, 1));
  const RequestSums requests = simulator.requests() - requests_before_;
  if (requests.completed > 0) {
    latency_ms_ =
        static_cast<double>(requests.response_ns) / 1e6 / static_cast<double>(requests.completed);
  }
  for (size_t w = 0; w < count; ++w) {
    const auto id = static_cast<WorkloadId>(w);
    const WorkloadSums sums = simulator.sums(id), passed = sums - sums_before_[w];
    sums_before_[w] = sums;
    replicas_[w] = simulator.replicas(id);
    ready_[w] = simulator.pods().ready(id);
    calls_per_s_[w] = static_cast<double>(passed.calls) * 1e9 / passed_ns;
    busy_slots_[w] = static_cast<double>(passed.busy_ns) / passed_ns;
  }
  GymHpaRow row{.at_s = first_s_ + simulator.now_ns() / 1'000'000'000, .readings = {}};
  for (int d = 0; d < reader_->application().count(); ++d) {
    GymHpaReading& reading =
        row.readings.emplace_back(reader_->Read(d, {replicas_, ready_, calls_per_s_, busy_slots_}));
    reading.latency_ms = latency_ms_;
  }
  rows_.push_back(std::move(row));
  before_ns_ = simulator.now_ns();
  requests_before_ = simulator.requests();
}

}  // namespace rudderfish
