// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "cluster/state.h"
#include "model/cluster_totals.h"
#include "model/objective.h"
#include "task/placement.h"

// The simple ways to choose a node for one pending pod, which every other way is measured against.
// All choose among the nodes with room whose node-user latency is within the workload's hard limit,
// and of equals the first; kNone where there is none, and the pod goes on waiting.

namespace rudderfish {

// Where the mean of the free shares of CPU and memory is highest with the pod there, or lowest:
// kube-scheduler's LeastAllocated and MostAllocated strategies, not rounded to integers.
NodeId LeastAllocatedNode(const PlacementQuestion& question);
NodeId MostAllocatedNode(const PlacementQuestion& question);

// The first from `start` on, and after the last node from the first.
NodeId NextNode(const PlacementQuestion& question, NodeId start);

// Where the objective is least with the pod there.
NodeId GreedyNode(const PlacementQuestion& question, const Objective& objective);

// One of them with what it remembers; one a run.
using PlacementRule = std::function<NodeId(const PlacementQuestion&)>;

// round-robin, least-allocated, most-allocated or greedy, which takes the objective; the nearest of
// them in the message.
Result<PlacementRule> PlacementRuleNamed(std::string_view name, const Objective& objective);
std::span<const std::string_view> PlacementRuleNames();

}  // namespace rudderfish
