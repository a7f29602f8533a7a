// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "policy/policy.h"

// What the descheduler does beside kube-scheduler, by its LowNodeUtilization strategy
// (sigs.k8s.io/descheduler, "LowNodeUtilization").
//
// A node is underutilized if the requests of its pods are below the low threshold of its
// allocatable CPU and of its memory, and overutilized if they are above the high one of either. As
// long as there are nodes of both kinds, a pod leaves the most used of the overutilized nodes that
// one may leave, and goes where kube-scheduler's default scores put it: the pod whose scores gain
// most. Latency plays no part. The descheduler itself evicts by priority and QoS class, and has a
// threshold for the number of pods as well; a State says nothing of these.

namespace rudderfish {

struct DeschedulerThresholds {
  double low = 20, high = 50;  // Percent of what is allocatable.
};

class DeschedulerPolicy final : public Policy {
 public:
  explicit DeschedulerPolicy(const DeschedulerThresholds& thresholds) : thresholds_(thresholds) {}

  std::string_view name() const override { return "descheduler"; }
  std::unique_ptr<Memory> NewMemory(uint64_t seed) const override;

  // Answer::scores are the gains in kube-scheduler's score, 0 of pods that may stay and for stop.
  void Decide(std::span<Ask> asks, std::span<Answer> answers) const override;

 private:
  DeschedulerThresholds thresholds_;
};

}  // namespace rudderfish
