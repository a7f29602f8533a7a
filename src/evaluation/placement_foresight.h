// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "scenario/scenario.h"

// How evenly a small cluster can be used by a planner that places pods, moves none, and knows what
// will come: which pods, when, and when each leaves. It is a feasible plan, so the best plan comes
// no higher; no policy can know as much. What lies between it and a policy is the price of not
// knowing; between it and LeastBalance, that of not moving (and of what the search missed).
//
// A beam search puts one pod after another, in the order in which they come, and keeps the plans
// that have cost least by the time of the next. Of plans that agree on where those pods are that
// are still there, only the cheapest goes on: what comes costs the same after each.

namespace rudderfish {

// The mean over time of `balance` in one episode, as a Lifecycle measures it of the best plan
// found; nothing where a pod finds no room when it comes in any plan that was kept. Deterministic;
// a tenth of a second to seconds.
// REQUIRES: LeastBalance knows a bound of it, or would if pods had not to wait.
Result<std::optional<double>> BestForeseenBalance(std::shared_ptr<const Scenario> scenario,
                                                  uint64_t seed);

// Plans that are kept at each pod: as many as make so many in all, within bounds.
inline constexpr int64_t kPlansInAll = int64_t{1} << 19;
inline constexpr int64_t kFewestPlans = 64, kMostPlans = 4096;

}  // namespace rudderfish
