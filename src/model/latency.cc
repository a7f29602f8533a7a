// SPDX-License-Identifier: Apache-2.0
#include "model/latency.h"

#include <cmath>

#include "base/check.h"

namespace rudderfish {

const LatencyLaw& LatencyLaw::Reach() {
  static const LatencyLaw law{.name = "reach",
                              .intra_layer_is_one_ms = true,
                              .transfer_ms_per_mbyte = 1.0 / 1024,
                              .traffic_per_mbyte = 1.0 / 1024};
  return law;
}

const LatencyLaw& LatencyLaw::Physical() {
  static const LatencyLaw law{.name = "physical",
                              .response_travels = true,
                              .loopback = true,
                              .queueing = true,
                              .slowest_of_each = true,
                              .transfer_ms_per_mbyte = 2 * 1000.0,
                              .traffic_per_mbyte = 2};
  return law;
}

Result<LatencyLaw> LatencyLaw::Named(std::string_view name) {
  for (const LatencyLaw* law : {&Reach(), &Physical()}) {
    if (law->name == name) return *law;
  }
  return Invalid("no latency model is called \"{}\"; there are reach and physical", name);
}

LatencyLaw Corrected(const LatencyLaw& law, const LatencyFactors& factors) {
  for (const double one : {factors.execution, factors.network, factors.transfer, factors.queueing})
    CHECK(std::isfinite(one) && one > 0);
  LatencyLaw corrected = law;
  corrected.execution_factor *= factors.execution;
  corrected.network_factor *= factors.network;
  corrected.transfer_ms_per_mbyte *= factors.transfer;
  corrected.queueing_factor *= factors.queueing;
  return corrected;
}

double HopMs(const LatencyLaw& law, const Network& network, LayerId from, LayerId to) {
  if (law.intra_layer_is_one_ms && from == to) return law.network_factor;
  const double there = network.LatencyMs(from, to);
  const double both = law.response_travels ? there + network.LatencyMs(to, from) : there;
  return law.network_factor * both;
}

double ShareMbytesPerS(double bandwidth_mbytes_per_s, double others_mbytes_per_s) {
  return others_mbytes_per_s / bandwidth_mbytes_per_s < kBandwidthKnee
             ? bandwidth_mbytes_per_s - others_mbytes_per_s
             : bandwidth_mbytes_per_s * kBandwidthFloor;
}

double QueueingMs(double execution_ms, double rho) {
  if (rho <= kQueueingKnee) return execution_ms * rho / (1 - rho);
  // d/drho of rho / (1 - rho) is 1 / (1 - rho)^2: overload costs more and more, but never becomes
  // infinite, so that a search can find its way out of it.
  const double room = 1 - kQueueingKnee;
  return execution_ms * (kQueueingKnee / room + (rho - kQueueingKnee) / (room * room));
}

const std::vector<std::string>& TermNames() {
  static const std::vector<std::string> names{"latency_ms", "execution_ms", "network_ms",
                                              "transfer_ms", "queueing_ms"};
  return names;
}

double TermValue(const Terms& terms, int index) {
  switch (index) {
    case 0:
      return terms.latency_ms;
    case 1:
      return terms.execution_ms;
    case 2:
      return terms.network_ms;
    case 3:
      return terms.transfer_ms;
    default:
      CHECK_EQ(index, 4);
      return terms.queueing_ms;
  }
}

}  // namespace rudderfish
