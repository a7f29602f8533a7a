// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "policy/placement_policy.h"
#include "policy/policy.h"
#include "policy/policy_options.h"
#include "policy/routing_policy.h"
#include "policy/scaling_policy.h"

// What makes the policies of the table (policy_table.h), each from its options.

namespace rudderfish {

using MoveMaker = Result<std::unique_ptr<Policy>> (*)(const PolicyOptions&, const Task&);
Result<std::unique_ptr<Policy>> MakeLookahead(const PolicyOptions& options, const Task& task);
Result<std::unique_ptr<Policy>> MakeDescheduler(const PolicyOptions& options, const Task& task);
Result<std::unique_ptr<Policy>> MakeBestOf(const PolicyOptions& options, const Task& task);

// `left_out`: see MakePlacementPolicy.
using PlaceMaker = Result<PlacementPolicy> (*)(const PolicyOptions&, const PlacementTask&,
                                               std::optional<PlacementScore> left_out);
Result<PlacementPolicy> MakePlacementRule(const PolicyOptions& options, const PlacementTask& task,
                                          std::optional<PlacementScore> left_out);
Result<PlacementPolicy> MakeQueueLookahead(const PolicyOptions& options, const PlacementTask& task,
                                           std::optional<PlacementScore> left_out);
Result<PlacementPolicy> MakeMixed(const PolicyOptions& options, const PlacementTask& task,
                                  std::optional<PlacementScore> left_out);

using ScaleMaker = Result<std::unique_ptr<ScalingPolicy>> (*)(const PolicyOptions&);
Result<std::unique_ptr<ScalingPolicy>> MakeHold(const PolicyOptions& options);
Result<std::unique_ptr<ScalingPolicy>> MakeHpa(const PolicyOptions& options);
Result<std::unique_ptr<ScalingPolicy>> MakeKeda(const PolicyOptions& options);
Result<std::unique_ptr<ScalingPolicy>> MakeAutopilot(const PolicyOptions& options);
Result<std::unique_ptr<ScalingPolicy>> MakeMpc(const PolicyOptions& options);
Result<std::unique_ptr<ScalingPolicy>> MakeClairvoyant(const PolicyOptions& options);
Result<std::unique_ptr<ScalingPolicy>> MakeStatic(const PolicyOptions& options);

using RouteMaker = Result<std::unique_ptr<RoutingPolicy>> (*)(const PolicyOptions&);
// static or round-robin.
Result<std::unique_ptr<RoutingPolicy>> MakeStaticRoute(const PolicyOptions& options);
// By the name of the policy: locality, cheapest, greenest, carbon-aware or least-latency.
Result<std::unique_ptr<RoutingPolicy>> MakeRankedRoute(const PolicyOptions& options);
// power-of-two or prequal.
Result<std::unique_ptr<RoutingPolicy>> MakeProbedRoute(const PolicyOptions& options);
Result<std::unique_ptr<RoutingPolicy>> MakeSplitRoute(const PolicyOptions& options);
Result<std::unique_ptr<RoutingPolicy>> MakePlannedRoute(const PolicyOptions& options);

}  // namespace rudderfish
