// SPDX-License-Identifier: Apache-2.0
#include "cli/gym_hpa_recorder.h"

#include <algorithm>

namespace rudderfish {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

// [workload] Megabytes that one call brings to it, and that it sends to others for one.
struct CallTraffic {
  std::vector<double> in_mbytes, out_mbytes;
};

CallTraffic TrafficOf(const ServedApplication& application) {
  const CallGraph& graph = *application.calls;
  const std::vector<double> shares = application.EndpointShares(),
                            calls = application.CallsPerRequest();
  CallTraffic traffic{std::vector<double>(calls.size()), std::vector<double>(calls.size())};
  for (size_t e = 0; e < graph.endpoints.size(); ++e) {
    for (CallId call = graph.endpoints[e].root + 1; call < graph.endpoints[e].end; ++call) {
      const Call& one = graph.calls[call];
      traffic.in_mbytes[one.workload] += shares[e] * one.data_mbytes;
      traffic.out_mbytes[graph.calls[one.caller].workload] += shares[e] * one.data_mbytes;
    }
  }
  for (size_t w = 0; w < calls.size(); ++w) {
    traffic.in_mbytes[w] = calls[w] > 0 ? traffic.in_mbytes[w] / calls[w] : 0;
    traffic.out_mbytes[w] = calls[w] > 0 ? traffic.out_mbytes[w] / calls[w] : 0;
  }
  return traffic;
}

}  // namespace

GymHpaApplication GymHpaApplicationOf(const Scenario& scenario) {
  const ServedApplication served = ApplicationOf(scenario, 0);
  GymHpaApplication application{.name = scenario.name, .deployments = {}, .pods_max = 1};
  std::replace(application.name.begin(), application.name.end(), '-', '_');
  if (application.name == GymHpaApplication::Redis().name)
    application.latency_cap_ms = GymHpaApplication::Redis().latency_cap_ms;
  for (WorkloadId w = 0; w < served.workload_count(); ++w) {
    if (!served.workloads[w].scaled) continue;
    const Resources& requests = scenario.catalog->workloads[w].requests;
    application.deployments.push_back({.name = served.workloads[w].name,
                                       .cpu_request_millis = static_cast<int>(requests.cpu_millis),
                                       .memory_request_mib = static_cast<int>(
                                           static_cast<double>(requests.memory_bytes) / kMib)});
    application.pods_max = std::max(application.pods_max, served.workloads[w].replicas_max);
  }
  return application;
}

GymHpaRecorder::GymHpaRecorder(const GymHpaApplication* application, int64_t first_s)
    : application_(application), first_s_(first_s) {}

void GymHpaRecorder::SeeInterval(const EventSimulator& simulator) {
  timeline_.SeeInterval(simulator);
  const ServedApplication& served = simulator.application();
  const CallTraffic traffic = TrafficOf(served);
  sums_before_.resize(served.workloads.size());
  const auto passed_ns = static_cast<double>(std::max<int64_t>(simulator.now_ns() - before_ns_, 1));
  const RequestSums requests = simulator.requests() - requests_before_;
  if (requests.completed > 0) {
    latency_ms_ =
        static_cast<double>(requests.response_ns) / 1e6 / static_cast<double>(requests.completed);
  }
  GymHpaRow row{.at_s = first_s_ + simulator.now_ns() / 1'000'000'000, .readings = {}};
  for (WorkloadId w = 0; w < served.workload_count(); ++w) {
    const ServedWorkload& workload = served.workloads[w];
    if (!workload.scaled) continue;
    const GymHpaDeployment& deployment = application_->deployments[row.readings.size()];
    const WorkloadSums sums = simulator.sums(w), passed = sums - sums_before_[w];
    sums_before_[w] = sums;
    const double calls_per_s = static_cast<double>(passed.calls) * 1e9 / passed_ns;
    GymHpaReading reading{.pods = simulator.replicas(w),
                          .cpu_millis = static_cast<double>(passed.busy_ns) / passed_ns /
                                        workload.slots * static_cast<double>(workload.cpu_millis),
                          .latency_ms = latency_ms_};
    reading.memory_mib = static_cast<double>(reading.pods) * deployment.memory_target();
    reading.traffic_in_kbytes_per_s = calls_per_s * traffic.in_mbytes[w] * 1000;
    reading.traffic_out_kbytes_per_s = calls_per_s * traffic.out_mbytes[w] * 1000;
    reading.desired =
        GymHpaDesired(deployment, reading.cpu_millis, reading.memory_mib, application_->pods_max);
    row.readings.push_back(reading);
  }
  rows_.push_back(std::move(row));
  before_ns_ = simulator.now_ns();
  requests_before_ = simulator.requests();
}

}  // namespace rudderfish
