// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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

}  // namespace rudderfish
