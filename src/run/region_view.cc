// SPDX-License-Identifier: Apache-2.0
#include "run/region_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/units.h"
#include "telemetry/carbon_config.h"

namespace rudderfish {
namespace {

constexpr UnixMillis kHourMs = 3'600'000;
constexpr Duration kCarbonMaxAge = std::chrono::hours(3);  // It is published by the hour, and late.

size_t HourOf(UnixMillis wall) { return static_cast<size_t>(wall / kHourMs % kHoursOfDay); }

// Nodes of so many pods, at most so many, as laws are known of no more. A pod that serves is never
// nothing.
int NodesOf(double pods, int pods_per_node, int most) {
  if (pods < 1 || most < 1) return 0;
  const double nodes = std::floor(pods / pods_per_node);
  return static_cast<int>(std::clamp(nodes, 1.0, static_cast<double>(most)));
}

}  // namespace

RegionView::RegionView(std::shared_ptr<const RegionLaws> laws, OfService service, Duration interval,
                       Duration signals_max_age)
    : laws_(std::move(laws)),
      service_(std::move(service)),
      interval_(interval),
      max_age_(signals_max_age),
      sights_(static_cast<size_t>(laws_->network().size())),
      latencies_(sights_.size()) {}

std::string RegionView::NameOf(std::string_view signal) const {
  return service_.name.empty() ? std::string(signal) : fmt::format("{}/{}", service_.name, signal);
}

std::optional<double> RegionView::Fresh(const Signals& signals, std::string_view signal, int region,
                                        Instant now, Duration max_age) const {
  const SignalValue* value =
      signals.Find(signal, laws_->network().regions[static_cast<size_t>(region)].name);
  if (value == nullptr || now - value->at > max_age) return std::nullopt;
  return value->value;
}

std::string RegionView::Look(const Signals& signals, std::span<const RegionBackendSight> backends,
                             std::span<const double> shares, Instant now, UnixMillis wall) {
  const RegionNetwork& network = laws_->network();
  const std::string demand_name = NameOf(kDemandSignal), latency_name = NameOf(kLatencySignal);
  signals_age_ = {};
  for (int r = 0; r < network.size(); ++r) {
    const Region& region = network.regions[static_cast<size_t>(r)];
    RegionSight& seen = sights_[static_cast<size_t>(r)];
    seen = {};
    const SignalValue* demand = signals.Find(demand_name, region.name);
    if (demand == nullptr)
      return fmt::format("the signal {} of region {} was not measured yet", demand_name,
                         region.name);
    signals_age_ = std::max(signals_age_, now - demand->at);
    if (demand->value < 0)
      return fmt::format("the signal {} of region {} is below 0", demand_name, region.name);
    seen.demand_per_s = demand->value;
    const auto fresh = [&](std::string_view signal) {
      return Fresh(signals, NameOf(signal), r, now, max_age_);
    };
    const auto price = [&](std::string_view signal, double listed) {  // Of a node of the laws.
      const std::optional<double> told = Fresh(signals, signal, r, now, max_age_);
      return told ? *told / service_.pods_of_node : listed;
    };
    const RegionBackendSight& backend = backends[static_cast<size_t>(r)];
    std::optional<double> pods = fresh(kPodsSignal);
    if (!pods && backend.ready) pods = static_cast<double>(*backend.ready);
    if (!pods && backend.pods) pods = backend.pods->ready;
    if (!pods && backend.is_healthy) {
      return fmt::format(
          "how many pods serve in region {} is not known: the data path does not show it; add a "
          "signal {}",
          region.name, NameOf(kPodsSignal));
    }
    seen.reachable = backend.is_healthy;
    const int pods_per_node = network.service.pods_per_node;
    seen.ready[kOnDemand] = NodesOf(pods.value_or(0), pods_per_node, region.nodes_max);
    seen.pending[kOnDemand] = NodesOf(fresh("pending_pods").value_or(0), pods_per_node,
                                      region.nodes_max - seen.ready[kOnDemand]);
    if (backend.pods) {
      const int nodes =
          NodesOf(backend.pods->ready + backend.pods->starting, pods_per_node, region.nodes_max);
      seen.pending[kOnDemand] = std::max(0, nodes - seen.ready[kOnDemand]);
    }
    seen.wait_s = std::max(0.0, fresh("wait_s").value_or(0));
    seen.node_per_h[kOnDemand] = price("on_demand_per_h", region.on_demand_per_h);
    seen.node_per_h[kSpot] = price("spot_per_h", region.spot_per_h);
    seen.carbon_g_per_kwh = Fresh(signals, kCarbonSignal, r, now, std::max(max_age_, kCarbonMaxAge))
                                .value_or(region.carbon_g_per_kwh[HourOf(wall)]);
    const SignalValue* latency = signals.Find(latency_name, region.name);
    latencies_[static_cast<size_t>(r)] =
        latency == nullptr || now - latency->at > max_age_ ? std::nullopt : std::optional(*latency);
  }
  for (int to = 0; to < network.size(); ++to) {
    for (int from = 0; from < network.size(); ++from) {
      sights_[static_cast<size_t>(to)].load_per_s +=
          sights_[static_cast<size_t>(from)].demand_per_s * shares[network.At(from, to)];
    }
  }
  ++step_;
  if (signals_age_ <= max_age_) return "";
  return fmt::format("the signal {} is {} old, more than the {} of `signals_max_age`", demand_name,
                     FormatDuration(signals_age_), FormatDuration(max_age_));
}

RoutingQuestion RegionView::question() const {
  return {.step = step_,
          .interval_s = Seconds(interval_),
          .has_spot = false,
          .has_notices = false,
          .laws = laws_.get(),
          .regions = sights_};
}

std::optional<SignalValue> RegionView::Latency(int origin) const {
  if (origin >= 0) return latencies_[static_cast<size_t>(origin)];
  SignalValue mean;
  double requests = 0;
  for (size_t r = 0; r < sights_.size(); ++r) {
    const double demand = sights_[r].demand_per_s;
    if (demand <= 0) continue;
    if (!latencies_[r]) return std::nullopt;
    if (requests == 0 || latencies_[r]->at < mean.at) mean.at = latencies_[r]->at;
    mean.value += demand * latencies_[r]->value;
    requests += demand;
  }
  if (requests <= 0) return std::nullopt;
  mean.value /= requests;
  return mean;
}

}  // namespace rudderfish
