// SPDX-License-Identifier: Apache-2.0
#include "model/steady_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "model/gamma_law.h"
#include "model/queueing.h"

namespace rudderfish {

SteadyLoad::SteadyLoad(std::shared_ptr<const ServedApplication> application)
    : application_(std::move(application)),
      shares_(application_->EndpointShares()),
      demand_s_(application_->DemandS()),
      calls_(application_->CallsPerRequest()),
      service_scv_(application_->workloads.size(), 0),
      waits_(application_->workloads.size()),
      below_(application_->calls->calls.size()) {
  const CallGraph& graph = *application_->calls;
  for (size_t e = 0; e < shares_.size(); ++e) {
    for (CallId call = graph.endpoints[e].root + 1; call < graph.endpoints[e].end; ++call) {
      const WorkloadId w = graph.calls[call].workload;
      const double service_s = application_->service_ms[call] / 1000;
      if (demand_s_[w] > 0)
        service_scv_[w] += shares_[e] / calls_[w] * service_s * service_s *
                           (1 + application_->workloads[w].service.scv);
    }
  }
  for (size_t w = 0; w < demand_s_.size(); ++w) {
    if (demand_s_[w] <= 0) continue;
    const double mean_s = demand_s_[w] / calls_[w];
    service_scv_[w] = std::max(0.0, service_scv_[w] / (mean_s * mean_s) - 1);
  }
}

double SteadyLoad::CapacityPerS(std::span<const int> replicas) const {
  double least = std::numeric_limits<double>::infinity();
  for (size_t w = 0; w < demand_s_.size(); ++w) {
    const ServedWorkload& workload = application_->workloads[w];
    if (!workload.scaled || demand_s_[w] <= 0) continue;
    least = std::min(least, replicas[w] * workload.slots / demand_s_[w]);
  }
  return least;
}

SteadyLoad::Moments SteadyLoad::WaitAt(WorkloadId w, int pods, double requests_per_s) const {
  const ServedWorkload& workload = application_->workloads[w];
  const double service_s = demand_s_[w] / calls_[w];
  Station pod{.arrivals_per_s = requests_per_s * calls_[w] / pods,
              .services_per_s = 1 / service_s,
              .servers = workload.slots};
  double arrivals_scv = 1;
  if (workload.balancing == Balancing::kRoundRobin) arrivals_scv = 1.0 / pods;
  Wait alone = AllenCunneenQueue(pod, arrivals_scv, service_scv_[w]).wait;
  const bool shared = workload.discipline == Discipline::kShared;
  // As much work is left as in a line, of calls that have less left each.
  const double turnover = shared ? 2 / (1 + service_scv_[w]) : 1;
  alone.mean_if_waiting *= turnover;
  double alone_s2 = alone.variance_s2();
  if (shared && alone.mean_s() > 0 && pod.utilisation() < 1) {
    alone_s2 = alone.mean_s() * alone.mean_s() *
               SharingVariation(pod.utilisation(), pod.servers, alone.probability,
                                1 + alone.mean_s() / service_s, service_scv_[w]);
  }
  if (workload.balancing != Balancing::kLeastRequests || pods == 1)
    return {alone.mean_s(), alone_s2};
  // Joining the shorter of two lines is between lines of their own and one line for all.
  pod.arrivals_per_s *= pods;
  pod.servers *= pods;
  const Wait pooled = AllenCunneenQueue(pod, 1, service_scv_[w]).wait;
  const double utilisation = pod.utilisation();
  const double many = (ShortestOfChoicesResponse(utilisation, workload.choices) - 1) * service_s /
                      workload.slots * std::pow(alone.probability, workload.choices - 1);
  const double mean = std::min(alone.mean_s(), many + turnover * pooled.mean_s());
  const double share = alone.mean_s() > 0 ? mean / alone.mean_s() : 0;
  return {mean, alone_s2 * share * share};
}

// With its way over the network, without those it calls.
SteadyLoad::Moments SteadyLoad::ResponseOfCall(CallId id) const {
  const WorkloadId w = application_->calls->calls[id].workload;
  const ServedWorkload& workload = application_->workloads[w];
  const double network_s = 2 * application_->network_ms / 1000;
  const double service_s = application_->service_ms[id] / 1000;
  const double variance_s2 = workload.service.scv * service_s * service_s;
  const Moments& wait = waits_[w];
  if (workload.discipline == Discipline::kInLine || demand_s_[w] <= 0)
    return {network_s + wait.mean + service_s, wait.variance + variance_s2};
  // Shared: longer in proportion to its own service. Waits are those of a call of mean service.
  const double mean_s = demand_s_[w] / calls_[w];
  const double stretch = 1 + wait.mean / mean_s;
  return {network_s + stretch * service_s,
          stretch * stretch * variance_s2 +
              (service_s * service_s + variance_s2) * wait.variance / (mean_s * mean_s)};
}

// Clark's formulas for independent normal variables.
SteadyLoad::Moments SteadyLoad::Later(const Moments& a, const Moments& b) {
  const double spread = std::sqrt(a.variance + b.variance);
  if (spread <= 0) return a.mean >= b.mean ? a : b;
  const double x = (a.mean - b.mean) / spread;
  const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double mean = a.mean * below + b.mean * (1 - below) + spread * density;
  const double square = (a.mean * a.mean + a.variance) * below +
                        (b.mean * b.mean + b.variance) * (1 - below) +
                        (a.mean + b.mean) * spread * density;
  return {mean, std::max(0.0, square - mean * mean)};
}

SteadyLoad::Moments SteadyLoad::ResponseOf(const Endpoint& endpoint) {
  const CallGraph& graph = *application_->calls;
  for (CallId id = endpoint.end - 1; id >= endpoint.root; --id) {
    const Call& call = graph.calls[id];
    Moments all;
    for (int g = call.first_group; g < call.last_group; ++g) {
      Moments group;
      for (int i = graph.groups[g].first; i < graph.groups[g].last; ++i) {
        group.mean += below_[graph.sequence[i]].mean;
        group.variance += below_[graph.sequence[i]].variance;
      }
      all = g == call.first_group ? group : Later(all, group);
    }
    if (call.caller != kNone) {
      const Moments own = ResponseOfCall(id);
      all.mean += own.mean;
      all.variance += own.variance;
    }
    below_[id] = all;
  }
  return below_[endpoint.root];
}

double SteadyLoad::LateShare(std::span<const int> replicas, double requests_per_s) {
  CHECK(replicas.size() == waits_.size() && requests_per_s >= 0);
  if (requests_per_s >= CapacityPerS(replicas)) return 1;
  for (size_t w = 0; w < waits_.size(); ++w) {
    waits_[w] = {};
    if (demand_s_[w] > 0 && application_->workloads[w].scaled && requests_per_s > 0)
      waits_[w] = WaitAt(static_cast<WorkloadId>(w), replicas[w], requests_per_s);
  }
  double late = 0;
  for (size_t e = 0; e < shares_.size(); ++e) {
    const Endpoint& endpoint = application_->calls->endpoints[e];
    const Moments response = ResponseOf(endpoint);
    if (response.mean <= 0) continue;
    const GammaLaw law{response.mean, response.variance};
    late += shares_[e] * (1 - law.BelowNearly(endpoint.qos_ms / 1000));
  }
  return std::clamp(late, 0.0, 1.0);
}

}  // namespace rudderfish
