// SPDX-License-Identifier: Apache-2.0
#include "model/capacity_ladder.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/steady_load.h"

namespace rudderfish {
namespace {

constexpr double kNextRate = 1.05;    // A rung more is for a rate so much higher.
constexpr double kLowestRate = 1e-3;  // Requests per second: as good as none.
constexpr int kBisections = 20;
// Only so many of the busiest workloads are tried for the next pod.
constexpr int kTried = 16;

double CoresOf(const ServedWorkload& workload) {
  return static_cast<double>(std::max<int64_t>(1, workload.cpu_millis)) / 1000;
}

// The highest rate with no more than `late_max`.
double ServedRate(const std::vector<int>& replicas, double late_max, SteadyLoad* steady) {
  double low = 0, high = steady->CapacityPerS(replicas);
  if (!std::isfinite(high)) return high;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    (steady->LateShare(replicas, middle) <= late_max ? low : high) = middle;
  }
  return low;
}

// Where the next pod goes; kNone if nowhere.
WorkloadId NextPod(const std::vector<int>& most, double rate, std::vector<int>* replicas,
                   SteadyLoad* steady) {
  const ServedApplication& application = steady->application();
  std::vector<std::pair<double, WorkloadId>> busiest;
  for (WorkloadId w = 0; w < application.workload_count(); ++w) {
    const double demand = steady->demand_s()[w];
    if ((*replicas)[w] >= most[w]) continue;
    busiest.emplace_back(-demand / ((*replicas)[w] * application.workloads[w].slots), w);
  }
  if (busiest.empty()) return kNone;
  std::sort(busiest.begin(), busiest.end());
  if (busiest.size() > kTried) busiest.resize(kTried);
  const double late = steady->LateShare(*replicas, rate);
  WorkloadId best = busiest[0].second;
  double most_saved = 0;
  for (const auto& [use, w] : busiest) {
    ++(*replicas)[w];
    const double saved =
        (late - steady->LateShare(*replicas, rate)) / CoresOf(application.workloads[w]);
    --(*replicas)[w];
    if (saved <= most_saved * (1 + 1e-9) + 1e-12) continue;
    most_saved = saved;
    best = w;
  }
  return best;
}

}  // namespace

CapacityLadder::CapacityLadder(std::shared_ptr<const ServedApplication> application,
                               double late_max)
    : application_(std::move(application)) {
  CHECK(late_max > 0 && late_max < 1);
  SteadyLoad steady(application_);
  std::vector<int> replicas, most;
  for (WorkloadId w = 0; w < workloads(); ++w) {
    const ServedWorkload& workload = application_->workloads[w];
    const bool grows = workload.scaled && steady.demand_s()[w] > 0;
    replicas.push_back(grows ? std::max(1, workload.replicas_min) : workload.replicas);
    most.push_back(grows ? std::max(replicas[w], workload.replicas_max) : workload.replicas);
  }
  const std::vector<int> least = replicas;
  late_least_ = steady.LateShare(most, kLowestRate);
  late_max_ = late_least_ + late_max * (1 - late_least_);
  first_above_.resize(replicas.size());
  for (;;) {
    AddRung(replicas, &steady);
    const double rate = std::max(kLowestRate, serves_.back() * kNextRate);
    const WorkloadId next = NextPod(most, rate, &replicas, &steady);
    if (next == kNone) break;
    ++replicas[next];
    first_above_[next].push_back(rungs());
  }
  for (std::vector<int>& rungs_above : first_above_) rungs_above.push_back(rungs());
  for (int rung = 1; rung < rungs(); ++rung) {
    serves_[rung] = std::max(serves_[rung], serves_[rung - 1]);
    CHECK(capacity_[rung] >= capacity_[rung - 1]);
  }
}

void CapacityLadder::AddRung(const std::vector<int>& replicas, SteadyLoad* steady) {
  replicas_.insert(replicas_.end(), replicas.begin(), replicas.end());
  double cores = 0;
  int pods = 0;
  for (WorkloadId w = 0; w < workloads(); ++w) {
    if (!application_->workloads[w].scaled) continue;
    cores += replicas[w] * CoresOf(application_->workloads[w]);
    pods += replicas[w];
  }
  cores_.push_back(cores);
  pods_.push_back(pods);
  capacity_.push_back(std::min(steady->CapacityPerS(replicas), 1e12));
  serves_.push_back(std::min(ServedRate(replicas, late_max_, steady), capacity_.back()));
  for (int i = 0; i < kPoints; ++i) {
    const double use = kLeastUse + (kMostUse - kLeastUse) * i / (kPoints - 1);
    const double late = steady->LateShare(replicas, use * capacity_.back());
    late_.push_back(static_cast<float>(std::max(0.0, late - late_least_)));
  }
}

int CapacityLadder::HighestWithin(const ScalingLimits& limits) const {
  const auto cpu_most = static_cast<double>(limits.cpu_millis_max) + 0.5;
  int rung = rungs() - 1;
  while (rung > 0 && (cores_[rung] * 1000 > cpu_most || pods_[rung] > limits.pods_max)) --rung;
  return rung;
}

int CapacityLadder::RungWithin(std::span<const int> replicas) const {
  int above = rungs();
  for (WorkloadId w = 0; w < workloads(); ++w) {
    const std::vector<int>& firsts = first_above_[w];
    if (firsts.size() == 1) continue;             // It is the same on every rung.
    const int more = replicas[w] - replicas_[w];  // Than on the lowest rung.
    if (more < 0) return 0;
    above = std::min(above, firsts[std::min<size_t>(more, firsts.size() - 1)]);
  }
  return std::max(0, above - 1);
}

}  // namespace rudderfish
