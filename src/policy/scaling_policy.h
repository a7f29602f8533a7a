// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/served_application.h"
#include "policy/hpa.h"

// Policies that decide how many replicas every workload of an application is to have, from what a
// cluster's metrics show of it. All workloads are asked about at once.
//
// A ScalingPolicy is immutable and shared; what it remembers of one run is a ScalingMemory.

namespace rudderfish {

// One workload as metrics show it. Samples are as old as metrics are.
struct WorkloadSight {
  int replicas = 0;        // Asked for now.
  double calls_per_s = 0;  // That came to it, of all pods together.
  double busy_slots = 0;   // On average, of all pods together.
  std::span<const HpaPod> pods;

  int ready() const;  // Pods that serve.
};

struct ScalingQuestion {
  int64_t at_ns = 0;
  int64_t sampled_at_ns = 0;  // The end of the window that samples are of,
  int64_t window_ns = 0;      // and its length.
  bool has_samples = false;
  const ServedApplication* application = nullptr;
  std::span<const WorkloadSight> workloads;  // [workload]; those that are not scaled are not read.
  // Requests per second of each window_ns since 0, later ones too, where somebody knows: only what
  // is there to show what foreknowledge is worth reads it.
  std::span<const double> true_rates;
};

class ScalingMemory {
 public:
  virtual ~ScalingMemory() = default;
};

class ScalingPolicy {
 public:
  virtual ~ScalingPolicy() = default;

  // Of one run of this application.
  virtual std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const = 0;

  // `replicas` [workload] holds those asked for now, and then those to ask for; within the bounds
  // of the workload where it changes them. REQUIRES: `memory` is of the same application.
  virtual void Decide(const ScalingQuestion& question, ScalingMemory* memory,
                      std::span<int> replicas) const = 0;

  // Whether it reads ScalingQuestion::true_rates: a bound for others, and no rival of theirs.
  virtual bool foresees() const { return false; }
};

// hold                       what there is at the start, for ever
// hpa                        Kubernetes' HorizontalPodAutoscaler; options cpu (percent of what is
//                            requested, 80), rate (calls per second and pod; none), tolerance
//                            (0.1), up and down (stabilisation windows, 0s and 300s), policies
//                            (default; fast: up to ten times as many at once; gentle: down by a
//                            pod a minute), min (replicas of every workload, 1), min-rate (enough
//                            replicas for so many requests per second, as CapacityLadder has it)
// keda                       as KEDA scales by a rate: an HPA on calls per second; option share
//                            (0.7) of what a pod can serve; up, down, policies and the least
//                            replicas as above
// autopilot                  as Google's Autopilot recommends: enough for the highest use in a
//                            window; options share (0.7) and window (10m)
// mpc                        look-ahead on the model of load and a forecast; options horizon (90s)
//                            price (core-seconds of a request late or failed, 1), headroom (0.9,
//                            quantile of the forecast's errors), season (of the load; none)
// clairvoyant                the same, knowing the true rates; options horizon, price
// static                     what, never changed, keeps violations within a limit at least cost on
//                            the model; options violations (1%), rate (requests per second, as
//                            CapacityLadder has it; the true ones)
//
// RUN, CHECKPOINT           what was learned (policy/neural_scaling.h)
//
// Options follow after colons: hpa:cpu=60:down=120s. The nearest name in the message.
Result<std::unique_ptr<ScalingPolicy>> MakeScalingPolicy(std::string_view spec);
std::span<const std::string_view> ScalingPolicyNames();

// Whether MakeScalingPolicy takes it for a run folder or a checkpoint.
bool IsScalingRun(std::string_view spec);

}  // namespace rudderfish
