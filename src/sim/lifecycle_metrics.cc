// SPDX-License-Identifier: Apache-2.0
#include "sim/lifecycle_metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rudderfish {
namespace {

double Seconds(SimTime time) { return static_cast<double>(time.count()) / 1e9; }

constexpr double kJoulesPerKwh = 3.6e6;

}  // namespace

void TimeHistogram::Add(SimTime time) {
  const uint64_t ns = static_cast<uint64_t>(std::max<int64_t>(time.count(), 0));
  int bucket = static_cast<int>(ns);  // The first 16 hold one value each.
  if (ns >= 2 * kPerOctave) {
    const int shift = std::bit_width(ns) - 4;  // Leaves 8 to 15.
    bucket = (shift + 1) * kPerOctave + static_cast<int>(ns >> shift) - kPerOctave;
  }
  ++in_[std::min(bucket, kBuckets - 1)];
  ++count_;
  sum_s_ += Seconds(time);
  max_s_ = std::max(max_s_, Seconds(time));
}

double TimeHistogram::QuantileS(double quantile) const {
  const double wanted = quantile * static_cast<double>(count_);
  int64_t passed = 0;
  for (int bucket = 0; bucket < kBuckets && count_ > 0; ++bucket) {
    passed += in_[bucket];
    if (static_cast<double>(passed) < wanted || passed == 0) continue;
    if (bucket < 2 * kPerOctave) return bucket / 1e9;
    const int shift = bucket / kPerOctave - 1;
    const double upper = std::ldexp(bucket % kPerOctave + kPerOctave + 1, shift) - 1;
    return std::min(upper / 1e9, max_s_);
  }
  return 0;
}

void LifecycleMetrics::Pass(SimTime time, const ClusterTerms& terms, int64_t waiting_pods,
                            const Objective* objective) {
  const double s = Seconds(time);
  seconds += s;
  for (int r = 0; r < kResourceKinds; ++r) {
    sd_s[r] += s * terms.utilisation_sd[r];
    node_utilisation_s[r] += s * terms.mean_node_utilisation[r];
    active_utilisation_s[r] += s * terms.active_utilisation[r];
  }
  active_nodes_s += s * terms.active_nodes;
  ready_nodes_s += s * terms.ready_nodes;
  pods_s += s * terms.bound_pods;
  waiting_pods_s += s * static_cast<double>(waiting_pods);
  pod_latency_s += s * terms.bound_pods * terms.latency_ms;
  calls_s += s * terms.calls_counted;
  call_ms_s += s * terms.calls_counted * terms.call_ms;
  joules += s * terms.watts;
  price += s / 3600 * terms.price_per_hour;
  fragmentation_s += s * terms.fragmentation;
  if (objective != nullptr) objective_s += s * objective->Cost(terms);
}

double LifecycleMetrics::makespan_s() const {
  return first_arrival == kNever ? 0 : Seconds(end - first_arrival);
}

std::vector<MetricRow> LifecycleMetrics::Rows() const {
  const auto count = [](int64_t n) { return static_cast<double>(n); };
  const double bound = std::max(count(bindings), 1.0);
  const auto mean = [&](double integral) { return MeanOverTime(integral); };
  return {
      {"arrived", "pods", count(arrived)},
      {"bindings", "", count(bindings)},
      {"refusals", "", count(refusals)},
      {"completed", "pods", count(completed)},
      {"deleted", "pods", count(deleted)},
      {"node_losses", "", count(node_losses)},
      {"lost", "pods", count(lost)},
      {"restarted", "pods", count(restarted)},
      {"never_bound", "pods", count(never_bound)},
      {"never_fit", "pods", count(never_fit)},
      {"soft_misses", "bindings", count(soft_misses)},
      {"hard_misses", "bindings", count(hard_misses)},
      {"chosen_latency", "ms", chosen_latency_ms / bound},
      {"active_nodes_at_bindings", "nodes", active_at_bindings / bound},
      {"waiting_mean", "s", waiting.mean_s()},
      {"waiting_p99", "s", waiting.QuantileS(0.99)},
      {"waiting_max", "s", waiting.max_s()},
      {"makespan", "s", makespan_s()},
      {"imbalance_cpu", "", mean(sd_s[0])},
      {"imbalance_memory", "", mean(sd_s[1])},
      {"imbalance_gpus", "", mean(sd_s[2])},
      {"utilisation_cpu", "", mean(node_utilisation_s[0])},
      {"utilisation_memory", "", mean(node_utilisation_s[1])},
      {"utilisation_gpus", "", mean(node_utilisation_s[2])},
      {"active_utilisation_cpu", "", mean(active_utilisation_s[0])},
      {"active_utilisation_memory", "", mean(active_utilisation_s[1])},
      {"active_utilisation_gpus", "", mean(active_utilisation_s[2])},
      {"active_nodes", "nodes", mean(active_nodes_s)},
      {"ready_nodes", "nodes", mean(ready_nodes_s)},
      {"pods", "pods", mean(pods_s)},
      {"waiting_pods", "pods", mean(waiting_pods_s)},
      {"latency", "ms", pods_s > 0 ? pod_latency_s / pods_s : 0},
      {"call_latency", "ms", calls_s > 0 ? call_ms_s / calls_s : 0},
      {"energy", "kWh", joules / kJoulesPerKwh},
      {"cost", "", price},
      {"fragmentation", "", mean(fragmentation_s)},
      {"objective", "", mean(objective_s)},
  };
}

}  // namespace rudderfish
