// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "scenario/scenario.h"
#include "sim/pod_source.h"

// The pods that an episode of a scenario brings under any policy: what a Lifecycle meets, and
// what can be replayed elsewhere. Pure functions of the seed.

namespace rudderfish {

// Streams of an episode's seed, so that one does not shift another.
enum EpisodeChance : uint64_t { kWorldChance = 1, kSourceChance, kStartChance, kFailureChance };

// Streams, then the trace.
std::vector<PodSource> PodSourcesOf(const Arrivals& arrivals);

// From when the pod of that number is bound until it runs, bound for the `attempt`th time. By its
// number and nothing else, whenever that is.
SimTime DrawStartDelay(const Arrivals& arrivals, uint64_t seed, uint32_t attempt, int64_t number);

struct EpisodePod {
  ArrivingPod pod;
  SimTime start_delay{0};  // Of the first attempt.
};

// All of them, in the order in which they come: their numbers. REQUIRES: scenario.arrivals is
// there.
std::vector<EpisodePod> PodsOfEpisode(const Scenario& scenario, uint64_t seed);

}  // namespace rudderfish
