// SPDX-License-Identifier: Apache-2.0
#include "task/gym_hpa_readings.h"

#include <algorithm>

namespace rudderfish {
namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kMemoryOfLimit = 0.375;

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

GymHpaApplication GymHpaApplicationOf(const ServedApplication& served, std::string_view name) {
  GymHpaApplication application{.name = std::string(name), .deployments = {}, .pods_max = 1};
  std::replace(application.name.begin(), application.name.end(), '-', '_');
  if (application.name == GymHpaApplication::Redis().name)
    application.latency_cap_ms = GymHpaApplication::Redis().latency_cap_ms;
  for (const ServedWorkload& workload : served.workloads) {
    if (!workload.scaled) continue;
    application.deployments.push_back({.name = workload.name,
                                       .cpu_request_millis = static_cast<int>(workload.cpu_millis),
                                       .memory_request_mib = static_cast<int>(
                                           static_cast<double>(workload.memory_bytes) / kMib)});
    application.pods_max = std::max(application.pods_max, workload.replicas_max);
  }
  return application;
}

GymHpaReader::GymHpaReader(const ServedApplication& served, std::string_view name)
    : application_(GymHpaApplicationOf(served, name)) {
  const CallTraffic traffic = TrafficOf(served);
  for (WorkloadId w = 0; w < served.workload_count(); ++w) {
    const ServedWorkload& workload = served.workloads[w];
    if (!workload.scaled) continue;
    parts_.push_back({.workload = w,
                      .slots = workload.slots,
                      .least = workload.replicas_min,
                      .most = workload.replicas_max,
                      .cpu_millis = static_cast<double>(workload.cpu_millis),
                      .in_kbytes = traffic.in_mbytes[w] * 1000,
                      .out_kbytes = traffic.out_mbytes[w] * 1000});
  }
}

GymHpaReading GymHpaReader::Read(int deployment, const GymHpaMetrics& metrics) const {
  const Part& part = parts_[deployment];
  const GymHpaDeployment& requested = application_.deployments[deployment];
  GymHpaReading reading{
      .pods = metrics.replicas[part.workload],
      .cpu_millis = metrics.busy_slots[part.workload] / part.slots * part.cpu_millis,
      .traffic_in_kbytes_per_s = metrics.calls_per_s[part.workload] * part.in_kbytes,
      .traffic_out_kbytes_per_s = metrics.calls_per_s[part.workload] * part.out_kbytes};
  reading.memory_mib = static_cast<double>(reading.pods) * requested.memory_target();
  reading.desired = std::max(
      part.least, GymHpaDesired(requested, reading.cpu_millis, reading.memory_mib, part.most));
  return reading;
}

GymHpaShares GymHpaReader::SharesOf(int deployment, const GymHpaMetrics& metrics) const {
  const Part& part = parts_[deployment];
  const int slots = part.slots * std::max(1, metrics.ready[part.workload]);
  return {std::min(metrics.busy_slots[part.workload] / slots, 1.0), kMemoryOfLimit};
}

}  // namespace rudderfish
