// SPDX-License-Identifier: Apache-2.0
#include "model/served_application.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace rudderfish {

ServiceLaw ServiceLaw::OfScv(double scv) {
  if (scv == 0) return {Shape::kConstant, 0};
  return {scv == 1 ? Shape::kExponential : Shape::kLogNormal, scv};
}

double ServedWorkload::ReadyAfterS(double serves_s) const {
  if (probe_period_s <= 0) return serves_s;
  const double later_s = std::max(0.0, serves_s - probe_delay_s);
  return probe_delay_s + std::ceil(later_s / probe_period_s) * probe_period_s;
}

double ServedWorkload::MeanStartS() const {
  const double mean_s = (start_low_s + start_high_s) / 2;
  if (probe_period_s <= 0) return mean_s;
  if (start_low_s >= start_high_s) return ReadyAfterS(mean_s);
  // The integral of ReadyAfterS, whose steps end at probes.
  double sum = 0, from = start_low_s;
  for (int probe = 0; from < start_high_s; ++probe) {
    const double ready_s = probe_delay_s + probe * probe_period_s;
    const double upto = std::clamp(ready_s, from, start_high_s);
    sum += (upto - from) * ready_s;
    from = upto;
  }
  return sum / (start_high_s - start_low_s);
}

double ServedWorkload::LongestStartS() const {
  return (image_nodes > 0 ? pull_high_s : 0) + ReadyAfterS(start_high_s);
}

std::vector<double> ServedApplication::EndpointShares() const {
  std::vector<double> shares;
  double sum = 0;
  for (const Endpoint& endpoint : calls->endpoints) {
    shares.push_back(endpoint.rate_per_second);
    sum += endpoint.rate_per_second;
  }
  for (double& share : shares)
    share = sum > 0 ? share / sum : 1.0 / static_cast<double>(shares.size());
  return shares;
}

std::vector<double> ServedApplication::DemandS() const {
  std::vector<double> demand(workloads.size(), 0.0);
  const std::vector<double> shares = EndpointShares();
  for (size_t e = 0; e < shares.size(); ++e) {
    const Endpoint& endpoint = calls->endpoints[e];
    for (CallId call = endpoint.root; call < endpoint.end; ++call)
      demand[calls->calls[call].workload] += shares[e] * service_ms[call] / 1000;
  }
  return demand;
}

std::vector<double> ServedApplication::CallsPerRequest() const {
  std::vector<double> count(workloads.size(), 0.0);
  const std::vector<double> shares = EndpointShares();
  for (size_t e = 0; e < shares.size(); ++e) {
    const Endpoint& endpoint = calls->endpoints[e];
    for (CallId call = endpoint.root + 1; call < endpoint.end; ++call)
      count[calls->calls[call].workload] += shares[e];
  }
  return count;
}

double ServedApplication::CapacityPerS(const std::vector<int>& replicas) const {
  CHECK_EQ(replicas.size(), workloads.size());
  const std::vector<double> demand = DemandS();
  double capacity = std::numeric_limits<double>::infinity();
  for (size_t w = 0; w < workloads.size(); ++w) {
    if (demand[w] > 0) capacity = std::min(capacity, replicas[w] * workloads[w].slots / demand[w]);
  }
  return capacity;
}

ServedApplication SingleStation(const ServedWorkload& workload, double service_ms) {
  auto calls = std::make_shared<CallGraph>();
  calls->name = "station";
  calls->calls = {{.workload = 0, .first_group = 0, .last_group = 1},
                  {.workload = 1, .caller = 0, .first_group = 1, .last_group = 1}};
  calls->groups = {{0, 1}};
  calls->sequence = {1};
  calls->endpoints = {
      {.name = "request", .root = 0, .end = 2, .rate_per_second = 1, .qos_ms = 10 * service_ms}};
  calls->kind_count = 1;
  calls->execution_ms = {0, service_ms};
  ServedApplication application;
  application.calls = std::move(calls);
  application.workloads = {{.name = "client", .replicas = 0, .scaled = false}, workload};
  application.service_ms = {0, service_ms};
  return application;
}

}  // namespace rudderfish
