// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "scenario/start_states.h"
#include "sim/world.h"

// The episodes by which policies are judged, and which no training has seen.

namespace rudderfish {

// Held-out starts: episode i is drawn from Rng(seed, kHeldOutStream + i). Training draws episodes
// from streams below 2^32 and all other chance from streams below 2^48 (learn/env.h and
// learn/rollout.cc), so that no training, whatever its seed, has seen these.
inline constexpr uint64_t kHeldOutStream = uint64_t{1} << 48;
Result<std::vector<StartState>> DrawStarts(const World& world, uint64_t seed, int episodes);

// The seed of a Lifecycle for held-out episode `episode`.
uint64_t HeldOutSeed(uint64_t seed, int episode);

// Episodes by which heuristics are chosen; neither training nor evaluation has them.
uint64_t TrialSeed(uint64_t seed, int episode);

}  // namespace rudderfish
