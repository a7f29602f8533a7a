// SPDX-License-Identifier: Apache-2.0
#include "evaluation/placement_bound.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "policy/placement_rules.h"
#include "sim/lifecycle.h"
#include "sim/placement_run.h"

namespace rudderfish {
namespace {

double ShareUsed(int64_t used, int64_t all) {
  return all > 0 ? static_cast<double>(used) / static_cast<double>(all) : 0;
}

double DeviationOf(double sum, double squares, double count) {
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean));
}

Result<void> CheckHasBound(const Scenario& scenario) {
  const auto refuse = [&](std::string_view why) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: no bound is known {}", scenario.name, why);
  };
  if (!(*scenario.objective == Objective::Of(ObjectiveTerm::kBalance)))
    return refuse("of another objective than balance");
  const Arrivals& arrivals = *scenario.arrivals;
  if (arrivals.failures ||
      std::any_of(arrivals.events.begin(), arrivals.events.end(), [](const WorldEvent& event) {
        return event.kind != WorldEvent::Kind::kLatency;
      })) {
    return refuse("where nodes come and go");
  }
  for (const Workload& workload : scenario.catalog->workloads) {
    if (workload.devices.count > 0 || workload.node_kinds != kAnyKind ||
        workload.latency_limits.has_hard()) {
      return refuse("where pods may not run on every node, or ask for devices");
    }
  }
  return {};
}

}  // namespace

void Imbalance::Add(const Resources& used, const Resources& allocatable) {
  const double cpu = ShareUsed(used.cpu_millis, allocatable.cpu_millis),
               memory = ShareUsed(used.memory_bytes, allocatable.memory_bytes);
  cpu_ += cpu;
  cpu_squared_ += cpu * cpu;
  memory_ += memory;
  memory_squared_ += memory * memory;
}

double Imbalance::Of(int nodes) const {
  return DeviationOf(cpu_, cpu_squared_, nodes) + DeviationOf(memory_, memory_squared_, nodes);
}

LeastImbalance::LeastImbalance(const State& state) : state_(&state) {
  CHECK(state.nodes.size() > 0);
}

double LeastImbalance::Splits(std::span<const int32_t> pods) const {
  double splits = 1;
  for (const int32_t count : pods) {
    for (int node = 1; node < state_->nodes.size(); ++node)
      splits *= static_cast<double>(count + node) / node;
  }
  return splits;
}

double LeastImbalance::Of(std::span<const int32_t> pods) {
  std::vector<int32_t> key(pods.begin(), pods.end());
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  left_ = key;
  best_ = std::numeric_limits<double>::infinity();
  Fill(0, 0, {}, {});
  return known_.emplace(std::move(key), best_).first->second;
}

// Puts 0, 1 ... of those left of the workload on the node, then of the next; the last node takes
// all that is left.
void LeastImbalance::Fill(size_t node, size_t workload, Resources used, const Imbalance& before) {
  const auto& workloads = state_->catalog->workloads;
  const bool is_last = node + 1 == static_cast<size_t>(state_->nodes.size());
  if (is_last) {
    for (size_t w = 0; w < left_.size(); ++w) {
      used.cpu_millis += left_[w] * workloads[w].requests.cpu_millis;
      used.memory_bytes += left_[w] * workloads[w].requests.memory_bytes;
    }
    workload = left_.size();
  }
  if (workload == left_.size()) return Close(node, used, before);
  const int32_t all = left_[workload];
  const Resources& room = state_->nodes.allocatable[node];
  for (int32_t here = 0; here <= all && room.Fits(used); ++here) {
    left_[workload] = all - here;
    Fill(node, workload + 1, used, before);
    used += workloads[workload].requests;
  }
  left_[workload] = all;
}

void LeastImbalance::Close(size_t node, const Resources& used, Imbalance nodes) {
  const Resources& room = state_->nodes.allocatable[node];
  if (!room.Fits(used)) return;
  nodes.Add(used, room);
  if (node + 1 < static_cast<size_t>(state_->nodes.size())) return Fill(node + 1, 0, {}, nodes);
  best_ = std::min(best_, nodes.Of(state_->nodes.size()));
}

Result<double> LeastBalance(std::shared_ptr<const Scenario> scenario, uint64_t seed) {
  TRY(CheckHasBound(*scenario));
  const PlacementRule rule = *PlacementRuleNamed("least-allocated", *scenario->objective);
  Lifecycle lifecycle(scenario);
  TRY_ASSIGN(const LifecycleMetrics metrics, RunPlacement(rule, seed, &lifecycle));
  if (metrics.waiting.max_s() > 0 || metrics.never_bound > 0) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: no bound is known where pods have to wait: which are there depends on who "
                "places them",
                scenario->name);
  }
  LeastImbalance least(lifecycle.state());
  std::vector<int32_t> pods(scenario->catalog->workloads.size());
  double integral_s = 0;
  bool is_too_much = false;
  lifecycle.Watch([&](SimTime passed, const State& state) {
    std::fill(pods.begin(), pods.end(), 0);
    for (PodId pod = 0; pod < state.pods.size(); ++pod)
      pods[static_cast<size_t>(state.pods.workload[pod])] += state.pods.node[pod] == kNone ? 0 : 1;
    is_too_much |= least.Splits(pods) > kMostSplits;
    if (!is_too_much) integral_s += std::chrono::duration<double>(passed).count() * least.Of(pods);
  });
  TRY(RunPlacement(rule, seed, &lifecycle));
  if (!is_too_much) return metrics.MeanOverTime(integral_s);
  return Fail(ErrorCode::kFailedPrecondition,
              "{}: there are too many ways to split its pods over its nodes to try all",
              scenario->name);
}

}  // namespace rudderfish
