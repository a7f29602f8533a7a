// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/task_kind.h"
#include "policy/placement_policy.h"
#include "policy/policy.h"
#include "policy/policy_spec.h"
#include "policy/routing_policy.h"
#include "policy/scaling_policy.h"

// Where a spec (policy_spec.h) becomes a policy: by the row of the table that it names, or from the
// run folder or checkpoint at its path. What does not fit is refused with what there is instead.

namespace rudderfish {

// That the task has a policy of that name and it takes these options; or that it is a path.
// Reads no file.
Result<void> CheckPolicy(const PolicySpec& spec, TaskKind task);

Result<std::unique_ptr<Policy>> MakePolicy(const PolicySpec& spec, const Task& task);
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view spec, const Task& task);

// `left_out`: a score of `mixed` that the caller adds itself. It stays in PlacementPolicy::mix, and
// nothing goes by it.
Result<PlacementPolicy> MakePlacementPolicy(const PolicySpec& spec, const PlacementTask& task,
                                            std::optional<PlacementScore> left_out = {});
Result<PlacementPolicy> MakePlacementPolicy(std::string_view spec, const PlacementTask& task,
                                            std::optional<PlacementScore> left_out = {});

Result<std::unique_ptr<ScalingPolicy>> MakeScalingPolicy(const PolicySpec& spec);
Result<std::unique_ptr<ScalingPolicy>> MakeScalingPolicy(std::string_view spec);

Result<std::unique_ptr<RoutingPolicy>> MakeRoutingPolicy(const PolicySpec& spec);
// By name and options alone: reads no file, and so refuses a path.
Result<std::unique_ptr<RoutingPolicy>> MakeRoutingRule(std::string_view spec);

// What journals call it: a learned one with the beginning of its checkpoint's digest, so that what
// was retrained gathers evidence of its own.
Result<std::string> NameOfPolicy(std::string_view spec);
inline constexpr size_t kDigestTold = 8;

}  // namespace rudderfish
