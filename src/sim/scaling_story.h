// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "policy/scaling_policy.h"
#include "scenario/scenario.h"
#include "sim/scaling_run.h"
#include "sim/scaling_timeline.h"

// An episode of scaling, decision by decision: what metrics showed, what the policy changed, and
// what the Model says of other numbers of pods.

namespace rudderfish {

// What the Model predicts in equilibrium: the rate stays, and all pods are ready.
struct ScalingAlternative {
  int replicas = 0;
  double late_share = 0;
};

// A workload whose replicas a decision changed.
struct ScaledWorkload {
  WorkloadId workload = kNone;
  int before = 0, after = 0;
  int allowed = 0;  // Of those after it, what the quotas of the scenario leave.
  int ready = 0;
  double calls_per_s = 0;
  double busy_share = 0;  // Of the slots of its ready pods.
  // Those before and after it, and the nearest others, ascending; other workloads as decided.
  std::vector<ScalingAlternative> alternatives;
};

struct ScalingStep {
  ScalingMoment moment;       // The interval that had passed.
  bool has_samples = false;   // Of metrics: without any there is nothing to decide by.
  double requests_per_s = 0;  // That metrics show: an interval old.
  std::vector<ScaledWorkload> changes;
};

struct ScalingStory {
  std::vector<ScalingStep> steps;  // One for each decision.
  ScalingFigures figures;
};

// One episode of a load, a position in Load::loads, as EvaluateScaling runs it. `alternatives`: how
// many are told of each change, those before and after it included.
ScalingStory TellScaling(const ScalingPolicy& policy, const Scenario& scenario, int load,
                         uint64_t seed, int episode, int alternatives);

}  // namespace rudderfish
