// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/served_application.h"
#include "task/gym_hpa.h"

// An application of ours as gym-hpa would measure it, deployment by deployment:
//
//   pods      replicas asked for
//   desired   within the workload's own bounds: theirs were the same for all deployments
//   CPU       of all pods: a pod uses what it requests while all its slots are busy, and no more,
//             so that this is its limit too
//   memory    of which nothing is simulated: three quarters of what pods request, the target of the
//             rule for desired replicas, and of limits half of that, as limits there are about
//             twice the requests
//   traffic   what calls carry on average (`data` of a scenario's calls)
//
// Latency is not read here. Immutable; any thread may use it. Nothing allocates in Read.

namespace rudderfish {

// The workloads that are scaled, in their order. `name` is the scenario's: it becomes part of file
// names, and Redis has a latency cap of its own.
GymHpaApplication GymHpaApplicationOf(const ServedApplication& served, std::string_view name);

// What metrics show of workloads, of one interval.
struct GymHpaMetrics {
  std::span<const int> replicas, ready;             // [workload] Asked for; that serve.
  std::span<const double> calls_per_s, busy_slots;  // [workload] Of all pods together.
};

class GymHpaReader {
 public:
  GymHpaReader(const ServedApplication& served, std::string_view name);

  const GymHpaApplication& application() const { return application_; }
  WorkloadId workload(int deployment) const { return parts_[deployment].workload; }
  // Of one deployment, besides its latency and, of the graph generation, its desired replicas.
  GymHpaReading Read(int deployment, const GymHpaMetrics& metrics) const;
  GymHpaShares SharesOf(int deployment, const GymHpaMetrics& metrics) const;

 private:
  struct Part {
    WorkloadId workload = 0;
    int slots = 1;
    int least = 1, most = 1;               // Replicas.
    double cpu_millis = 0;                 // Of a pod.
    double in_kbytes = 0, out_kbytes = 0;  // Of a call to it: received, and sent to others.
  };

  GymHpaApplication application_;
  std::vector<Part> parts_;  // [deployment]
};

}  // namespace rudderfish
