// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "model/served_application.h"

// How many pods of each workload an application had better have, from the fewest to the most: rung
// by rung one pod more, of the workload where it saves the most late requests for what it requests.
// So the scaling of a whole application is a choice of one number, and where a pod helps most is
// the Model's to say, workload by workload.
//
// A rung serves the rate at which the share of late requests is still within a limit. The limit
// counts from what no replicas can mend. Immutable once made: any thread may read it.

namespace rudderfish {

class CapacityLadder {
 public:
  // `late_max`: share of requests. One pod more at a time, within the bounds of the workloads;
  // workloads that are not called, or not scaled, stay as they are.
  CapacityLadder(std::shared_ptr<const ServedApplication> application, double late_max);

  const ServedApplication& application() const { return *application_; }
  int rungs() const { return static_cast<int>(serves_.size()); }
  int workloads() const { return application_->workload_count(); }

  // [workload]
  std::span<const int> Replicas(int rung) const {
    return std::span(replicas_).subspan(static_cast<size_t>(rung) * workloads(), workloads());
  }
  double cores(int rung) const { return cores_[rung]; }  // Requested by all its pods.
  int pods(int rung) const { return pods_[rung]; }
  double ServesPerS(int rung) const { return serves_[rung]; }      // Within the limit;
  double CapacityPerS(int rung) const { return capacity_[rung]; }  // at all. Both never fall.

  // The lowest rung that serves so much; the highest if none does.
  int RungFor(double requests_per_s) const {
    const double* first = serves_.data();
    for (size_t left = serves_.size() - 1; left > 0;) {  // Of which one, or the one after all.
      const size_t half = (left + 1) / 2;
      first += first[half - 1] < requests_per_s ? half : 0;
      left -= half;
    }
    return static_cast<int>(first - serves_.data());
  }

  // The highest rung within a quota; the lowest if none is.
  int HighestWithin(const ScalingLimits& limits) const;

  // The highest rung of which all pods are there; the lowest if there are fewer.
  int RungWithin(std::span<const int> replicas) const;

  // Share of requests that are late under a steady load of so many, beyond what no replicas can
  // mend; 1 where they are more than it can serve. By a table.
  double LateShare(int rung, double requests_per_s) const {
    const double use = requests_per_s / capacity_[rung];
    const float* row = late_.data() + static_cast<size_t>(rung) * kPoints;
    if (use >= kMostUse) {
      const double share = std::min(1.0, (use - kMostUse) / (kOverloadUse - kMostUse));
      return row[kPoints - 1] + share * (1 - row[kPoints - 1]);
    }
    const double point = std::max(0.0, (use - kLeastUse) / (kMostUse - kLeastUse) * (kPoints - 1));
    const int below = std::min(static_cast<int>(point), kPoints - 2);
    return row[below] + (point - below) * (row[below + 1] - row[below]);
  }

 private:
  void AddRung(const std::vector<int>& replicas, class SteadyLoad* steady);

  static constexpr int kPoints = 32;  // Of the table, by utilisation, equally far apart:
  static constexpr double kLeastUse = 0.3, kMostUse = 0.99;
  static constexpr double kOverloadUse = 1.03;  // From here on all are late.

  std::shared_ptr<const ServedApplication> application_;
  double late_max_ = 0, late_least_ = 0;
  std::vector<int> replicas_;  // [rung][workload]
  std::vector<double> cores_, serves_, capacity_;
  std::vector<int> pods_;
  std::vector<float> late_;                    // [rung][point]
  std::vector<std::vector<int>> first_above_;  // [workload][replicas - least] The rung with more.
};

}  // namespace rudderfish
