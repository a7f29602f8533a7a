// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/served_application.h"

// An application in equilibrium under a load that does not change: what share of its requests is
// late. Beside LoadModel, which follows backlogs over time, this is one pass over the calls, so
// that thousands of allocations can be looked at (model/capacity_ladder.h).
//
// Waits, and what sharing adds, are those of queues in equilibrium (model/queueing.h). Responses of
// a request are sums over its calls; of parallel groups the mean and variance of the greatest of
// two normal variables are taken, group by group (C. E. Clark, "The greatest of a finite set of
// random variables", Operations Research 1961); the whole is taken as gamma distributed. Times in
// s. Holds what it works with: one a thread.

namespace rudderfish {

class SteadyLoad {
 public:
  explicit SteadyLoad(std::shared_ptr<const ServedApplication> application);

  const ServedApplication& application() const { return *application_; }

  // Later than their endpoint's qos, with `replicas` [workload] of pods, all of them ready; 1 where
  // more comes to a workload than it can serve.
  double LateShare(std::span<const int> replicas, double requests_per_s);

  // Requests per second that keep the tightest workload busy all the time; infinite if none is
  // called.
  double CapacityPerS(std::span<const int> replicas) const;

  // [workload] Seconds of computing and calls of one request, on average over the mix.
  std::span<const double> demand_s() const { return demand_s_; }
  std::span<const double> calls() const { return calls_; }

 private:
  struct Moments {
    double mean = 0, variance = 0;
  };

  Moments WaitAt(WorkloadId workload, int pods, double requests_per_s) const;
  Moments ResponseOfCall(CallId id) const;
  Moments ResponseOf(const Endpoint& endpoint);
  static Moments Later(const Moments& a, const Moments& b);

  std::shared_ptr<const ServedApplication> application_;
  std::vector<double> shares_;            // [endpoint]
  std::vector<double> demand_s_, calls_;  // [workload]
  std::vector<double> service_scv_;       // [workload] Of its mix of calls.
  std::vector<Moments> waits_;            // [workload]
  std::vector<Moments> below_;            // [call]
};

}  // namespace rudderfish
