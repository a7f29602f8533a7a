// SPDX-License-Identifier: Apache-2.0
#include "model/region_laws.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rudderfish {
namespace {

constexpr double kMostUse = 0.995;        // Where the last slope is taken.
constexpr double kRelaxationShare = 0.5;  // Of an interval, within which equilibrium is reached.

// The mean over a ramp of P(wait + service > t), waits being known and service exponential.
double LateOnRamp(const QueueInterval::Ramp& ramp, double service_per_s, double t_s) {
  const double low = std::min(ramp.from_s, ramp.to_s), high = std::max(ramp.from_s, ramp.to_s);
  if (low >= t_s) return 1;
  const auto late = [&](double wait_s) { return std::exp(-service_per_s * (t_s - wait_s)); };
  if (high - low < 1e-9) return late(low);
  const double in_time = std::min(high, t_s);
  return ((late(in_time) - late(low)) / service_per_s + (high - in_time)) / (high - low);
}

int MostNodes(const RegionNetwork& network) {
  int most = 1;
  for (const Region& region : network.regions) most = std::max(most, region.nodes_max);
  return most;
}

}  // namespace

RegionLaws::RegionLaws(std::shared_ptr<const RegionNetwork> network)
    : network_(std::move(network)),
      queue_(
          std::make_shared<const MmcTable>(network_->service.pods_per_node, MostNodes(*network_))),
      unit_(network_->unit_dollars()) {
  const int n = network_->size();
  for (const Region& region : network_->regions)
    mean_on_demand_per_h_ += region.on_demand_per_h / n;
  const RegionService& service = network_->service;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      const double trip_s = network_->TripS(from, to);
      distance_.push_back(network_->EgressOf(to, from) / unit_ +
                          network_->objective.wait_per_s * trip_s);
      base_late_.push_back(
          std::exp(-service.pod_per_s * std::max(0.0, service.deadline_s - trip_s)));
    }
  }
  TabulateCongestion();
}

RegionLaws::RegionLaws(const RegionLaws& laws, const RoutingPrices& prices)
    : queue_(laws.queue_),
      unit_(laws.unit_),
      mean_on_demand_per_h_(laws.mean_on_demand_per_h_),
      distance_(laws.distance_),
      base_late_(laws.base_late_) {
  RegionNetwork priced = laws.network();
  priced.objective.late = prices.late.value_or(priced.objective.late);
  priced.objective.carbon_per_kg = prices.carbon_per_kg.value_or(priced.objective.carbon_per_kg);
  network_ = std::make_shared<const RegionNetwork>(std::move(priced));
  TabulateCongestion();
}

void RegionLaws::TabulateCongestion() {
  const RegionService& service = network_->service;
  const RoutingObjective& objective = network_->objective;
  const double t_s = service.deadline_s - service.last_mile_s, mu = service.pod_per_s;
  const double served = std::exp(-mu * t_s);
  congestion_.reserve(static_cast<size_t>(queue_->nodes_max()) * (kCongestionSteps + 1));
  queue_cost_.reserve(congestion_.capacity());
  // Where a region is full, one more is late and waits as long as patience lasts; who else is late
  // there would have been in any case.
  const double queue_per_s = objective.wait_per_s + objective.queue_per_s;
  const double full = objective.late + queue_per_s * service.patience_s;
  for (int nodes = 1; nodes <= queue_->nodes_max(); ++nodes) {
    const double most_per_s = nodes * service.node_per_s();
    const auto cost = [&](double use) {  // Of all requests in a second, beyond an idle region.
      const double waits = queue_->ErlangC(nodes, use), spare = most_per_s * (1 - use);
      const double late = MmcTail(waits, spare, mu, t_s, served) - served;
      return use * most_per_s * (objective.late * late + queue_per_s * waits / spare);
    };
    for (int i = 0; i <= kCongestionSteps; ++i) {
      const double use = std::min(static_cast<double>(i) / kCongestionSteps, kMostUse);
      const double gap = 1e-4;
      const double low = std::max(0.0, use - gap), high = std::min(use + gap, kMostUse + gap);
      const double slope = (cost(high) - cost(low)) / ((high - low) * most_per_s);
      congestion_.push_back(i == kCongestionSteps ? full : std::clamp(slope, 0.0, full));
      // Near saturation equilibrium is further away than any interval.
      queue_cost_.push_back(std::min(cost(use), use * most_per_s * full));
    }
  }
}

double RegionLaws::QueueCost(int nodes, double per_s) const {
  const RegionService& service = network_->service;
  const RoutingObjective& objective = network_->objective;
  const double full =
      objective.late + (objective.wait_per_s + objective.queue_per_s) * service.patience_s;
  if (nodes <= 0) return per_s * full;
  const double* row = queue_cost_.data() + static_cast<size_t>(nodes - 1) * (kCongestionSteps + 1);
  const double most_per_s = nodes * service.node_per_s(),
               at = per_s / most_per_s * kCongestionSteps;
  if (at >= kCongestionSteps) return row[kCongestionSteps] + (per_s - most_per_s) * full;
  const int low = static_cast<int>(at);
  return row[low] + (at - low) * (row[low + 1] - row[low]);
}

double RegionLaws::ServingCost(int to, double use, double node_per_h,
                               double carbon_g_per_kwh) const {
  const RegionService& service = network_->service;
  const double requests_per_h = 3600 * service.node_per_s() * use;
  const double kwh = service.WattsAt(use) * network_->regions[to].pue / 1000;  // In an hour.
  const double carbon = kwh * carbon_g_per_kwh / 1000 * network_->objective.carbon_per_kg;
  return (node_per_h + carbon) / requests_per_h / unit_;
}

double QueueInterval::LateShare(double service_per_s, double t_s, double served) const {
  double late = 0, free = 1;
  for (const Ramp& ramp : backlog) {
    if (ramp.share <= 0) continue;
    free -= ramp.share;
    late += ramp.share * LateOnRamp(ramp, service_per_s, t_s);
  }
  if (free > 0) late += free * MmcTail(waits, spare_per_s, service_per_s, t_s, served);
  return gave_up + (1 - gave_up) * late;
}

QueueInterval RunQueue(const RegionLaws& laws, int nodes, double per_s, double seconds,
                       double* backlog) {
  const RegionService& service = laws.network().service;
  QueueInterval interval;
  if (nodes <= 0) {  // Who waited and who comes is turned away.
    *backlog = 0;
    interval.gave_up = 1;
    return interval;
  }
  const double most_per_s = nodes * service.node_per_s();
  const double root = 1 - 1 / std::sqrt(std::max(4.0, most_per_s * seconds * kRelaxationShare));
  const double use = std::min(per_s / most_per_s, root * root);
  interval.waits = laws.queue().ErlangC(nodes, use);
  interval.spare_per_s = most_per_s * (1 - use);
  interval.mean_wait_s = interval.waits / interval.spare_per_s;
  if (*backlog <= 0 && per_s <= most_per_s) return interval;
  const double grows_per_s = per_s - most_per_s, most = service.patience_s * most_per_s;
  const double before = std::min(*backlog, most), gone = std::max(0.0, *backlog - most);
  double period_s = seconds;  // Until it is gone, or as long as patience.
  if (grows_per_s < 0) period_s = std::min(seconds, before / -grows_per_s);
  if (grows_per_s > 0) period_s = std::min(seconds, (most - before) / grows_per_s);
  *backlog = std::clamp(before + grows_per_s * period_s, 0.0, most);
  if (grows_per_s < 0 && period_s < seconds) *backlog = 0;  // Without what rounding leaves.
  interval.backlog[0] = {period_s / seconds, before / most_per_s, *backlog / most_per_s};
  double gave_up = gone;  // Of nodes that are no more there.
  if (grows_per_s > 0 && period_s < seconds) {
    interval.backlog[1] = {1 - period_s / seconds, service.patience_s, service.patience_s};
    gave_up += grows_per_s * (seconds - period_s);
  }
  double free = 1, wait_s = 0;
  for (const QueueInterval::Ramp& ramp : interval.backlog) {
    free -= ramp.share;
    wait_s += ramp.share * (ramp.from_s + ramp.to_s) / 2;
  }
  interval.mean_wait_s = wait_s + std::max(0.0, free) * interval.mean_wait_s;
  if (per_s > 0) interval.gave_up = std::min(1.0, gave_up / (per_s * seconds));
  return interval;
}

}  // namespace rudderfish
