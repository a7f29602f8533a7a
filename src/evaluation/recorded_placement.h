// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "scenario/scenario.h"
#include "sim/episode_pods.h"
#include "sim/lifecycle_metrics.h"
#include "task/placement.h"

// What was seen of pods that somebody placed on the nodes of a scenario, measured as its own
// episodes are: a cluster beside the simulator, by the same Model.

namespace rudderfish {

struct RecordedChange {
  enum class Kind { kArrived, kBound, kLeft };

  SimTime at{0};
  Kind kind = Kind::kArrived;
  int64_t pod = 0;      // Of PodsOfEpisode.
  NodeId node = kNone;  // Of kBound.
};

// Hears what was asked at a Binding, as the record has it, and which node it was.
using BindingObserver = std::function<void(const PlacementQuestion&, NodeId)>;

// The means over time from the first arrival to `end`, and counts of pods that arrived, were bound,
// left and never were bound. The nodes are those that an episode of the seed begins with, and the
// pods its own; they are there as long as the record says. Refused is a record whose times run
// backwards, that names pods or nodes that are none, or binds what is bound or has no room.
Result<LifecycleMetrics> MeasureRecorded(const std::shared_ptr<const Scenario>& scenario,
                                         uint64_t seed, std::span<const RecordedChange> record,
                                         SimTime end, const BindingObserver& observer = {});

}  // namespace rudderfish
