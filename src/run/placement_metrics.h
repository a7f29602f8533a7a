// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics.h"
#include "control/scheduler.h"
#include "kube/scheduling_follower.h"
#include "run/placement_actuator.h"

// What an operator sees at /metrics of placing in one cluster (docs/operations.md lists it). One
// thread.

namespace rudderfish {

// rudderfish_placement_fallbacks_total of that reason.
Counter& StepBackCounter(MetricRegistry* registry, StepBack why, const std::string& cluster = "");

class PlacementMetrics {
 public:
  // Of the cluster of that name; empty: the own one. The registry outlives it.
  PlacementMetrics(MetricRegistry* registry, std::string cluster)
      : registry_(registry), cluster_(std::move(cluster)) {}

  struct Shown {
    const PlacementActuatorOfKube* actuator = nullptr;
    const Scheduler* scheduler = nullptr;
    const kube::SchedulingFollower* seen = nullptr;
    size_t unserved = 0;  // Pods that name us and are not placed.
    bool is_fresh = false;
  };
  void Show(const Shown& shown);

 private:
  void Set(std::string_view name, std::string_view help, MetricLabels labels, double value);
  void RaiseTo(std::string_view name, std::string_view help, MetricLabels labels, int64_t to);
  void ShowConditions(const PlacementActuatorOfKube& actuator);
  void ShowCounts(const SchedulerCounts& counts);
  void ShowUnread(const kube::SchedulingFollower::Unread& pods);

  MetricRegistry* registry_;
  std::string cluster_;
  std::array<int64_t, kStepBackNames.size()> steps_told_{};
};

}  // namespace rudderfish
