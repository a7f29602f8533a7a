// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/scaling_objective.h"
#include "model/served_application.h"
#include "scenario/traffic.h"

// The part `load:` of a scenario: what requests come, and how pods serve them. With the calls and
// execution times of the scenario it makes a ServedApplication. Immutable once read.

namespace rudderfish {

struct Scenario;

// What the model of service adds to a workload of the catalog.
struct PodService {
  int slots = 1;
  Discipline discipline = Discipline::kInLine;
  int queue_limit = kNoQueueLimit;
  ServiceLaw service;
  Balancing balancing = Balancing::kRandom;
  int choices = 2;
  int replicas_min = 1, replicas_max = 10;
  TimeLaw start_delay = TimeLaw::Constant(SimTime(0));  // Constant or a range; and
  TimeLaw image_pull = TimeLaw::Constant(SimTime(0));   // where a node lacks the image; none: 0.
  SimTime probe_delay{0}, probe_period{0};              // Of readiness; none: 0.

  bool operator==(const PodService&) const = default;
};

struct NamedTraffic {
  std::string name;
  Traffic traffic;
};

struct Load {
  SimTime duration{3'600'000'000'000};  // Of an episode.
  SimTime interval{15'000'000'000};     // Between decisions.
  SimTime network{0};                   // One way, of each call and each answer.
  SimTime timeout{0};                   // After which a client gives up; 0: never.
  int retries = 0;
  SimTime retry_delay{0};
  SessionLaw sessions;
  ScalingLimits limits;        // Of all workloads together.
  ScalingObjective objective;  // What scaling is to make small,
  ServiceLimit limit;          // and what it is to keep, unless late requests have a weight.
  // Of the first pattern, with what is late by the limit as qos; null: its own.
  std::shared_ptr<const CallGraph> limited;
  std::vector<PodService> pods;     // [workload]
  std::vector<NamedTraffic> loads;  // At least one.

  // Position of a load, or kNone.
  int LoadNamed(std::string_view name) const;
};

// How many of all requests may be late, as a share: its limit; 1 % without `load`.
double LateMaxOf(const Scenario& scenario);

// One episode's curve of a load, with the users of its sessions.
RateCurve DrawCurve(const Load& load, EpisodeUse use, int position, uint64_t seed);

// The application of one pattern; of the first, with the targets of the limit. Execution times are
// means over the kinds of node where a pod may run, weighed by their number; the replicas it starts
// with are the fewest of the scenario's, but within the bounds. REQUIRES: scenario.load is there.
ServedApplication ApplicationOf(const Scenario& scenario, int pattern);

}  // namespace rudderfish
