// SPDX-License-Identifier: Apache-2.0
#include "model/mmc_table.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/queueing.h"

namespace rudderfish {
namespace {

constexpr int kQueueSteps = 64;     // Of utilisation, from 0 to 1.
constexpr double kLeastUse = 1e-6;  // Below it no request waits.

}  // namespace

MmcTable::MmcTable(int servers_per_node, int nodes_max)
    : servers_per_node_(servers_per_node), nodes_max_(nodes_max) {
  CHECK(servers_per_node >= 1 && nodes_max >= 1);
  values_.reserve(static_cast<size_t>(nodes_max) * (kQueueSteps + 1));
  for (int node = 1; node <= nodes_max; ++node) {
    const int servers = node * servers_per_node;
    // C -> (c rho)^c / c! as rho -> 0.
    values_.push_back(servers * std::log(servers) - std::lgamma(servers + 1.0));
    for (int i = 1; i <= kQueueSteps; ++i) {
      const double rho = static_cast<double>(i) / kQueueSteps;
      // Far below the least double C is its limit, too.
      const double waits = rudderfish::ErlangC(servers, servers * rho);
      values_.push_back(waits > 0
                            ? std::log(waits) - servers * std::log(rho)
                            : values_[values_.size() - static_cast<size_t>(i)] - servers * rho);
    }
  }
}

double MmcTable::ErlangC(int nodes, double utilisation) const {
  if (utilisation >= 1) return 1;
  if (utilisation < kLeastUse) return 0;
  const double* row = values_.data() + static_cast<size_t>(nodes - 1) * (kQueueSteps + 1);
  const double at = utilisation * kQueueSteps;
  // Lagrange through four points, those at the ends being the outermost.
  const int first = std::clamp(static_cast<int>(at) - 1, 0, kQueueSteps - 3);
  const double x = at - first;
  const double a = x - 1, b = x - 2, c = x - 3;
  const double value = -row[first] * a * b * c / 6 + row[first + 1] * x * b * c / 2 -
                       row[first + 2] * x * a * c / 2 + row[first + 3] * x * a * b / 6;
  return std::min(1.0, std::exp(value + nodes * servers_per_node_ * std::log(utilisation)));
}

double MmcTail(double waits, double spare_per_s, double service_per_s, double t_s, double served) {
  if (t_s <= 0) return 1;
  const double gap = spare_per_s - service_per_s;
  const double both =
      std::abs(gap) < 1e-6 * service_per_s
          ? (1 + service_per_s * t_s) * served
          : (spare_per_s * served - service_per_s * std::exp(-spare_per_s * t_s)) / gap;
  return (1 - waits) * served + waits * both;
}

}  // namespace rudderfish
