// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/wall_time.h"
#include "cluster/signals.h"
#include "task/region_sight.h"

// Regions as a policy of routing sees them, from what is measured of live ones. Signals `per:
// region` of these names are read; what a data path shows (ready endpoints, health) and what the
// scenario says (prices, carbon by the hour) counts where there is none. One thread.
//
// Of several services that share nodes, the first five are called SERVICE/NAME.
//
//   demand_per_s       requests a second of users of the region; needed
//   latency_s          mean response time of those requests, which the Model is held against
//   wait_s             mean wait of a request at the region before it is served
//   ready_pods         pods that serve (none: the region is not healthy), if the data path does not
//                      show it; without both, those that the region's capacity shows
//   pending_pods       pods that start
//   on_demand_per_h, spot_per_h   dollars for a node
//   carbon_g_per_kwh   carbon intensity
//   healthy            more than 0: the region serves; for data paths that do not show it

namespace rudderfish {

inline constexpr std::string_view kDemandSignal = "demand_per_s";
inline constexpr std::string_view kLatencySignal = "latency_s";
inline constexpr std::string_view kHealthySignal = "healthy";
inline constexpr std::string_view kPodsSignal = "ready_pods";

// Pods of a region that its capacity shows: those of VMs that are all its nodes, or those of a
// Deployment.
struct RegionPods {
  int ready = 0, starting = 0;
};

// A region as data paths show it, and the cloud that it is in.
struct RegionBackendSight {
  bool is_healthy = true;
  std::optional<int64_t> ready;  // Endpoints that serve.
  std::optional<RegionPods> pods;
};

class RegionView {
 public:
  // Which service of several that share nodes: its signals are called SERVICE/NAME, but for prices
  // and carbon, and its pods are in the place of nodes.
  struct OfService {
    std::string name;      // Empty: there is one.
    int pods_of_node = 1;  // Each a node of the laws.
  };

  RegionView(std::shared_ptr<const RegionLaws> laws, OfService service, Duration interval,
             Duration signals_max_age);

  // Looks again. `shares` [origin][target]: that stand. Returns why nothing can be decided; empty:
  // question() holds.
  std::string Look(const Signals& signals, std::span<const RegionBackendSight> backends,
                   std::span<const double> shares, Instant now, UnixMillis wall);

  RoutingQuestion question() const;
  Duration signals_age() const { return signals_age_; }  // Of the oldest demand.
  std::span<const RegionSight> sights() const { return sights_; }

  // Mean response time of requests of a region, or of all by their demand if it is negative, and
  // when it was measured; nothing: it is not measured, or too long ago.
  std::optional<SignalValue> Latency(int origin) const;

 private:
  std::optional<double> Fresh(const Signals& signals, std::string_view signal, int region,
                              Instant now, Duration max_age) const;

  std::string NameOf(std::string_view signal) const;

  std::shared_ptr<const RegionLaws> laws_;
  OfService service_;
  Duration interval_, max_age_;
  Duration signals_age_{};
  int step_ = 0;
  std::vector<RegionSight> sights_;
  std::vector<std::optional<SignalValue>> latencies_;  // [region]
};

}  // namespace rudderfish
