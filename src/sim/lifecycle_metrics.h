// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/objective.h"
#include "scenario/arrivals.h"

// What is measured of an episode in which pods come and go: counts, waiting times, and means over
// time (each value weighted by how long it held) from the first arrival to the end. Fixed size:
// nothing here allocates but Rows.

namespace rudderfish {

// Of times, to an eighth of their size.
class TimeHistogram {
 public:
  void Add(SimTime time);
  int64_t count() const { return count_; }
  double mean_s() const { return count_ > 0 ? sum_s_ / static_cast<double>(count_) : 0; }
  double max_s() const { return max_s_; }
  // The least bound that so many of the times do not pass. 0 without any.
  double QuantileS(double quantile) const;

 private:
  static constexpr int kPerOctave = 8, kBuckets = 64 * kPerOctave;

  std::array<int64_t, kBuckets> in_{};
  int64_t count_ = 0;
  double sum_s_ = 0, max_s_ = 0;
};

struct MetricRow {
  std::string_view name, unit;
  double value = 0;
};

struct LifecycleMetrics {
  int64_t arrived = 0;
  int64_t bindings = 0;   // Pods bound, again after a loss included.
  int64_t refusals = 0;   // Answers that left a pod pending.
  int64_t completed = 0;  // Have run their lifetime.
  int64_t deleted = 0;    // By their creator.
  int64_t node_losses = 0;
  int64_t lost = 0;               // Pods gone with their node.
  int64_t restarted = 0;          // Pods that had to pend again.
  int64_t never_bound = 0;        // Deleted, or left at the end, without ever having been bound.
  int64_t never_fit = 0;          // Of those: larger than every node they may run on.
  int64_t soft_misses = 0;        // Bindings to where latency was above the soft limit,
  int64_t hard_misses = 0;        // above the hard one.
  double chosen_latency_ms = 0;   // Sum over bindings of the node-user latency.
  double active_at_bindings = 0;  // Sum over bindings of the active nodes then.
  TimeHistogram waiting;          // From pending to bound.
  SimTime first_arrival = kNever;
  SimTime end{0};

  // Integrals over time in seconds since the first arrival.
  double seconds = 0;
  std::array<double, kResourceKinds> sd_s{}, node_utilisation_s{}, active_utilisation_s{};
  double active_nodes_s = 0, ready_nodes_s = 0, pods_s = 0, waiting_pods_s = 0, pod_latency_s = 0;
  double calls_s = 0, call_ms_s = 0;  // Of the calls both of whose ends have pods.
  double joules = 0, price = 0, fragmentation_s = 0, objective_s = 0;

  // Time in which the cluster was so. `objective` may be null.
  void Pass(SimTime time, const ClusterTerms& terms, int64_t waiting_pods,
            const Objective* objective);

  double makespan_s() const;  // From the first arrival to the end.
  double MeanOverTime(double integral) const { return seconds > 0 ? integral / seconds : 0; }

  // Everything, by name, in a fixed order.
  std::vector<MetricRow> Rows() const;
};

}  // namespace rudderfish
